// A link to something inside closed details opens them.
function reveal() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  let closed = target.closest("details:not([open])");
  if (!closed) return;
  for (; closed; closed = closed.parentElement.closest("details:not([open])")) closed.open = true;
  target.scrollIntoView();
}

export function setUpTargets() {
  addEventListener("hashchange", reveal);
  reveal();
}
