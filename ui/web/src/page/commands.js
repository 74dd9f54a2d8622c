// `pre.command`: a button that copies it.
import { h } from "../dom.js";

const SHOWN_MS = 1500;

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // No clipboard for this page: the old way, through a selection.
    const area = h("textarea", { class: "offscreen", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

function addButton(pre) {
  const button = h("button", { type: "button", class: "copy" }, "Copy");
  const text = pre.textContent.trim();
  button.setAttribute("aria-label", `Copy: ${text.length > 80 ? `${text.slice(0, 80)}…` : text}`);
  const status = h("span", { class: "offscreen", role: "status" });
  button.addEventListener("click", async () => {
    const word = (await copy(text)) ? "Copied" : "Not copied";
    button.textContent = status.textContent = word;
    setTimeout(() => {
      button.textContent = "Copy";
      status.textContent = "";
    }, SHOWN_MS);
  });
  const frame = h("div", { class: "command-frame" });
  pre.replaceWith(frame);
  frame.append(pre, button, status);
}

export function setUpCommands(root) {
  root.querySelectorAll("pre.command").forEach(addButton);
}
