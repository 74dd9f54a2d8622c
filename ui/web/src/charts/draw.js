// Finds the charts of a page and draws each when it comes near the viewport, before printing, and when its width changes.
import { h } from "../dom.js";
import { bars } from "./bars.js";
import { graph } from "./graph.js";
import { histogram } from "./histogram.js";
import { intervals } from "./intervals.js";
import { lines } from "./lines.js";
import { numbers } from "./numbers.js";
import { parallel } from "./parallel.js";
import { scatter } from "./scatter.js";

// Each kind gives {empty, controls?, draw(width), columns, rows}.
const KINDS = { bars, graph, histogram, intervals, lines, parallel, scatter };
const PRINT_WIDTH = 640;

class Figure {
  constructor(figure) {
    this.data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
    this.plot = figure.querySelector(".plot");
    this.width = 0;
    this.figure = figure;
  }

  start() {
    if (this.chart) return;
    this.chart = KINDS[this.data.kind](this.data, () => this.draw(true));
    this.figure.dataset.kind = this.data.kind;
    this.stage = h("div", { class: "stage" });
    this.plot.replaceChildren(...(this.chart.controls ?? []), this.stage);
    if (this.chart.rows().length) this.plot.after(numbers(this.data.title, this.chart));
    new ResizeObserver(() => requestAnimationFrame(() => this.draw())).observe(this.plot);
    this.draw();
  }

  draw(changed = false, fallback = 0) {
    const width = Math.floor(this.plot.clientWidth) || fallback;
    if (!width || (width === this.width && !changed)) return;
    this.width = width;
    this.stage.replaceChildren(this.chart.empty ? h("p", { class: "empty" }, this.chart.empty) : this.chart.draw(width));
    this.figure.dataset.drawn = "";
  }
}

const figures = new Map();
const observer = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      observer.unobserve(target);
      figures.get(target).start();
    }
  },
  { rootMargin: "400px" },
);

addEventListener("beforeprint", () => {
  for (const [node, figure] of figures) {
    if (!node.isConnected) continue;
    figure.start();
    figure.draw(false, PRINT_WIDTH);
  }
});

export function setUpCharts(root) {
  for (const node of figures.keys()) if (!node.isConnected) figures.delete(node);
  for (const node of root.querySelectorAll("figure.chart")) {
    figures.set(node, new Figure(node));
    observer.observe(node);
  }
}
