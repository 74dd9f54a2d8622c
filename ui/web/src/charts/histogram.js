import { areaY, axisX, axisY, gridY, line, pointerX, ruleY, tip } from "@observablehq/plot";
import { h, textWidth } from "../dom.js";
import { count, full, number, share, tick } from "../format.js";
import { FONT, GRID, TIP, color, extent, frame, legend, together, widened } from "./common.js";

const EQUAL_WIDTHS = 1.25;

// Shares where all bins are about equally wide; where they are not, shares per unit, or wide bins would look too full.
function measure(series) {
  const shown = series.map(({ name, bins }, index) => {
    const sum = bins.reduce((total, [, , value]) => total + value, 0);
    return { name, index, bins: bins.map(([low, high, value]) => ({ low, high, count: value, share: sum ? value / sum : 0 })) };
  });
  const widths = shown.flatMap(({ bins }) => bins.map(({ low, high }) => high - low));
  const [least, most] = extent(widths);
  const density = least > 0 && most / least > EQUAL_WIDTHS;
  const [start, end] = widened(extent(shown.flatMap(({ bins }) => bins.flatMap(({ low, high }) => [low, high]))));
  // A bin that is a single value is drawn as a narrow bar around it.
  const half = (end - start) / 60;
  for (const { bins } of shown) {
    for (const bin of bins) {
      bin.y = density ? bin.share / (bin.high - bin.low) : bin.share;
      [bin.x1, bin.x2] = bin.low === bin.high ? [bin.low - half, bin.high + half] : [bin.low, bin.high];
    }
  }
  return { shown: shown.filter(({ bins }) => bins.length), density, domain: [start, end] };
}

// Steps along the tops of the bins, down to nothing where there is a gap.
function outline(bins) {
  const sorted = [...bins].sort((one, other) => one.x1 - other.x1);
  return sorted.flatMap(({ x1, x2, y }, index) => {
    const [before, after] = [sorted[index - 1], sorted[index + 1]];
    return [before?.x2 !== x1 && [x1, 0], [x1, y], [x2, y], after?.x1 !== x2 && [x2, 0]].filter(Boolean);
  });
}

function tips(shown) {
  return shown.flatMap(({ bins }) =>
    bins.map((bin) => {
      const middle = (bin.x1 + bin.x2) / 2;
      const lines = shown.map(({ name, bins: others }) => {
        const other = others.find(({ x1, x2 }) => x1 <= middle && middle <= x2);
        return `${name}: ${other ? `${share(other.share)} (${count(other.count)})` : "none"}`;
      });
      const range = bin.low === bin.high ? number(bin.low) : `${number(bin.low)} to ${number(bin.high)}`;
      return { x: middle, y: bin.y, title: [range, ...lines].join("\n") };
    }),
  );
}

export function histogram(data) {
  const { shown, density, domain } = measure(data.series);
  const draw = (width) => {
    const marks = shown.flatMap(({ bins, index }) => {
      const points = outline(bins);
            return [
        areaY(points, { x: "0", y1: 0, y2: "1", fill: color(index), fillOpacity: 0.2 }),
        line(points, { x: "0", y: "1", stroke: color(index), strokeWidth: 1.5, strokeLinejoin: "miter" }),
      ];
    });
    // Ends that read alike when shortened get ticks in full, which need more room.
    const alike = tick(domain[0]) === tick(domain[1]);
    const room = alike ? textWidth(full(domain[1]), FONT) * 1.5 : 90;
    const options = {
      width,
      height: Math.min(220, Math.max(160, width * 0.45)),
      marginLeft: 46,
      marginBottom: data.x ? 36 : 24,
      marginTop: 10,
      marginRight: 12,
      x: { domain, label: data.x || null, labelArrow: "none", labelAnchor: "center" },
      y: { label: null, zero: true },
      marks: [
        gridY({ ...GRID, ticks: 4 }),
        axisY({ ticks: 4, tickSize: 0, tickFormat: density ? tick : share }),
        axisX({ ticks: Math.max(2, width / room), tickFormat: alike ? full : tick, label: data.x || null, labelArrow: "none", labelAnchor: "center" }),
        ...marks,
        ruleY([0], { stroke: "var(--line-strong)" }),
        tip(tips(shown), pointerX({ x: "x", y: "y", title: "title", ...TIP })),
      ],
    };
    const label = `${data.title}: histogram of ${shown.map(({ name }) => name).join(" and ")}, ${number(domain[0])} to ${number(domain[1])}`;
    const note = density && h("p", { class: "note-small" }, "Bins differ in width: heights are shares per unit.");
    return together(legend(shown.map(({ name, index }) => [name, "box", index])), frame(options, label), note);
  };
  const rows = () =>
    shown.flatMap(({ name, bins }) => bins.map((bin) => [name, bin.low, bin.high, bin.count, share(bin.share)]));
  return { empty: !shown.length && "No values.", draw, columns: ["Of", "From", "To", "Count", "Share"], rows };
}
