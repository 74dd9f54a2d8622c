// One tooltip for marks that are links: shown while the pointer is over one or the keyboard is on it.
import { h } from "../dom.js";

const DISTANCE = 12;
let box;

function place(x, y) {
  const { width, height } = box.getBoundingClientRect();
  const left = x + DISTANCE + width > innerWidth ? x - DISTANCE - width : x + DISTANCE;
  const top = y + DISTANCE + height > innerHeight ? y - DISTANCE - height : y + DISTANCE;
  box.style.left = `${Math.max(4, left)}px`;
  box.style.top = `${Math.max(4, top)}px`;
}

function show(text, x, y) {
  box ??= document.body.appendChild(h("div", { class: "tooltip", "aria-hidden": "true" }));
  box.textContent = text;
  box.hidden = false;
  place(x, y);
}

const hide = () => box && (box.hidden = true);

export function tooltip(element, text) {
  element.addEventListener("pointermove", (event) => show(text(), event.clientX, event.clientY));
  element.addEventListener("pointerleave", hide);
  element.addEventListener("focus", () => {
    const { left, bottom, width } = element.getBoundingClientRect();
    if (element.matches(":focus-visible")) show(text(), left + Math.min(width / 2, 200), bottom - DISTANCE / 2);
  });
  element.addEventListener("blur", hide);
}

addEventListener("keydown", (event) => event.key === "Escape" && hide());
