// The table of contents: open beside a wide page, closed above a narrow one; marks the section that is being read.
const wide = matchMedia("(min-width: 1100px)");

function spy(links) {
  const visible = new Set();
  const targets = links.map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1))));
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) visible.add(target);
        else visible.delete(target);
      }
      const first = targets.findIndex((target) => visible.has(target));
      links.forEach((link, index) => {
        if (index === first) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      });
    },
    { rootMargin: "-64px 0px -50% 0px" },
  );
  for (const target of targets) if (target) observer.observe(target);
}

export function setUpContents() {
  const details = document.querySelector("nav.toc details");
  if (!details) return;
  const fit = () => (details.open = wide.matches);
  wide.addEventListener("change", fit);
  fit();
  const links = [...details.querySelectorAll('a[href^="#"]')];
  for (const link of links) {
    link.addEventListener("click", () => {
      if (!wide.matches) details.open = false;
    });
  }
  spy(links);
}
