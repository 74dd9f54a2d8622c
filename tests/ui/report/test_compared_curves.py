"""The training curves of two runs over each other, on the page that compares them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from report_scene import Page, Scene

from metadata.queries import Queries
from pipeline.plan.environment import Environment
from ui.links import Links
from ui.report import comparison

Compare = Callable[[str, str], Page]

HISTORY = "epoch,auc,loss,lr,val_loss\n0,0.6,0.7,0.1,0.6\n1,0.9,0.2,0.1,0.3\n"
OTHER = "epoch,loss,precision,val_loss\n0,0.5,0.1,0.6\n"


@pytest.fixture
def compare(places: Environment) -> Compare:
    def read(before: str, after: str) -> Page:
        store = Queries.open_sqlite(places.metadata_path)
        assert store is not None
        runs = store.run(before), store.run(after)
        assert runs[0] is not None
        assert runs[1] is not None
        return Page(comparison.render(store, runs[0], runs[1], inline=False, links=Links()))

    return read


def two(scene: Scene, history: str) -> None:
    """`small-1` with the scene's history, and `small-2` with this one."""
    scene.run("small-1")
    scene.files["model_run"]["history.csv"] = history
    scene.run("small-2")


def test_each_metric_of_both_has_a_chart_and_each_run_a_colour(scene: Scene, compare: Compare) -> None:
    two(scene, HISTORY)
    charts = compare("small-1", "small-2").charts("training")
    assert [(chart["kind"], chart["title"], chart["markers"]) for chart in charts] == [
        ("lines", "loss", True),
        ("lines", "auc", True),
        ("lines", "learning rate", True),
    ]
    assert charts[0]["series"] == [
        {"name": "small-1, training", "points": [[1, 0.9], [2, 0.5], [3, 0.3]], "dashed": False, "group": 0},
        {"name": "small-1, validation", "points": [[1, 0.8], [2, 0.4], [3, None]], "dashed": True, "group": 0},
        {"name": "small-2, training", "points": [[1, 0.7], [2, 0.2]], "dashed": False, "group": 1},
        {"name": "small-2, validation", "points": [[1, 0.6], [2, 0.3]], "dashed": True, "group": 1},
    ]
    assert [(line["name"], line["group"]) for line in charts[1]["series"]] == [
        ("small-1, training", 0),
        ("small-1, validation", 0),
        ("small-2, training", 1),
    ]
    assert charts[2]["series"][1] == {
        "name": "small-2",
        "points": [[1, 0.1], [2, 0.1]],
        "dashed": False,
        "group": 1,
    }


def test_what_only_one_of_them_logged_has_no_chart(scene: Scene, compare: Compare) -> None:
    two(scene, OTHER)
    assert [chart["title"] for chart in compare("small-1", "small-2").charts("training")] == ["loss"]


def test_trainings_that_have_nothing_in_common(scene: Scene, compare: Compare) -> None:
    two(scene, "epoch,mae\n0,1.5\n")
    page = compare("small-1", "small-2")
    assert page.charts("training") == []
    assert "The two trainings have no metric in common." in page.text("training")


def test_a_model_that_was_taken_from_the_cache_was_trained_once(scene: Scene, compare: Compare) -> None:
    ids = scene.run("small-1")
    scene.builder.run("small-2")
    scene.builder.node("Trainer", "CACHED", outputs={"model_run": ids["model_run"], "model": ids["model"]})
    page = compare("small-1", "small-2")
    assert page.charts("training") == []
    assert "Both runs have the very same model: it was trained once." in page.text("training")


def test_a_history_that_is_gone_is_named(scene: Scene, compare: Compare) -> None:
    scene.run("small-1")
    scene.files["model_run"]["history.csv"] = None
    scene.run("small-2")
    page = compare("small-1", "small-2")
    assert page.charts("training") == []
    assert "history.csv" in page.text("training")


def test_a_run_that_trained_nothing_has_no_curves(scene: Scene, compare: Compare) -> None:
    scene.run("small-1")
    scene.builder.run("small-2")
    scene.builder.node("Trainer", "FAILED")
    assert "training" not in compare("small-1", "small-2").sections
