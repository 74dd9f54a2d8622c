// Runs before the first paint: the theme that the reader chose, where one is remembered.
try {
  const theme = localStorage.getItem("millrace-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage is refused: the system's theme it is.
}
