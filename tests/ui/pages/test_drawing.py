"""A page with every kind of chart, from a file, in a browser that reaches no network."""

from __future__ import annotations

import re
from collections.abc import Iterator

import demo
import pytest
from browser import Reader, overflow, violations
from playwright.sync_api import Browser, Locator, Page, expect

RUNS = 40
FIGURES = 18


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("demo") / "demo.html"
    path.write_text(demo.rendered(RUNS, inline=True), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def drawn(chromium: Browser, url: str) -> Iterator[Page]:
    """The page at 1,200 pixels with all charts drawn, for the tests that change nothing."""
    reader = Reader(chromium)
    page = reader.open(url)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    yield page
    reader.close()
    assert reader.problems == []


def figure(page: Page, title: str) -> Locator:
    """A chart by its title, in view and drawn."""
    located = page.locator("figure").filter(has=page.locator("figcaption", has_text=title)).first
    located.scroll_into_view_if_needed()
    expect(located).to_have_attribute("data-drawn", "")
    return located


def numbers(chart: Locator) -> list[list[str]]:
    """The rows of a chart's table, opened."""
    chart.locator("summary").click()
    rows = chart.locator("tbody tr")
    expect(rows.first).to_be_visible()
    return [row.locator("th, td").all_inner_texts() for row in rows.all()]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [400, 2000])
def test_the_page_fits_its_window_and_axe_finds_nothing(reader: Reader, url: str, width: int, dark: bool) -> None:
    page = reader.open(url, width=width, dark=dark)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("figure[data-drawn]").count() == page.locator("figure").count() == FIGURES
    assert overflow(page) == 0
    assert violations(page) == []


def test_charts_are_drawn_when_they_come_into_view_and_all_of_them_on_paper(reader: Reader, url: str) -> None:
    page = reader.open(url, height=600)
    expect(page.locator("figure").first).to_have_attribute("data-drawn", "")
    assert page.locator("figure[data-drawn]").count() < FIGURES
    page.pdf()
    expect(page.locator("figure[data-drawn]")).to_have_count(FIGURES)


def test_a_graph_has_a_link_a_node_in_order_with_its_state_as_a_word(drawn: Page) -> None:
    graph = figure(drawn, "The nodes of this run")
    assert [link.get_attribute("href") for link in graph.locator("svg a").all()] == [
        *["#gen", "#stats", "#schema", "#validate", "#transform", "#trainer", "#evaluator"],
    ]
    assert graph.get_by_role("listitem").count() == 8
    trainer = graph.get_by_role("link", name="Trainer, failed, 26.1 s")
    assert trainer.get_attribute("aria-current") == "true"
    assert trainer.locator("text").all_text_contents() == ["✕", "Trainer", "failed · 26.1 s"]
    arrows = graph.locator(".edges path[marker-end]")
    assert arrows.count() == 11
    assert numbers(graph)[6] == ["Evaluator", "waiting", "-", "CsvExampleGen, Trainer"]


@pytest.mark.parametrize(("width", "along"), [(1200, "x"), (400, "y")])
def test_a_graph_runs_to_the_right_where_there_is_room_and_down_where_there_is_none(
    reader: Reader, url: str, width: int, along: str
) -> None:
    graph = figure(reader.open(url, width=width), "The nodes of this run")
    last = graph.get_by_role("listitem", name="Pusher").bounding_box()
    first = graph.get_by_role("link", name=re.compile("^CsvExampleGen")).bounding_box()
    across = "y" if along == "x" else "x"
    assert last[along] - first[along] > abs(last[across] - first[across])


def test_a_graph_that_only_fits_downwards_is_drawn_so(drawn: Page) -> None:
    graph = figure(drawn, "A pipeline of nine nodes")
    assert graph.get_by_role("region").count() == 0
    first = graph.get_by_role("listitem", name="CsvExampleGen").bounding_box()
    last = graph.get_by_role("listitem", name="Pusher").bounding_box()
    assert last["y"] - first["y"] > 500


