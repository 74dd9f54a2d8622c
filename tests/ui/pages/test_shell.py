"""What a page is besides its charts: themes, tables, filters, commands; under a strict content security policy, too."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import demo
import pytest
from browser import Reader
from playwright.sync_api import Page, expect

from ui import rendering

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'"
THEME = "document.documentElement.dataset.theme ?? null"
BACKGROUND = "getComputedStyle(document.documentElement).backgroundColor"
DARK, LIGHT = "rgb(20, 23, 27)", "rgb(255, 255, 255)"


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder under the dashboard's content security policy."""

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("shell")
    (made / "static").symlink_to(rendering.STATIC)
    for inline in (True, False):
        name = "file.html" if inline else "served.html"
        (made / name).write_text(demo.rendered(20, inline=inline), encoding="utf-8")
    return made


@pytest.fixture
def served(folder: Path) -> Iterator[str]:
    """The page whose style and script are files of a server."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/served.html"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def url(folder: Path) -> str:
    return (folder / "file.html").as_uri()


def column(page: Page, index: int) -> list[str]:
    """The texts of a column of the nodes' table that are shown."""
    rows = page.get_by_role("group", name="Nodes", exact=True).locator("tbody tr:visible")
    return [row.locator("th, td").nth(index).inner_text() for row in rows.all()]


def test_a_strict_content_security_policy_is_no_obstacle(reader: Reader, served: str) -> None:
    page = reader.open(served)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(page.locator("figure[data-drawn]")).to_have_count(18)
    assert page.locator("[style*='--heat']").count() == 4
    page.get_by_role("button", name="Switch to the dark theme").click()
    page.reload()
    assert page.evaluate(BACKGROUND) == DARK


def test_no_markup_carries_a_style_or_a_handler(folder: Path) -> None:
    text = (folder / "served.html").read_text(encoding="utf-8")
    assert " style=" not in text
    assert " onclick=" not in text
    assert "<style" not in text
    assert text.count("<script src=") == 2


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_theme_is_the_systems_until_the_reader_chooses(reader: Reader, url: str, dark: bool) -> None:
    page = reader.open(url, dark=dark)
    assert page.evaluate(THEME) is None
    assert page.evaluate(BACKGROUND) == (DARK if dark else LIGHT)
    chosen, other = ("light", "dark") if dark else ("dark", "light")
    page.get_by_role("button", name=f"Switch to the {chosen} theme").click()
    assert page.evaluate(BACKGROUND) == (LIGHT if dark else DARK)
    page.reload()
    assert page.evaluate(THEME) == chosen
    expect(page.get_by_role("button", name=f"Switch to the {other} theme")).to_be_visible()


def test_a_chart_takes_the_theme_without_being_drawn_again(reader: Reader, url: str) -> None:
    page = reader.open(url)
    rect = page.locator(".graph .is-done rect").first
    expect(rect).to_be_visible()
    light = rect.evaluate("node => { node.mine = true; return getComputedStyle(node).stroke; }")
    page.get_by_role("button", name="Switch to the dark theme").click()
    dark, same = rect.evaluate("node => [getComputedStyle(node).stroke, node.mine]")
    assert (light, dark, same) == ("rgb(27, 110, 60)", "rgb(116, 207, 148)", True)


def test_the_theme_can_be_chosen_where_storage_is_refused(reader: Reader, url: str) -> None:
    page = reader.open("about:blank")
    page.add_init_script("Object.defineProperty(window, 'localStorage', {get() { throw new Error('refused'); }})")
    page.goto(url)
    page.get_by_role("button", name="Switch to the dark theme").click()
    assert page.evaluate(BACKGROUND) == DARK
    expect(page.locator("figure[data-drawn]").first).to_be_visible()


def test_paper_is_light(reader: Reader, url: str) -> None:
    page = reader.open(url, dark=True)
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(BACKGROUND) == LIGHT
    expect(page.locator("nav.toc")).to_be_hidden()


