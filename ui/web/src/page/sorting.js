// `<table class="sortable">`: its column heads become buttons. A cell's `data-value` wins over its text.
import { h } from "../dom.js";

const UNITS = /^[-+]?[\d,]*\.?\d+(?:e[-+]?\d+)?(?=$|\s|%)/i;

function valueOf(cell) {
  const text = (cell?.dataset.value ?? cell?.textContent ?? "").trim();
  if (text === "" || text === "-") return null;
  const found = text.match(UNITS);
  return found ? Number(found[0].replaceAll(",", "")) : text.toLowerCase();
}

function compare(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other;
  if (typeof one !== typeof other) return typeof one === "number" ? -1 : 1;
  return one.localeCompare(other, "en", { numeric: true });
}

function sort(table, column, direction) {
  for (const body of table.tBodies) {
    const rows = [...body.rows].map((row) => [valueOf(row.cells[column]), row]);
    // What has no value comes last in both directions.
    rows.sort(([one], [other]) => {
      if (one === null || other === null) return (one === null) - (other === null);
      return direction * compare(one, other);
    });
    body.append(...rows.map(([, row]) => row));
  }
}

function makeSortable(table) {
  const heads = [...(table.tHead?.rows[table.tHead.rows.length - 1]?.cells ?? [])];
  for (const head of heads) {
    if (!head.textContent.trim() || head.hasAttribute("data-unsorted")) continue;
    const button = h("button", { type: "button", class: "sort" }, ...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const ascending = head.getAttribute("aria-sort") !== "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      sort(table, head.cellIndex, ascending ? 1 : -1);
    });
  }
}

export function setUpSorting(root) {
  root.querySelectorAll("table.sortable").forEach(makeSortable);
}
