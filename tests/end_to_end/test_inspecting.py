"""The dashboard and reports in a browser: runs that succeeded, stopped at the gate, failed or were cached, in one
store.

`MILLRACE_SCREENSHOTS=docs/images make e2e` saves screenshots of the pages for the documentation.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import tfx
from browser import Reader, overflow, violations
from copied_project import Project
from playwright.sync_api import Page

TRIPS = Path(tfx.__file__).parent / "examples" / "chicago_taxi_pipeline" / "data" / "simple" / "data.csv"
ROWS = 6_000
SETTINGS = ("--set", "data.path=trips.csv", "--set", "evaluator.metrics={AUC: {lower_bound: 0.5}, BinaryAccuracy: {}}")
FEW_STEPS = ("--set", "trainer.train_steps=200")
FAST = ("--set", "trainer.params.learning_rate=0.01")
SCREENSHOTS = os.environ.get("MILLRACE_SCREENSHOTS")
SEEN_AT = ((400, True), (2000, False))


@dataclass(frozen=True)
class Story:
    """Runs of the taxi recipe in one store, named by how they ended.

    Attributes:
        project: The project in which they ran.
        address: The address of its dashboard.
    """

    project: Project
    good: str
    other: str
    stopped: str
    failed: str
    cached: str
    address: str

    def report(self, run_id: str) -> str:
        """The URL of a run's report."""
        return (self.project.folder / "artifacts" / "logs" / run_id / "report.html").as_uri()


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    project = Project(tmp_path_factory.mktemp("inspected") / "project")
    trips = "\n".join(TRIPS.read_text(encoding="utf-8").splitlines()[: ROWS + 1]) + "\n"
    (project.folder / "trips.csv").write_text(trips, encoding="utf-8")
    strange = trips.replace(",Credit Card,", ",<b>Shells</b>,", 3)
    (project.folder / "strange.csv").write_text(strange, encoding="utf-8")

    def run(expected: int, *words: str) -> str:
        finished = project.millrace("run", "taxi", *SETTINGS, *FEW_STEPS, *words)
        assert finished.code == expected, finished.errors
        run_id = project.run_ids()[0]
        assert f"artifacts/logs/{run_id}/report.html" in finished.output + finished.errors
        return run_id

    good = run(0)
    other = run(0, *FAST)
    stopped = run(1, "--set", "data.path=strange.csv")
    project.edit(
        "recipes/taxi/model.py", "    settings = Params(**params)\n", "    1 / 0\n    settings = Params(**params)\n"
    )
    failed = run(1)
    project.edit("recipes/taxi/model.py", "    1 / 0\n", "")
    cached = run(0, *FAST)
    server = project.start("inspect", "--port", "0")
    assert server.stdout is not None
    address = server.stdout.readline().split()[1].rstrip("/")
    yield Story(project, good, other, stopped, failed, cached, address)
    server.terminate()
    server.communicate(timeout=60)


def shot(page: Page, name: str) -> None:
    """Saves a screenshot, if screenshots are asked for."""
    if SCREENSHOTS:
        folder = Path(SCREENSHOTS).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        page.wait_for_timeout(300)
        page.screenshot(path=folder / f"{name}.png")


def text_of(page: Page, selector: str) -> str:
    """The visible text of an element, with single spaces."""
    return " ".join(page.locator(selector).inner_text().split())


def test_a_report_tells_of_a_good_run_without_any_network(story: Story, reader: Reader) -> None:
    page = reader.open(story.report(story.other))
    shot(page, "report")

    summary = text_of(page, "#summary")
    [_, version] = story.project.pushed_versions()
    assert f"The model was pushed as version {version}" in summary
    assert page.locator("#graph svg a, #graph svg g.node").count() >= 10
    assert "No anomalies" in text_of(page, "#statistics")
    assert "the very same examples" in text_of(page, "#drift")
    metrics = text_of(page, "#evaluation table >> nth=0")
    values = story.project.evaluation()
    assert f"AUC {values['AUC']:.4f}" in metrics
    assert "≥ 0.5" in metrics
    assert "payment_type=Cash" in text_of(page, "#slices table")
    assert page.locator("#worst-examples tbody tr").count() == 20
    assert "trips.csv" in text_of(page, "#lineage")
    changed = text_of(page, "#settings")
    assert "trainer.params.learning_rate" in changed
    assert "millrace serve taxi" in text_of(page, "#serving")
    page.locator("#evaluation").scroll_into_view_if_needed()
    page.locator("#evaluation svg").first.wait_for()
    page.evaluate("document.querySelector('#evaluation').scrollIntoView()")
    shot(page, "report-evaluation")


