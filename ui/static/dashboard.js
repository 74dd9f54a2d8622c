// Pages that go on changing: they look for changes, and take over those sections that did change. Scroll, focus, opened
// details and drawn charts stay as they are. Loaded before pages.js, for it compares sections as the server wrote them.
(() => {
  "use strict";
  const LOOK_MS = 2000;
  const SECOND_MS = 1000;
  const body = () => document.querySelector(".body");
  const sections = (root) => [...root.children].filter((node) => node.tagName === "SECTION" && node.id);
  const sources = new Map();
  let etag = null;
  let states = null;

  function remember(root) {
    for (const section of sections(root)) sources.set(section.id, section.outerHTML);
  }

  // Texts that only time changes.
  function tick() {
    for (const node of document.querySelectorAll("[data-since]")) {
      const passed = Math.max(0, Math.round((Date.now() - Number(node.dataset.since)) / SECOND_MS));
      node.textContent = passed < 60 ? `${passed} s` : `${Math.floor(passed / 60)} min ${String(passed % 60).padStart(2, "0")} s`;
    }
  }

  function say(text) {
    const status = document.getElementById("live-status");
    if (status && status.textContent !== text) status.textContent = text;
  }

  function address() {
    const url = new URL(location.href);
    url.searchParams.set("format", "json");
    return url;
  }

  // All that is worth a new page: notes of progress have a place of their own in it.
  function withoutNotes(values) {
    return JSON.stringify(values, (key, value) => (key === "note" ? undefined : value));
  }

  function showNotes(values) {
    for (const node of values.nodes ?? []) {
      const place = [...document.querySelectorAll("[data-note]")].find((each) => each.dataset.note === node.node);
      if (place) place.textContent = node.note;
    }
  }

  function focusIn(section) {
    const active = document.activeElement;
    if (!section.contains(active)) return null;
    const all = [...section.querySelectorAll("a, button, input, select, summary, [tabindex]")];
    return { id: active.id, href: active.getAttribute("href"), index: all.indexOf(active) };
  }

  function focusAgain(section, was) {
    const all = [...section.querySelectorAll("a, button, input, select, summary, [tabindex]")];
    const found =
      all.find((node) => was.id && node.id === was.id) ??
      all.find((node) => was.href && node.getAttribute("href") === was.href) ??
      all[was.index];
    found?.focus({ preventScroll: true });
  }

  const names = (section) => [...section.querySelectorAll("details")].map((node) => node.querySelector("summary")?.textContent);

  function replace(old, fresh) {
    const focused = focusIn(old);
    const open = new Set(names(old).filter((_, index) => old.querySelectorAll("details")[index].open));
    const logs = [...old.querySelectorAll("pre.text")].map((pre) => ({
      top: pre.scrollTop,
      atEnd: pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 4,
    }));
    old.replaceWith(fresh);
    fresh.dispatchEvent(new CustomEvent("pages:replaced", { bubbles: true }));
    for (const node of fresh.querySelectorAll("details")) {
      if (open.has(node.querySelector("summary")?.textContent)) node.open = true;
    }
    fresh.querySelectorAll("pre.text").forEach((pre, index) => {
      if (logs[index]) pre.scrollTop = logs[index].atEnd ? pre.scrollHeight : logs[index].top;
    });
    if (focused) focusAgain(fresh, focused);
  }

  function takeOver(html) {
    const fresh = new DOMParser().parseFromString(html, "text/html");
    const root = body();
    const theirs = fresh.querySelector(".body");
    if (!theirs) return;
    const anchor = sections(root).find((node) => node.getBoundingClientRect().bottom > 80);
    const top = anchor?.getBoundingClientRect().top;
    let before = null;
    const kept = new Set();
    for (const section of sections(theirs)) {
      kept.add(section.id);
      const there = document.getElementById(section.id);
      const source = section.outerHTML;
      const mine = document.adoptNode(section);
      if (!there) before ? before.after(mine) : root.prepend(mine);
      if (!there) mine.dispatchEvent(new CustomEvent("pages:replaced", { bubbles: true }));
      else if (sources.get(section.id) !== source) replace(there, mine);
      sources.set(section.id, source);
      before = document.getElementById(section.id);
    }
    for (const section of sections(root)) if (!kept.has(section.id)) section.remove();
    const contents = document.querySelector("nav.toc ol");
    const theirContents = fresh.querySelector("nav.toc ol");
    if (contents && theirContents && contents.children.length !== theirContents.children.length) {
      contents.replaceWith(document.adoptNode(theirContents));
    }
    root.toggleAttribute("data-live", theirs.hasAttribute("data-live"));
    const now = anchor && document.getElementById(anchor.id)?.getBoundingClientRect().top;
    if (now !== undefined && top !== undefined && now !== top) scrollBy({ top: now - top, behavior: "instant" });
    tick();
  }

  async function look() {
    const answer = await fetch(address(), { headers: etag ? { "If-None-Match": etag } : {}, cache: "no-store" });
    if (answer.status === 304) return;
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    etag = answer.headers.get("ETag");
    const values = await answer.json();
    showNotes(values);
    const seen = withoutNotes(values);
    const changed = states !== null && states !== seen;
    states = seen;
    if (!changed) return;
    const page = await fetch(location.href, { cache: "no-store" });
    if (!page.ok) throw new Error(`status ${page.status}`);
    takeOver(await page.text());
    say("This page has changed.");
  }

  async function follow() {
    if (body()?.hasAttribute("data-live") && !document.hidden) {
      try {
        await look();
        body().classList.remove("stale");
      } catch {
        body().classList.add("stale");
        say("The dashboard does not answer now.");
      }
    }
    setTimeout(follow, LOOK_MS);
  }

  function start() {
    if (!body()) return;
    remember(body());
    tick();
    setInterval(tick, SECOND_MS);
    if (document.querySelector("[data-again]")) setTimeout(() => location.reload(), LOOK_MS);
    else follow();
  }

  start();
})();
