import { axisX, axisY, dot, gridY, line, pointer, tip } from "@observablehq/plot";
import { isNumber, number, tick } from "../format.js";
import { GRID, TIP, color, extent, frame, legend, together, wholeTicks, widened } from "./common.js";

const SQUARE = 340;

function domains(points, diagonal) {
  const xs = extent(points.map((point) => point.x));
  const ys = extent(points.map((point) => point.y));
  if (!diagonal) return [widened(xs), widened(ys)];
  // From corner to corner: both axes have the same ends, 0 and 1 for shares.
  const [low, high] = [Math.min(xs[0], ys[0]), Math.max(xs[1], ys[1])];
  const both = low >= 0 && high <= 1 ? [0, 1] : widened([low, high]);
  return [both, both];
}

export function lines(data) {
  const shown = data.series.map(({ name, points, dashed, group }, index) => ({
    name,
    dashed,
    index: group ?? index,
    points: points.map(([x, y]) => ({ name, x, y })),
  }));
  const known = shown.flatMap(({ points }) => points.filter(({ x, y }) => isNumber(x) && isNumber(y)));

  const draw = (width) => {
    const size = data.diagonal ? Math.min(width, SQUARE) : width;
    const [x, y] = domains(known, data.diagonal);
    const alone = shown.filter(({ points }) => data.markers || points.filter((point) => isNumber(point.y)).length === 1);
    const axis = { label: data.x, labelAnchor: "center", labelArrow: "none" };
    const options = {
      width: size,
      height: data.diagonal ? size : Math.min(280, Math.max(200, size * 0.5)),
      marginLeft: 52,
      marginBottom: 38,
      marginTop: 26,
      marginRight: 14,
      x: { domain: x },
      y: { domain: y, nice: !data.diagonal },
      marks: [
        gridY({ ...GRID, ticks: 5 }),
        axisY({ ticks: 5, tickSize: 0, tickFormat: tick, label: data.y, labelArrow: "none", labelAnchor: "top" }),
        axisX({ ...axis, ticks: wholeTicks(known.map((point) => point.x), size) ?? Math.max(2, size / 90), tickFormat: tick }),
        data.diagonal && line([[x[0], y[0]], [x[1], y[1]]], { stroke: "var(--dim)", strokeDasharray: "2 4" }),
        ...shown.map(({ points, index, dashed }) =>
          line(points, { x: "x", y: "y", stroke: color(index), strokeWidth: 2, strokeDasharray: dashed ? "6 4" : undefined }),
        ),
        ...alone.map(({ points, index }) => dot(points, { x: "x", y: "y", r: 3, fill: color(index) })),
        tip(known, pointer({ x: "x", y: "y", title: (point) => told(data, point), ...TIP })),
      ],
    };
    const label = `${data.title}: ${data.y} over ${data.x}, ${shown.map(({ name }) => name).join(" and ")}`;
    const entries = shown.map(({ name, index, dashed }) => [name, dashed ? "dashed" : "line", index]);
    return together(legend(entries), frame(options, label));
  };
  const rows = () => shown.flatMap(({ points }) => points.map(({ name, x, y }) => [name, x, y]));
  return { empty: !known.length && "No values.", draw, columns: ["Line", data.x, data.y], rows };
}

const told = (data, { name, x, y }) => `${name}\n${data.x}: ${number(x)}\n${data.y}: ${number(y)}`;