def test_the_report_of_a_stopped_run_quotes_the_rows(story: Story, reader: Reader) -> None:
    page = reader.open(story.report(story.stopped))

    assert "DataGate failed" in text_of(page, "#summary")
    data = text_of(page, "#statistics")
    assert "payment_type" in data
    # As text: markup in the data must not become markup of the page.
    assert data.count("<b>Shells</b>") >= 3
    assert page.locator("#statistics b", has_text="Shells").count() == 0
    assert page.locator("#evaluation").count() == 0
    page.evaluate("document.querySelector('#statistics').scrollIntoView()")
    shot(page, "report-anomaly")


def test_the_report_of_a_failed_run_names_the_line_and_the_next_command(story: Story, reader: Reader) -> None:
    page = reader.open(story.report(story.failed))

    summary = text_of(page, "#summary")
    assert "ZeroDivisionError" in summary
    assert "recipes/taxi/model.py" in summary
    assert "millrace run taxi" in page.locator("main").inner_text()


def test_the_report_of_a_cached_run_names_where_its_results_are_from(story: Story, reader: Reader) -> None:
    page = reader.open(story.report(story.cached))

    rows = {row.split()[0]: row for row in page.locator("#graph tbody tr").all_inner_texts()}
    assert "cached" in rows["Trainer"]
    assert story.other in rows["Trainer"]
    assert story.good in rows["Transform"]


@pytest.mark.parametrize(("width", "dark"), SEEN_AT)
def test_reports_are_for_everyone_and_every_screen(story: Story, reader: Reader, width: int, dark: bool) -> None:
    for run_id in (story.other, story.stopped):
        page = reader.open(story.report(run_id), width=width, dark=dark)
        assert violations(page) == []
        assert overflow(page) <= 0


@pytest.mark.parametrize(("width", "dark"), SEEN_AT)
def test_the_dashboard_is_for_everyone_and_every_screen(story: Story, reader: Reader, width: int, dark: bool) -> None:
    for path in ("/", f"/runs/{story.other}", f"/runs/{story.failed}/nodes/Trainer", "/compare", "/models"):
        page = reader.open(f"{story.address}{path}", width=width, dark=dark)
        assert violations(page) == [], path
        assert overflow(page) <= 0, path


def test_the_dashboard_is_clicked_through_from_the_runs_to_the_raw_file(story: Story, reader: Reader) -> None:
    page = reader.open(f"{story.address}/")
    shot(page, "dashboard-runs")
    states = {row.split()[0]: row.split() for row in page.locator("main tbody tr").all_inner_texts()}
    assert [state for state in ("done", "failed") if state in states[story.stopped]] == ["failed"]
    assert "done" in states[story.cached]

    page.get_by_role("link", name=story.other).first.click()
    page.wait_for_url(f"{story.address}/runs/{story.other}")
    shot(page, "dashboard-run")
    page.locator("#graph").get_by_role("link", name="Trainer").first.click()
    page.wait_for_url(f"{story.address}/runs/{story.other}/nodes/Trainer")
    assert "trainer.params.learning_rate" in page.locator("main").inner_text()
    page.locator("#outputs").get_by_role("link").first.click()
    page.get_by_role("link", name="Lineage").first.click()
    page.wait_for_url(f"{story.address}/artifacts/*/lineage")
    shot(page, "dashboard-lineage")
    assert "trips.csv" in page.locator("main").inner_text()


def test_runs_are_compared(story: Story, reader: Reader) -> None:
    page = reader.open(f"{story.address}/compare?recipe=taxi")
    page.locator("figure.chart svg").first.wait_for()
    shot(page, "dashboard-compare")
    assert "trainer.params.learning_rate" in page.locator("main").inner_text()

    page.goto(f"{story.address}/diff/{story.good}/{story.other}")
    assert "trainer.params.learning_rate" in page.locator("main").inner_text()
    finished = story.project.millrace("diff", story.good, story.other, "--html", "difference.html")
    assert finished.code == 0, finished.errors
    page.goto((story.project.folder / "difference.html").as_uri())
    assert "trainer.params.learning_rate" in page.locator("main").inner_text()
    assert violations(page) == []