def test_a_hundred_artifacts_scroll_in_a_frame_of_their_own(drawn: Page) -> None:
    frame = figure(drawn, "Lineage of 100 artifacts").get_by_role("region", name="Lineage of 100 artifacts, scrolls")
    assert frame.locator("svg a").count() == 100
    assert frame.evaluate("node => node.scrollWidth > node.clientWidth")
    frame.focus()
    drawn.keyboard.press("ArrowRight")
    drawn.wait_for_function("document.activeElement.scrollLeft > 0")


def test_every_node_of_a_graph_is_reached_by_keyboard_and_shows_it(reader: Reader, url: str) -> None:
    page = reader.open(url)
    graph = figure(page, "The nodes of this run")
    page.locator("nav.toc a").last.focus()
    seen = []
    for _ in range(7):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.getAttribute('href')"))
    assert seen == ["#gen", "#stats", "#schema", "#validate", "#transform", "#trainer", "#evaluator"]
    focused = graph.locator("a:focus-visible rect")
    assert focused.evaluate("node => getComputedStyle(node).stroke") == "rgb(31, 111, 208)"
    page.keyboard.press("Enter")
    assert page.url.endswith("#evaluator")


def test_a_histogram_shows_shares_of_each_split_and_counts_as_numbers(drawn: Page) -> None:
    chart = figure(drawn, "fare")
    assert chart.locator("ul.legend li").all_inner_texts() == ["train", "eval"]
    svg = chart.get_by_role("img", name="fare: histogram of train and eval, 0 to 36")
    assert svg.locator("[fill^='var(--series-']").count() == 2
    assert svg.locator("text", has_text="dollars").count() == 1
    rows = numbers(chart)
    assert len(rows) == 48
    assert rows[0][:3] == ["train", "0", "1.5"]
    assert rows[24][:3] == ["eval", "0", "1.5"]
    assert sum(int(row[3].replace(",", "")) for row in rows[:24]) == pytest.approx(10_012, abs=12)


def test_bins_of_differing_widths_are_said_to_be_shares_per_unit(drawn: Page) -> None:
    chart = figure(drawn, "bins of differing widths")
    expect(chart.locator(".note-small")).to_have_text("Bins differ in width: heights are shares per unit.")
    assert [row[4] for row in numbers(chart)] == ["50%", "40%", "10%"]


def test_ticks_of_large_numbers_that_are_near_each_other_differ(drawn: Page) -> None:
    texts = figure(drawn, "large and near").locator("svg text").all_text_contents()
    ticks = [text for text in texts if text.startswith("17,031,")]
    assert 1 <= len(ticks) == len(set(ticks)) <= 3


@pytest.mark.parametrize("title", ["nothing", "none"])
def test_a_chart_of_nothing_says_so(drawn: Page, title: str) -> None:
    chart = figure(drawn, title)
    expect(chart.locator(".empty")).to_have_text("No values.")
    assert chart.locator("details").count() == 0


def test_bars_tell_names_and_shares_and_shorten_what_is_too_long(reader: Reader, url: str) -> None:
    chart = figure(reader.open(url, width=400), "company")
    texts = chart.locator("svg text").all_text_contents()
    assert "52% · 50%" in texts
    assert "(empty)(empty)" in texts
    name = "Blue Ribbon Taxi Association of the City of Chicago"
    short = next(text for text in texts if text.startswith("Blue Ribbon")).removesuffix(name)
    assert 12 < len(short) < 30
    assert short.endswith("…")
    assert chart.locator("svg title").nth(1).text_content() == name
    assert chart.locator("svg.plot-frame rect").count() == 7
    assert numbers(chart)[3] == ["(empty)", "120", "1.2%", "-", "-"]


def test_a_line_has_a_gap_where_a_value_is_missing(drawn: Page) -> None:
    chart = figure(drawn, "Loss while training")
    drawn = chart.locator("svg g[fill='none'] path[d]:not([d=''])")
    validation = chart.locator("svg [stroke='var(--series-2)']").first
    assert validation.get_attribute("stroke-dasharray") == "6 4"
    assert validation.locator("path").get_attribute("d").count("M") == 2
    assert drawn.count() >= 2
    assert numbers(chart)[12] == ["validation", "3", "-"]


def test_a_line_of_one_point_is_a_dot(drawn: Page) -> None:
    assert figure(drawn, "One epoch").locator("svg circle").count() == 1


