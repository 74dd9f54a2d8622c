import { h, roving, s, truncate, truncateStart, uniqueId } from "../dom.js";
import { number, tick } from "../format.js";
import { color, extent, legend, together, widened } from "./common.js";
import { groupsOf, isKnown, scaleOf, table, told } from "./points.js";
import { tooltip } from "./tooltip.js";

const HEIGHT = 320;
const MARGIN = { top: 34, bottom: 30, left: 66, right: 76 };
const SPACING = 104;
const MOST_NAMES = 14;
const MANY = 120;
const QUARTER = 0.25;

function position(scale) {
  const [top, bottom] = [MARGIN.top, HEIGHT - MARGIN.bottom];
  if (!scale.numeric) {
    const step = (bottom - top) / Math.max(1, scale.values.length);
    return (value) => bottom - step * (scale.values.indexOf(String(value)) + 0.5);
  }
  const along = scale.log ? Math.log : Number;
  const [low, high] = widened(extent(scale.values).map(along));
  return (value) => bottom - ((along(value) - low) / (high - low)) * (bottom - top);
}

function ticksOf(scale) {
  if (!scale.numeric) {
    const every = Math.ceil(scale.values.length / MOST_NAMES);
    return scale.values.filter((_, index) => index % every === 0).map((value) => [value, value]);
  }
  const [low, high] = extent(scale.values);
  const middle = scale.log ? Math.sqrt(low * high) : (low + high) / 2;
  return low === high ? [[low, tick(low)]] : [low, middle, high].map((value) => [value, number(Number(value.toPrecision(4)))]);
}

function axis(scale, x, at, { room, spacing, hasMissing }) {
  const labels = ticksOf(scale).map(([value, text]) =>
    s("text", { x: x - 7, y: at(value) + 4, class: "tick" }, s("title", {}, text), truncate(text, room, 11)),
  );
  return s(
    "g",
    { class: "axis" },
    s("line", { x1: x, x2: x, y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom }),
    ...labels,
    hasMissing && s("text", { x: x - 7, y: HEIGHT - 6, class: "tick" }, "none"),
    s("text", { x, y: 16, class: "name" }, s("title", {}, scale.dimension), truncateStart(scale.dimension, spacing - 8, 12, 600)),
  );
}

// What can be chosen: names, and the quarters of numbers at either end.
function choices(scales) {
  return scales.map((scale) => {
    if (!scale.numeric) return [scale.dimension, scale.values.map((value) => [value, (other) => String(other) === value])];
    const sorted = [...scale.values].sort((one, other) => one - other);
    const low = sorted[Math.floor((sorted.length - 1) * QUARTER)];
    const high = sorted[Math.ceil((sorted.length - 1) * (1 - QUARTER))];
    return [
      scale.dimension,
      [
        [`lowest quarter (≤ ${number(low)})`, (value) => value <= low],
        [`highest quarter (≥ ${number(high)})`, (value) => value >= high],
      ],
    ];
  });
}

function filter(scales, change) {
  const tests = [];
  const groups = choices(scales).map(([dimension, entries]) => {
    const options = entries.map(([name, test]) => {
      tests.push((point) => isKnown(point.values[dimension]) && test(point.values[dimension]));
      return h("option", { value: tests.length - 1 }, name);
    });
    return h("optgroup", { label: dimension }, ...options);
  });
  const id = uniqueId("only");
  const status = h("span", { class: "dim", role: "status" });
  const onchange = () => change(tests[select.value] ?? null, status);
  const select = h("select", { id, onchange }, h("option", { value: "" }, "all runs"), ...groups);
  return h("div", { class: "choices" }, h("span", { class: "choice" }, h("label", { for: id }, "show"), select), status);
}

export function parallel(data, redraw) {
  const scales = data.dimensions.map((dimension) => scaleOf(data.points, dimension));
  const groups = groupsOf(data.points);
  const state = { test: null };

  const draw = (width) => {
    const whole = Math.max(width, MARGIN.left + MARGIN.right + SPACING * (scales.length - 1));
    const step = scales.length > 1 ? (whole - MARGIN.left - MARGIN.right) / (scales.length - 1) : 0;
    const xs = scales.map((_, index) => MARGIN.left + step * index);
    const at = scales.map(position);
    const missing = scales.map(({ dimension }) => data.points.some((point) => !isKnown(point.values[dimension])));
    const y = (point, index) => (isKnown(point.values[scales[index].dimension]) ? at[index](point.values[scales[index].dimension]) : HEIGHT - 10);
    const room = Math.min(MARGIN.left - 10, (step || MARGIN.left) - 16);
    const axes = scales.map((scale, index) => axis(scale, xs[index], at[index], { room, spacing: step || whole, hasMissing: missing[index] }));
    const marks = data.points.map((point) => run(point, groups, xs.map((x, index) => `${x},${y(point, index)}`), data.dimensions, state.test));
    const svg = s(
      "svg",
      { class: data.points.length > MANY ? "parallel many" : "parallel", width: whole, height: HEIGHT, viewBox: `0 0 ${whole} ${HEIGHT}`, role: "group", "aria-label": `${data.title}: ${data.points.length} runs over ${data.dimensions.join(", ")}` },
      s("g", { class: "runs" }, ...marks),
      s("g", { class: "axes", "aria-hidden": "true" }, ...axes),
    );
    roving(svg, [...svg.querySelectorAll("a:not([data-out])")]);
    const entries = groups.map((name, index) => [name, "line", index]);
    const framed = whole > width ? h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${data.title}, scrolls` }, svg) : svg;
    return together(legend(entries), framed);
  };

  const change = (test, status) => {
    state.test = test;
    status.textContent = test ? `${data.points.filter(test).length} of ${data.points.length} runs` : "";
    redraw();
  };
  const usable = data.points.length && data.dimensions.length;
  return { empty: !usable && "No runs.", controls: usable ? [filter(scales, change)] : [], draw, ...table(data) };
}

function run(point, groups, corners, dimensions, test) {
  const out = test && !test(point);
  const d = corners.length > 1 ? `M${corners.join("L")}` : `M${corners[0]}h40`;
  const text = told(point, dimensions);
  const index = (Math.max(0, groups.indexOf(point.group)) % 8) + 1;
  const lines = [s("path", { d, class: "reach" }), s("path", { d, class: `line s${index}` })];
  const attributes = { class: "run", "data-out": Boolean(out) };
  const mark = point.href
    ? s("a", { href: point.href, "aria-label": text.replaceAll("\n", ", "), ...attributes, tabindex: out ? -1 : null }, ...lines)
    : s("g", attributes, ...lines);
  if (!out) tooltip(mark, () => text);
  return mark;
}
