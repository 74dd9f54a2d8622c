import { axisX, barX, gridX, pointerY, ruleX, text, tip } from "@observablehq/plot";
import { textWidth } from "../dom.js";
import { count, share, shareBriefly } from "../format.js";
import { EMPTY, GRID, TIP, color, frame, legend, names, together } from "./common.js";

const BAR = 9;
const GAP = 8;

export function bars(data) {
  const shown = data.series.map(({ name, counts, total }, index) => ({
    name,
    index,
    values: new Map(counts.map(([label, value]) => [label, { label, count: value, share: total ? value / total : 0 }])),
  }));
  const labels = [...new Set(shown.flatMap(({ values }) => [...values.keys()]))];
  const height = Math.max(16, BAR * shown.length) + GAP;
  const most = Math.max(0, ...shown.flatMap(({ values }) => [...values.values()].map((value) => value.share)));

  const draw = (width) => {
    const { mark, room } = names(labels.map((label) => ({ key: label, label })), width);
    const bar = (height - GAP) / shown.length;
    const each = shown.map(({ values, index }) =>
      barX([...values.values()], {
        x: "share",
        y: "label",
        fill: color(index),
        insetTop: GAP / 2 + index * bar,
        insetBottom: GAP / 2 + (shown.length - 1 - index) * bar + (shown.length > 1 ? 1 : 0),
      }),
    );
    const told = labels.map((label) => ({
      label,
      share: Math.max(...shown.map(({ values }) => values.get(label)?.share ?? 0)),
      text: shown.map(({ values }) => shareBriefly(values.get(label)?.share ?? 0)).join(" · "),
      title: [
        label || EMPTY,
        ...shown.map(({ name, values }) => {
          const value = values.get(label);
          return `${name}: ${value ? `${share(value.share)} (${count(value.count)})` : "none shown"}`;
        }),
      ].join("\n"),
    }));
    const ends = Math.max(...told.map((entry) => textWidth(entry.text, 11))) + 10;
    const options = {
      width,
      height: labels.length * height + 26,
      marginLeft: room,
      marginRight: Math.min(ends, width * 0.3),
      marginTop: 2,
      marginBottom: 24,
      x: { domain: [0, most || 1], label: null },
      y: { domain: labels, padding: 0, label: null, axis: null },
      marks: [
        gridX({ ...GRID, ticks: Math.max(2, width / 130) }),
        axisX({ ticks: Math.max(2, Math.min(5, width / 130)), tickSize: 0, tickFormat: share, label: null }),
        mark,
        ...each,
        text(told, { x: "share", y: "label", text: "text", textAnchor: "start", dx: 6, fill: "var(--dim)", fontSize: 11 }),
        ruleX([0], { stroke: "var(--line-strong)" }),
        tip(told, pointerY({ x: "share", y: "label", title: "title", ...TIP })),
      ],
    };
    const label = `${data.title}: shares of ${labels.length} values in ${shown.map(({ name }) => name).join(" and ")}`;
    return together(legend(shown.map(({ name, index }) => [name, "box", index])), frame(options, label));
  };
  const rows = () =>
    labels.map((label) => [
      label || EMPTY,
      ...shown.flatMap(({ values }) => [values.get(label)?.count, share(values.get(label)?.share)]),
    ]);
  const columns = ["Value", ...shown.flatMap(({ name }) => [`${name}: count`, `${name}: share`])];
  return { empty: !labels.length && "No values.", draw, columns, rows };
}
