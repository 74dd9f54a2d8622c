import { axisX, axisY, gridX, gridY } from "@observablehq/plot";
import { symbol } from "d3-shape";
import { h, roving, s, textWidth, truncate, uniqueId } from "../dom.js";
import { tick } from "../format.js";
import { FONT, GRID, extent, frame, legend, symbolOf, together, wholeTicks, widened } from "./common.js";
import { groupsOf, isKnown, scaleOf, table, told } from "./points.js";
import { tooltip } from "./tooltip.js";

const ROOM = 0.05;
const AREA = 70;

function chooser(name, dimensions, chosen, change) {
  const id = uniqueId(name);
  const options = dimensions.map((dimension) => h("option", { value: dimension, selected: dimension === chosen }, dimension));
  const select = h("select", { id, onchange: () => change(select.value) }, ...options);
  return h("span", { class: "choice" }, h("label", { for: id }, name), select);
}

function axisOf(scale) {
  if (!scale.numeric) return { type: "point", domain: scale.values, padding: 0.6 };
  if (scale.log) {
    const [low, high] = extent(scale.values);
    const room = (high / low) ** ROOM;
    return { type: "log", domain: [low / room, high * room] };
  }
  const [low, high] = widened(extent(scale.values));
  const room = (high - low) * ROOM;
  return { type: "linear", domain: [low - room, high + room] };
}

export function scatter(data, redraw) {
  const state = { x: data.x, y: data.y };
  const groups = groupsOf(data.points);
  const place = (point) => Math.max(0, groups.indexOf(point.group));

  const draw = (width) => {
    const [x, y] = [scaleOf(data.points, state.x), scaleOf(data.points, state.y)];
    const shown = data.points.filter((point) => isKnown(point.values[state.x]) && isKnown(point.values[state.y]));
    const room = Math.min(width * 0.3, Math.max(0, ...y.values.map((entry) => textWidth(y.numeric ? tick(entry) : entry, FONT))) + 22);
    const short = (limit) => (entry, index, all) => (typeof entry === "number" ? tick(entry, index, all) : truncate(entry, limit, FONT));
    const step = width / Math.max(1, x.values.length + 0.2);
    const slanted = !x.numeric && x.values.some((entry) => textWidth(entry, FONT) > step);
    const options = {
      width,
      height: Math.min(460, Math.max(260, width * 0.5)) + (slanted ? 60 : 0),
      marginLeft: Math.max(48, room),
      marginBottom: slanted ? 100 : 40,
      marginTop: 28,
      marginRight: 20,
      x: axisOf(x),
      y: axisOf(y),
      marks: [
        gridX(GRID),
        gridY(GRID),
        axisY({ tickSize: 0, tickFormat: short(room - 14), label: state.y, labelAnchor: "top", labelArrow: "none", ticks: y.numeric ? 6 : undefined }),
        axisX({
          tickFormat: short(slanted ? 84 : step),
          tickRotate: slanted ? -40 : 0,
          label: state.x,
          labelAnchor: "center",
          labelArrow: "none",
          ticks: x.numeric ? ((!x.log && wholeTicks(x.values, width)) || Math.max(2, width / 100)) : undefined,
        }),
      ],
    };
    const svg = frame(options, `${data.title}: ${shown.length} runs, ${state.y} over ${state.x}`, { links: shown.some((point) => point.href) });
    const [left, top] = [placer(svg.scale("x"), x), placer(svg.scale("y"), y)];
    const marks = shown.map((point) => dot(point, left(point), top(point), place(point), [state.x, state.y]));
    svg.append(s("g", { class: "dots" }, ...marks));
    roving(svg, [...svg.querySelectorAll("a")]);
    const entries = groups.map((name, index) => [name, symbolOf(index), index]);
    const missing = data.points.length - shown.length;
    const note = missing > 0 && h("p", { class: "note-small" }, `${missing} of ${data.points.length} runs have no value here.`);
    return together(legend(entries), svg, note);
  };

  const change = (axis) => (dimension) => {
    state[axis] = dimension;
    redraw();
  };
  const controls = [
    h("div", { class: "choices" }, chooser("x", data.dimensions, state.x, change("x")), chooser("y", data.dimensions, state.y, change("y"))),
  ];
  return { empty: !data.points.length && "No runs.", controls: data.points.length ? controls : [], draw, ...table(data) };
}

// Where a point lies on one of the plot's scales.
function placer(scale, { dimension, numeric }) {
  return ({ values }) => scale.apply(numeric ? values[dimension] : String(values[dimension]));
}

function dot(point, x, y, index, dimensions) {
  const text = told(point, dimensions);
  const path = s("path", { d: symbol(symbolOf(index), AREA)(), transform: `translate(${x},${y})`, class: `s${(index % 8) + 1}` });
  const mark = point.href ? s("a", { href: point.href, "aria-label": text.replaceAll("\n", ", ") }, path) : s("g", {}, path);
  tooltip(mark, () => text);
  return mark;
}