def test_a_table_is_sorted_by_click_and_by_keyboard(reader: Reader, url: str) -> None:
    page = reader.open(url)
    took = page.get_by_role("columnheader", name="Took")
    took.get_by_role("button").click()
    assert took.get_attribute("aria-sort") == "ascending"
    assert column(page, 2) == ["0.2 s", "26.1 s", "1 min 40 s", "", ""]
    page.keyboard.press("Enter")
    assert took.get_attribute("aria-sort") == "descending"
    assert column(page, 2) == ["1 min 40 s", "26.1 s", "0.2 s", "", ""]
    node = page.get_by_role("columnheader", name="Node", exact=True)
    node.get_by_role("button").focus()
    page.keyboard.press("Space")
    assert took.get_attribute("aria-sort") is None
    assert column(page, 0) == ["CsvExampleGen", "DataGate", "Evaluator", "Trainer", "Transform"]


def test_a_filter_shows_the_rows_with_its_words_and_says_how_many(reader: Reader, url: str) -> None:
    page = reader.open(url)
    page.get_by_label("Filter nodes").fill("tra done")
    assert column(page, 0) == ["Transform"]
    expect(page.locator(".filter [role=status]")).to_have_text("1 of 5")
    page.get_by_label("Filter nodes").fill("")
    assert len(column(page, 0)) == 5


def test_a_command_is_copied(reader: Reader, served: str) -> None:
    page = reader.open(served)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy: millrace run taxi").click()
    expect(page.locator(".command-frame [role=status]")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()").startswith("millrace run taxi --set trainer.epochs=3 ")


def test_lines_of_a_difference_are_told_apart(reader: Reader, url: str) -> None:
    lines = reader.open(url).locator("pre.diff span")
    assert [line.get_attribute("class") for line in lines.all()] == ["place", "removed", "added", None]


def test_the_contents_are_beside_a_wide_page_and_a_menu_on_a_narrow_one(reader: Reader, url: str) -> None:
    page = reader.open(url)
    link = page.get_by_role("navigation", name="Contents").get_by_role("link", name="Slices")
    expect(link).to_be_visible()
    page.set_viewport_size({"width": 400, "height": 800})
    expect(link).to_be_hidden()
    page.get_by_text("Contents", exact=True).click()
    link.click()
    expect(link).to_be_hidden()
    expect(page.locator("#slices")).to_be_in_viewport()


def test_the_keyboard_skips_to_the_content(reader: Reader, url: str) -> None:
    page = reader.open(url)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_in_viewport()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"


def test_a_wide_table_scrolls_within_itself_and_keeps_its_first_column(reader: Reader, url: str) -> None:
    page = reader.open(url, width=400)
    region = page.get_by_role("group", name="Nodes", exact=True)
    before = region.locator("tbody th").first.bounding_box()["x"]
    region.evaluate("node => node.scrollTo(120, 0)")
    assert region.evaluate("node => node.scrollLeft") == 120
    assert region.locator("tbody th").first.bounding_box()["x"] == before


def test_what_comes_later_is_set_up_like_the_rest(reader: Reader, url: str) -> None:
    page = reader.open(url)
    page.evaluate(
        """() => {
          const html = '<figure class="chart"><figcaption>later</figcaption><div class="plot"></div>' +
            '<script type="application/json">{"kind":"bars","title":"later","series":[]}</script></figure>' +
            '<pre class="command">millrace runs</pre>';
          const section = document.createElement('section');
          section.innerHTML = html;
          document.querySelector('main').prepend(section);
          section.dispatchEvent(new CustomEvent('pages:replaced', {bubbles: true}));
        }"""
    )
    expect(page.locator("main section").first.locator(".empty")).to_have_text("No values.")
    expect(page.get_by_role("button", name="Copy: millrace runs")).to_have_count(1)
    assert page.locator(".command-frame button").count() == 2


def test_a_link_into_closed_details_opens_them(reader: Reader, url: str) -> None:
    page = reader.open(url)
    expect(page.locator("#inner")).to_be_hidden()
    page.get_by_role("link", name="to what is closed").click()
    expect(page.locator("#inner")).to_be_in_viewport()