def test_intervals_link_to_their_slices_and_say_what_has_no_value(drawn: Page) -> None:
    chart = figure(drawn, "AUC by slice")
    hrefs = chart.locator("svg a").evaluate_all("links => links.map(link => link.href.baseVal)")
    assert hrefs == ["#slice-3", "#cash"]
    assert chart.locator("svg circle").count() == 4
    texts = chart.locator("svg text").all_text_contents()
    assert "overall 0.931" in texts
    assert "no value" in texts
    assert numbers(chart)[1] == ["trip_start_hour: 3", "212", "0.87", "0.8", "0.93"]


def test_a_scatter_shows_the_dimensions_that_the_reader_chooses(reader: Reader, url: str) -> None:
    chart = figure(reader.open(url), "Runs over two dimensions")
    expect(chart.locator(".note-small")).to_have_text("4 of 40 runs have no value here.")
    assert chart.locator("svg a").count() == 36
    first = chart.locator("svg a").first
    assert first.get_attribute("href") == "/run/0"
    assert first.get_attribute("aria-label").startswith("20260412-000000 (")
    chart.get_by_label("y", exact=True).select_option("trainer.learning_rate")
    expect(chart.locator("svg a")).to_have_count(RUNS)
    texts = chart.locator("svg text").all_text_contents()
    assert {"trainer.learning_rate", "0.001", "0.01", "0.1"} <= set(texts)
    chart.get_by_label("x", exact=True).select_option("recipe")
    expect(chart.locator("svg text", has_text="cifar10")).to_have_count(1)
    assert chart.locator("ul.legend li").all_inner_texts() == ["taxi", "cifar10"]


@pytest.mark.parametrize("title", ["Runs over two dimensions", "Runs over all dimensions"])
def test_runs_are_one_tab_stop_and_arrows_go_through_them(drawn: Page, title: str) -> None:
    chart = figure(drawn, title)
    assert chart.locator("svg a[tabindex='0']").count() == 1
    chart.locator("svg a[tabindex='0']").focus()
    drawn.keyboard.press("ArrowRight")
    second = drawn.evaluate("document.activeElement.getAttribute('href')")
    expect(drawn.locator(".tooltip")).to_contain_text("duration: ")
    drawn.keyboard.press("End")
    last = drawn.evaluate("document.activeElement.getAttribute('href')")
    assert (second, last) == ("/run/1", "/run/39")
    drawn.keyboard.press("Escape")
    expect(drawn.locator(".tooltip")).to_be_hidden()


def test_parallel_coordinates_keep_the_runs_that_the_reader_asks_for(reader: Reader, url: str) -> None:
    chart = figure(reader.open(url), "Runs over all dimensions")
    assert chart.locator("svg a.run").count() == RUNS
    assert chart.locator("svg .name").all_text_contents()[0] == "reciperecipe"
    points = demo.runs(RUNS)
    kept = [point.href for point in points if point.values["recipe"] == "taxi"]
    chart.get_by_label("show").select_option(label="taxi")
    expect(chart.get_by_role("status")).to_have_text(f"{len(kept)} of {RUNS} runs")
    hrefs = chart.locator("svg a.run:not([data-out])").evaluate_all("all => all.map(link => link.getAttribute('href'))")
    assert hrefs == kept


def test_a_run_without_a_value_goes_through_none(drawn: Page) -> None:
    chart = figure(drawn, "Runs over all dimensions")
    assert chart.locator("svg .tick", has_text="none").count() == 2
    fifth = chart.locator("svg a.run").nth(4)
    assert "AUC: -" in fifth.get_attribute("aria-label")
    assert fifth.locator("path.line").get_attribute("d").count(",310") == 2


def test_a_chart_follows_the_width_of_its_window(reader: Reader, url: str) -> None:
    page = reader.open(url)
    svg = figure(page, "company").locator("svg.plot-frame")
    wide = svg.bounding_box()["width"]
    page.set_viewport_size({"width": 400, "height": 900})
    expect(page.locator("nav.toc details")).not_to_have_attribute("open", "")
    page.wait_for_function("document.querySelector('svg.plot-frame').getBoundingClientRect().width < 400")
    assert svg.bounding_box()["width"] < 380 < wide
