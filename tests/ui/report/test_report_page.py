"""A run's page as a whole: which sections it has, and that a broken section leaves the others intact."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from report_scene import GRAPH, Page, Scene

from contracts import atomic
from metadata.queries import Queries
from pipeline.plan.environment import Environment
from ui import parts, rendering
from ui.links import Links
from ui.report import page
from ui.report.source import Source, Surroundings

Report = Callable[..., Page]

WHOLE = [
    "summary",
    "graph",
    "training",
    "evaluation",
    "slices",
    "worst-examples",
    "lineage",
    "settings",
    "versions",
    "model-card",
    "serving",
]


def test_a_whole_run_has_all_sections_in_order_and_a_table_of_contents(scene: Scene, report: Report) -> None:
    scene.run("small-1")
    page = report("small-1")
    assert page.sections == WHOLE
    assert [link["href"] for link in page.soup.select("nav a")] == [f"#{name}" for name in WHOLE]
    assert page.soup.title.get_text() == "small-1"


def test_a_screen_reader_can_tell_its_landmarks_apart(scene: Scene, report: Report) -> None:
    scene.run("small-1")
    page = report("small-1").soup
    labels = [region["aria-label"] for region in page.select("[role=region], nav")]
    labels += [heading.get_text() for heading in page.select("section > h2")]
    assert len(labels) == len(set(labels))


def test_it_stands_alone(scene: Scene, report: Report) -> None:
    scene.run("small-1")
    page = report("small-1")
    assert {link["href"].partition(":")[0] for link in page.soup.find_all("link")} == {"data"}
    assert not [script for script in page.soup.find_all("script") if script.get("src")]
    assert {image["src"].partition(":")[0] for image in page.soup.find_all("img")} == {"data"}
    assert all(link["href"].startswith("#") for link in page.soup.find_all("a"))


def test_a_run_that_came_nowhere_has_what_there_is(scene: Scene, report: Report) -> None:
    scene.builder.run("small-1")
    page = report("small-1")
    assert page.sections == ["summary", "graph"]
    assert "It begins." in page.text("summary")
    assert {row[1] for row in page.table("Nodes")[1:]} == {"waiting"}


@pytest.mark.parametrize(
    ("artifact", "file", "content", "broken", "says"),
    [
        ("model_run", "history.csv", None, ["training"], "model_run/history.csv is not there (any more)"),
        ("model_run", "history.csv", "epoch,loss\n0\n", ["training"], "as many values in every line"),
        ("model_run", "history.csv", "epoch,loss\n0,high\n", ["training"], "could not convert string to float: 'high'"),
        ("evaluation", "insights.json", "{", ["evaluation", "worst-examples"], "insights.json does not hold what it"),
        ("blessing", "report.json", "{}", ["serving"], "report.json does not hold what it should: blessed: Field"),
        (
            "model",
            "Format-Serving/assets.extra/card.json",
            None,
            ["training", "versions", "model-card"],
            "card.json is not there (any more)",
        ),
        ("evaluation", "summary.json", '{"blessed": true}', ["evaluation", "slices"], "rows: Field required; metrics"),
    ],
)
def test_a_missing_or_broken_file_costs_its_own_sections_alone(
    scene: Scene, report: Report, artifact: str, file: str, content: object, broken: list[str], says: str
) -> None:
    scene.files[artifact][file] = content
    scene.run("small-1")
    page = report("small-1")
    assert page.sections == WHOLE
    faults = {section["id"]: section.select_one(".error") for section in page.soup.find_all("section")}
    assert [name for name, fault in faults.items() if fault] == broken
    for name in broken:
        assert says in faults[name].get_text()


def test_a_confusion_matrix_that_is_not_square_is_a_broken_file(scene: Scene, report: Report) -> None:
    counts = {"labels": ["0", "1"], "counts": [[1, 2]], "threshold": None}
    scene.files["evaluation"]["insights.json"] = {"task": "binary", "rows": 3, "rows_kept": 3, "confusion": counts}
    scene.run("small-1")
    assert "expected as many rows and columns as labels, 2" in report("small-1").text("evaluation")


def test_names_and_values_are_text_and_never_html(scene: Scene, report: Report, tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    everything = json.dumps(scene.files)
    for word in ("wide", "type=Cash", "Blue", "val_auc", "float32", "bootstrap"):
        everything = everything.replace(word, evil)
    scene.files.update(json.loads(everything))
    scene.files["model_run"]["history.csv"] = "epoch,loss,val_loss\n0,1,1\n"
    scene.run("small-1")
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "failure.json").write_text(json.dumps({"node": "Trainer", "message": evil, "lines": [evil]}))
    page = report(
        "small-1", log_folder=logs, served=evil, commands=((evil, evil),), recipe_text=evil, graph={evil: (), **GRAPH}
    )
    code = [script.get_text() for script in page.soup.select("script:not([type='application/json'])")]
    assert code == [(rendering.STATIC / name).read_text() for name in ("theme.js", "pages.js")]
    assert {image["src"][:5] for image in page.soup.find_all("img")} == {"data:"}
    assert page.charts("slices")[0]["rows"][0]["label"] == evil
    assert evil in page.section("serving").get_text()


def test_what_is_no_image_never_becomes_an_address(scene: Scene, report: Report) -> None:
    worst = scene.files["evaluation"]["insights.json"] = json.loads(
        json.dumps(scene.files["evaluation"]["insights.json"]).replace("data:image/png", "https://example.org/")
    )
    assert "https://example.org/" in json.dumps(worst)
    scene.run("small-1")
    assert not report("small-1").soup.find_all("img")


def test_a_report_is_written_whole_or_not_at_all(
    scene: Scene, places: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.run("small-1")
    store = Queries.open_sqlite(places.metadata_path)
    run = store.run("small-1")
    folder = tmp_path / "reports"
    folder.mkdir()
    path = folder / "report.html"
    path.write_text("the one before")

    def full(_source: str, _target: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(atomic.os, "replace", full)
        with pytest.raises(OSError, match="No space left"):
            page.write(store, run, Surroundings(GRAPH), path)
    assert [(page_shown.name, page_shown.read_text()) for page_shown in folder.iterdir()] == [
        ("report.html", "the one before")
    ]
    page.write(store, run, Surroundings(GRAPH), path)
    assert path.read_text().startswith("<!doctype html>")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "metadata.sqlite").stat().st_mode)


class SiteLinks(Links):
    """As a server has them."""

    def run(self, run_id: str) -> str:
        return f"/runs/{run_id}"

    def node(self, run_id: str, node: str) -> str:
        return f"/runs/{run_id}/nodes/{node}"

    def artifact(self, artifact_id: int) -> str:
        return f"/artifacts/{artifact_id}"


def test_on_a_server_the_same_page_leads_further(scene: Scene, places: Environment) -> None:
    ids = scene.run("small-1")
    store = Queries.open_sqlite(places.metadata_path)
    source = Source.from_run(store, store.run("small-1"))
    html = page.render(source, Surroundings(GRAPH, links=SiteLinks()), inline=False)
    assert 'href="/runs/small-1/nodes/Trainer"' in html
    assert '"href":"/runs/small-1/nodes/Trainer"' in html
    assert f'href="/artifacts/{ids["model"]}"' in html


def test_every_part_has_its_macro() -> None:
    macros = dir(rendering.templates().get_template("parts.html").module)
    names = {part.__name__.lower() for part in get_args(parts.Part)} - {"markup"}
    assert names <= set(macros)


def test_a_section_of_ones_own_is_one_entry(scene: Scene, report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    def plot(source: Source, _surroundings: Surroundings) -> parts.Parts:
        return [parts.Text(f"<{source.run.id}>"), None, parts.Facts([("Nodes", len(source.run.nodes))])]

    monkeypatch.setattr(page, "SECTIONS", (*page.SECTIONS, ("plot", "Plot", plot)))
    scene.run("small-1")
    page_shown = report("small-1")
    assert page_shown.sections == [*WHOLE, "plot"]
    assert page_shown.text("plot") == "Plot <small-1> Nodes 7"
