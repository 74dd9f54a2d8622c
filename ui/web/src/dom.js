// Elements, made without markup: nothing that a page shows can be read as HTML.
const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value == null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child != null && child !== false));
  return element;
}

export const h = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
export const s = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

let ids = 0;
export const uniqueId = (stem) => `${stem}-${++ids}`;

let canvas;
// The width of a text as the page's font draws it, in CSS pixels.
export function textWidth(text, size = 12, weight = 400) {
  canvas ??= document.createElement("canvas").getContext("2d");
  canvas.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  return canvas.measureText(text).width;
}

export function truncate(text, width, size = 12, weight = 400) {
  if (textWidth(text, size, weight) <= width) return text;
  let [low, high] = [1, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (textWidth(`${text.slice(0, middle)}…`, size, weight) <= width) low = middle;
    else high = middle - 1;
  }
  return `${text.slice(0, low)}…`;
}

// Keeps the end: of a setting's name, that tells the most.
export function truncateStart(text, width, size = 12, weight = 400) {
  let from = 0;
  while (from < text.length && textWidth(`…${text.slice(from)}`, size, weight) > width) from += 1;
  return from && textWidth(text, size, weight) > width ? `…${text.slice(from)}` : text;
}

// One tab stop for many links: arrow keys, Home and End move between them.
export function roving(container, links) {
  links.forEach((link, index) => link.setAttribute("tabindex", index === 0 ? 0 : -1));
  container.addEventListener("keydown", (event) => {
    const open = links.filter((link) => !link.hasAttribute("data-out"));
    const at = open.indexOf(event.target.closest("a"));
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const next = event.key === "Home" ? 0 : event.key === "End" ? open.length - 1 : step ? at + step : -1;
    if (at < 0 || !open[next]) return;
    event.preventDefault();
    for (const link of links) link.setAttribute("tabindex", -1);
    open[next].setAttribute("tabindex", 0);
    open[next].focus();
  });
}
