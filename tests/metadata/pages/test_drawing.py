"""A page with every kind of chart, from a file, in a browser that reaches no network."""

from __future__ import annotations

from pathlib import Path

import demo
import pytest
from browser import Reader, overflow, violations
from playwright.sync_api import Locator, Page, expect

from metadata.pages import rendering

RUNS = 40


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    own = demo.templates()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rendering, "templates", lambda: own)
        text = rendering.render("demo.html", inline=True, links=rendering.Links(), **demo.values(RUNS))
    path = tmp_path_factory.mktemp("demo") / "demo.html"
    path.write_text(text, encoding="utf-8")
    return path.as_uri()


def figure(page: Page, title: str) -> Locator:
    """A chart by its title, in view and drawn."""
    found = page.locator("figure").filter(has=page.locator("figcaption", has_text=title)).first
    found.scroll_into_view_if_needed()
    expect(found).to_have_attribute("data-drawn", "")
    return found


def draw_all(page: Page) -> None:
    """As printing does."""
    page.evaluate("dispatchEvent(new Event('beforeprint'))")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [400, 1200, 2000])
def test_every_page_fits_its_window_and_axe_finds_nothing(reader: Reader, url: str, width: int, dark: bool) -> None:
    page = reader.open(url, width=width, dark=dark)
    draw_all(page)
    assert page.locator("figure[data-drawn]").count() == page.locator("figure").count() == 16
    assert overflow(page) == 0
    assert violations(page) == []
