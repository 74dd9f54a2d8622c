// What the charts share: Plot's frame, colours, legends.
import { plot, text } from "@observablehq/plot";
import { symbolAsterisk, symbolCircle, symbolDiamond, symbolSquare, symbolStar, symbolTriangle, symbol } from "d3-shape";
import { h, s, textWidth, truncate } from "../dom.js";

const COLORS = 8;
export const SYMBOLS = [symbolCircle, symbolSquare, symbolTriangle, symbolDiamond, symbolStar, symbolAsterisk];
export const color = (index) => `var(--series-${(index % COLORS) + 1})`;
export const symbolOf = (index) => SYMBOLS[index % SYMBOLS.length];
export const TIP = { fill: "var(--raised)", stroke: "var(--line-strong)", textPadding: 7, lineHeight: 1.3, maxRadius: 60 };
export const GRID = { stroke: "var(--line)", strokeOpacity: 1 };
export const FONT = 12;
export const EMPTY = "(empty)";

// Plot's own style element would break a strict content security policy; pages.css has what it says.
export function frame({ marks, ...options }, label, { links = false } = {}) {
  const svg = plot({ className: "plot-frame", ...options, marks: marks.filter(Boolean) });
  svg.querySelectorAll("style").forEach((style) => style.remove());
  svg.setAttribute("role", links ? "group" : "img");
  svg.setAttribute("aria-label", label);
  // An axis holds nothing that a name of its own would tell.
  svg.querySelectorAll("[aria-label]:not(a)").forEach((part) => part.removeAttribute("aria-label"));
  return svg;
}

// Names at the left of a band axis, shortened to the room there is, with the whole name as a tooltip.
// Entries: {key, label, href?}; the key is the value on the axis.
export function names(entries, width) {
  const longest = Math.max(0, ...entries.map(({ label }) => textWidth(label || EMPTY, FONT)));
  const room = Math.ceil(Math.min(longest + 2, Math.max(80, width * 0.36)));
  const mark = text(entries, {
    y: "key",
    text: ({ label }) => truncate(label || EMPTY, room, FONT),
    title: ({ label }) => label || EMPTY,
    href: entries.some(({ href }) => href) ? ({ href }) => href || null : undefined,
    frameAnchor: "left",
    textAnchor: "end",
    dx: -8,
    fill: "currentColor",
  });
  return { mark, room: room + 12 };
}

function swatch(shape, index) {
  const attributes = { viewBox: "-9 -6 18 12", width: 18, height: 12, "aria-hidden": "true", class: `swatch s${(index % COLORS) + 1}` };
  if (shape === "line" || shape === "dashed") {
    const dash = shape === "dashed" && "5 3";
    return s("svg", attributes, s("path", { d: "M-9,0H9", "stroke-dasharray": dash, "stroke-width": 2 }));
  }
  if (shape === "box") return s("svg", attributes, s("rect", { x: -6, y: -5, width: 12, height: 10, rx: 2 }));
  return s("svg", attributes, s("path", { d: symbol(shape, 60)(), class: "symbol" }));
}

// Entries: [name, shape, index of the colour]; nothing where there is only one thing to tell.
export function legend(entries) {
  if (entries.length < 2) return null;
  return h("ul", { class: "legend" }, ...entries.map(([name, shape, index]) => h("li", {}, swatch(shape, index), name)));
}

export const together = (...parts) => {
  const fragment = document.createDocumentFragment();
  fragment.append(...parts.filter(Boolean));
  return fragment;
};

export const extent = (values) => values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);

// A range that is a point is widened, for a scale of no width draws nothing.
export function widened([low, high]) {
  if (low !== high) return [low, high];
  const half = Math.abs(low) / 2 || 0.5;
  return [low - half, high + half];
}

// Whole numbers in few steps, such as epochs, get whole ticks.
export function wholeTicks(values, width) {
  if (!values.length || !values.every(Number.isInteger)) return undefined;
  const [low, high] = extent(values);
  const most = Math.max(2, Math.floor(width / 60));
  if (high - low > most) return undefined;
  return Array.from({ length: high - low + 1 }, (_, index) => low + index);
}
