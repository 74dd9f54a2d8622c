import { axisX, dot, gridX, pointerY, ruleX, ruleY, text, tip } from "@observablehq/plot";
import { h, textWidth } from "../dom.js";
import { count, isNumber, number, rows as rowsOf, tick } from "../format.js";
import { GRID, TIP, color, extent, frame, names, widened } from "./common.js";

const ROW = 22;
const LARGEST = 7;
const SMALLEST = 3.5;
// More scroll in a frame of their own.
const MOST_SHOWN = 40;
const AXIS = 16;

export function intervals(data) {
  const all = data.rows.map((row, key) => ({ ...row, key: String(key) }));
  const known = all.filter((row) => isNumber(row.value));
  const most = Math.max(1, ...all.map((row) => row.rows));
  const linked = all.some((row) => row.href);
  const told = (row) =>
    [
      row.label,
      `${data.x}: ${number(row.value)}`,
      isNumber(row.low) && isNumber(row.high) && `interval: ${number(row.low)} to ${number(row.high)}`,
      rowsOf(row.rows),
    ]
      .filter(Boolean)
      .join("\n");

  const draw = (width) => {
    const { mark, room } = names(all, width);
    const counts = all.map((row) => count(row.rows));
    const right = Math.max(...counts.map((value) => textWidth(value, 11)), textWidth("rows", 11)) + 14;
    const reach = all.flatMap(({ value, low, high }) => [value, low, high]).concat(data.reference).filter(isNumber);
    const [low, high] = widened(extent(reach.length ? reach : [0, 1]));
    const margin = (high - low) * 0.04;
    const whole = isNumber(data.reference);
    const tall = all.length > MOST_SHOWN;
    const axis = { ticks: Math.max(2, width / 130), tickSize: 0, tickFormat: tick, label: null };
    const options = {
      width,
      height: all.length * ROW + 62 + (tall ? AXIS : 0),
      marginLeft: room,
      marginRight: right,
      marginTop: tall ? 24 + AXIS : 24,
      marginBottom: 38,
      x: { domain: [low - margin, high + margin] },
      y: { domain: all.map((row) => row.key), axis: null, padding: 0, type: "point", inset: ROW / 2 },
      marks: [
        gridX({ ...GRID, ticks: Math.max(2, width / 130) }),
        axisX({ ...axis, label: data.x, labelAnchor: "center", labelArrow: "none" }),
        tall && axisX({ ...axis, anchor: "top" }),
        whole && ruleX([data.reference], { stroke: "var(--dim)", strokeDasharray: "3 3" }),
        whole && text([data.reference], {
          x: (value) => value,
          text: () => `${data.reference_label || "reference"} ${number(data.reference)}`,
          frameAnchor: "top",
          dy: tall ? -12 - AXIS : -12,
          fill: "var(--dim)",
          textAnchor: data.reference > (low + high) / 2 ? "end" : "start",
        }),
        ruleY(all.filter((row) => isNumber(row.low) && isNumber(row.high)), { x1: "low", x2: "high", y: "key", stroke: color(0), strokeWidth: 1.5 }),
        dot(known, { x: "value", y: "key", r: (row) => Math.max(SMALLEST, LARGEST * Math.sqrt(row.rows / most)), fill: color(0), stroke: "var(--page)", strokeWidth: 1 }),
        mark,
        text(all, { y: "key", text: (row) => count(row.rows), frameAnchor: "right", textAnchor: "start", dx: 8, fill: "var(--dim)", fontSize: 11 }),
        text(["rows"], { frameAnchor: "top-right", textAnchor: "start", dx: 8, dy: -12, fill: "var(--dim)", fontSize: 11, text: (word) => word }),
        text(all.filter((row) => !isNumber(row.value)), { y: "key", frameAnchor: "left", textAnchor: "start", dx: 4, text: () => "no value", fill: "var(--dim)" }),
        tip(known, pointerY({ x: "value", y: "key", title: told, ...TIP })),
      ],
      r: { type: "identity" },
    };
    const svg = frame(options, `${data.title}: ${data.x} with intervals for ${all.length} rows`, { links: linked });
    return tall ? h("div", { class: "tall", tabindex: 0, role: "region", "aria-label": `${data.title}, scrolls` }, svg) : svg;
  };
  const rows = () => all.map((row) => [[row.label, row.href], row.rows, row.value, row.low, row.high]);
  return { empty: !all.length && "No rows.", draw, columns: ["Of", "Rows", data.x, "Low", "High"], rows };
}
