import { h } from "../dom.js";

const KEY = "millrace-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

function current() {
  return document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
}

function remember(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Storage is refused: the choice lasts as long as the page.
  }
}

export function setUpTheme() {
  const place = document.querySelector("[data-theme-toggle]");
  if (!place) return;
  const button = h("button", { type: "button", class: "theme" });
  const show = () => {
    const other = current() === "dark" ? "light" : "dark";
    button.textContent = other === "dark" ? "Dark" : "Light";
    button.setAttribute("aria-label", `Switch to the ${other} theme`);
  };
  button.addEventListener("click", () => {
    const theme = current() === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    remember(theme);
    show();
  });
  dark.addEventListener("change", show);
  show();
  place.append(button);
}
