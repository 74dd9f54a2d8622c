"""The browser in which tests look at pages: how to find it, and what it shows of a page.

`python tests/browser.py` prints the path of Chromium, `--try` also starts it; `scripts/browser.sh` uses both.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

VARIABLE = "MILLRACE_CHROMIUM"
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
LOOPBACK = ("127.0.0.1", "localhost", "::1")
TIMEOUT_MS = 60_000


class NoBrowserError(Exception):
    """There is no Chromium on this machine."""


def find(ask_playwright: Callable[[], str]) -> Path:
    """The path of Chromium: MILLRACE_CHROMIUM's, else one in the PATH, else Playwright's own.

    Args:
        ask_playwright: Returns the path of Playwright's own; called only if needed, since it takes a second.

    Raises:
        NoBrowserError: There is no Chromium, or none at the variable's path.
    """
    named = os.environ.get(VARIABLE)
    if named:
        if not Path(named).is_file():
            raise NoBrowserError(f"{VARIABLE}={named}: there is no such file. Set it to Chromium's path, or unset it.")
        return Path(named)
    path = next(filter(None, map(shutil.which, PROGRAMS)), None) or ask_playwright()
    if not Path(path).is_file():
        raise NoBrowserError(
            f"found no Chromium: none of {', '.join(PROGRAMS)} in the PATH, none at {path}. "
            f"Run `make browser` to install one, or set {VARIABLE} to its path."
        )
    return Path(path)


@contextmanager
def started() -> Iterator[Browser]:
    """A headless Chromium."""
    with sync_playwright() as playwright:
        program = find(lambda: playwright.chromium.executable_path)
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS), timeout=TIMEOUT_MS)
        try:
            yield browser
        finally:
            browser.close()


class Reader:
    """Opens pages and records what goes wrong on them.

    Attributes:
        problems: Errors and warnings in the console, uncaught exceptions, and requests that would have left this
            machine (all are blocked).
    """

    def __init__(self, browser: Browser) -> None:
        self.problems: list[str] = []
        self._browser = browser
        self._pages: list[Page] = []

    def open(self, url: str, *, width: int = 1200, height: int = 900, dark: bool = False) -> Page:
        """Opens a page in a window of its own; `width` and `height` are in CSS pixels."""
        context = self._browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        context.set_default_timeout(TIMEOUT_MS)
        page = context.new_page()
        self._pages.append(page)
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.route("**/*", self._route)
        page.goto(url)
        return page

    def close(self) -> None:
        """Closes all windows."""
        for page in self._pages:
            page.context.close()

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.problems.append(text)

    def _route(self, route) -> None:
        url = urlsplit(route.request.url)
        if url.scheme in ("file", "data", "blob") or url.hostname in LOOPBACK:
            route.continue_()
        else:
            self.problems.append(f"a request to {route.request.url}")
            route.abort()


def violations(page: Page) -> list[str]:
    """What axe finds wrong with a page, one line per rule and element."""
    results = Axe().run(page).response["violations"]
    return [
        f"{rule['id']}: {node['html'][:200]}: {node['failureSummary']}" for rule in results for node in rule["nodes"]
    ]


def overflow(page: Page) -> int:
    """How many CSS pixels a page is wider than its window."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def playwrights_own() -> str:
    """The path where Playwright would install its own Chromium."""
    with sync_playwright() as playwright:
        return playwright.chromium.executable_path


def main() -> int:
    """Prints the path of Chromium; returns 1 if there is none."""
    try:
        print(find(playwrights_own))
        if "--try" in sys.argv:
            with started() as browser:
                print(browser.version)
    except Exception as error:  # (whatever Playwright raises for a browser that does not start)
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
