"""The browser that tests look at pages with: where it is, and what a page looks like to it.

`python tests/browser.py` prints where Chromium is, `--try` starts it, too; `scripts/browser.sh` asks both.
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


def find(own: Callable[[], str]) -> Path:
    """Where Chromium is: as MILLRACE_CHROMIUM says, else in the PATH, else where Playwright keeps its own.

    Args:
        own: Asks Playwright where that is; called only if need be, for it takes a second.

    Raises:
        NoBrowserError: There is none, or none where the variable says.
    """
    named = os.environ.get(VARIABLE)
    if named:
        if not Path(named).is_file():
            raise NoBrowserError(f"{VARIABLE}={named}: there is no such file. Set it to Chromium's path, or unset it.")
        return Path(named)
    found = next(filter(None, map(shutil.which, PROGRAMS)), None) or own()
    if not Path(found).is_file():
        raise NoBrowserError(
            f"found no Chromium: none of {', '.join(PROGRAMS)} in the PATH, none at {found}. "
            f"Run `make browser` to install one, or set {VARIABLE} to its path."
        )
    return Path(found)


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
    """Someone who opens pages; what goes wrong on them is noted.

    Attributes:
        problems: Messages of the console that are errors or warnings, uncaught exceptions, and requests that
            would have left this machine (none does).
    """

    def __init__(self, browser: Browser) -> None:
        self.problems: list[str] = []
        self._browser = browser
        self._pages: list[Page] = []

    def open(self, url: str, *, width: int = 1200, height: int = 900, dark: bool = False) -> Page:
        """A page in a window of its own, of so many CSS pixels."""
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
    """What axe finds wrong with a page, one line a rule and element."""
    found = Axe().run(page).response["violations"]
    return [f"{rule['id']}: {node['html'][:200]}: {node['failureSummary']}" for rule in found for node in rule["nodes"]]


def overflow(page: Page) -> int:
    """By how many CSS pixels a page is wider than its window."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def playwrights_own() -> str:
    """Where Playwright would keep a Chromium of its own."""
    with sync_playwright() as playwright:
        return playwright.chromium.executable_path


def main() -> int:
    """Says where Chromium is; 1 where there is none."""
    try:
        print(find(playwrights_own))
        if "--try" in sys.argv:
            with started() as browser:
                print(browser.version)
    except Exception as error:  # (whatever Playwright says about a browser that does not start)
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
