// The same data as a table, made when it is asked for.
import { h } from "../dom.js";
import { NONE, isNumber, number } from "../format.js";

const MOST_ROWS = 2000;

function cell(value, index) {
  const [given, href] = Array.isArray(value) ? value : [value];
  const text = isNumber(given) ? number(given) : given || NONE;
  const content = href ? h("a", { href }, text) : text;
  return index === 0 ? h("th", { scope: "row" }, content) : h("td", { class: isNumber(value) && "number" }, content);
}

function table(title, { columns, rows }) {
  const all = rows();
  const head = h("tr", {}, ...columns.map((name) => h("th", { scope: "col" }, name)));
  const body = all.slice(0, MOST_ROWS).map((row) => h("tr", {}, ...row.map(cell)));
  const scroll = { class: "scroll", tabindex: 0, role: "region", "aria-label": `Numbers: ${title}` };
  const rest = all.length > MOST_ROWS && h("p", { class: "dim" }, `and ${number(all.length - MOST_ROWS)} more`);
  return [h("div", scroll, h("table", {}, h("thead", {}, head), h("tbody", {}, ...body))), rest];
}

export function numbers(title, chart) {
  const details = h("details", { class: "numbers" }, h("summary", { "aria-label": `Numbers: ${title}` }, "Numbers"));
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(...table(title, chart).filter(Boolean));
  });
  return details;
}
