// `td[data-heat]`, 0 to 1: its shade. Set from here, for a strict content security policy lets no markup carry a style.
export function setUpHeat(root) {
  for (const cell of root.querySelectorAll("[data-heat]")) {
    const heat = Math.min(1, Math.max(0, Number(cell.dataset.heat) || 0));
    cell.style.setProperty("--heat", heat);
  }
}
