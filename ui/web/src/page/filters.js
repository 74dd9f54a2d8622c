// `data-filter="runs"` on a table (or around one), a list or cards: a box above it that hides what does not hold the words.
import { h, uniqueId } from "../dom.js";

function items(list) {
  const table = list.tagName === "TABLE" ? list : list.querySelector("table");
  return table ? [...table.tBodies].flatMap((body) => [...body.rows]) : [...list.children];
}

function addFilter(list) {
  const noun = list.dataset.filter || "entries";
  const id = uniqueId("filter");
  const box = h("input", { type: "search", id, autocomplete: "off", spellcheck: "false" });
  const status = h("span", { class: "dim", role: "status" });
  box.addEventListener("input", () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const all = items(list);
    let shown = 0;
    for (const item of all) {
      const text = item.textContent.toLowerCase();
      item.hidden = !words.every((word) => text.includes(word));
      shown += !item.hidden;
    }
    status.textContent = words.length ? `${shown} of ${all.length}` : "";
  });
  const place = list.closest(".scroll") ?? list;
  place.before(h("div", { class: "filter" }, h("label", { for: id }, `Filter ${noun}`), box, status));
}

export function setUpFilters(root) {
  root.querySelectorAll("[data-filter]").forEach(addFilter);
}
