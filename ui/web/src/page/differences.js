// `pre.diff`: its lines get the colours of what came, what went, and where.
import { h } from "../dom.js";

function classOf(line) {
  if (line.startsWith("@@") || line.startsWith("+++") || line.startsWith("---")) return "place";
  return { "+": "added", "-": "removed" }[line[0]];
}

export function setUpDifferences(root) {
  for (const pre of root.querySelectorAll("pre.diff")) {
    const lines = pre.textContent.replace(/\n$/, "").split("\n");
    pre.replaceChildren(...lines.map((line) => h("span", { class: classOf(line) }, `${line}\n`)));
  }
}
