"""The same pages from a store in PostgreSQL."""

from __future__ import annotations

import pytest
from dashboard_scene import get, values

from pipeline.plan.environment import Environment
from ui.dashboard.site import Site


@pytest.fixture
def places(postgres_places: Environment) -> Environment:
    """An empty database."""
    return postgres_places


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/runs/small-1", "small-1"),
        ("/runs/small-1/nodes/ExampleGen", "ExampleGen"),
        ("/artifacts?type=Model", "Model"),
        ("/artifacts/{pushed}", "PushedModel"),
        ("/artifacts/{pushed}/lineage", "Lineage of PushedModel"),
        ("/models", "0.9500"),
        ("/compare?recipe=small", "small-2"),
        ("/diff/small-1/small-2", "small-1"),
    ],
)
def test_each_page_is_there(shown: Site, ids: dict[str, int], path: str, said: str) -> None:
    answer = get(shown, path.format(**ids))

    assert answer.status == 200
    assert said in answer.text


def test_runs_newest_first(shown: Site, ids: dict[str, int]) -> None:
    assert [(run["run"], run["deployed"]) for run in values(shown, "/")] == [("small-2", True), ("small-1", False)]


def test_an_empty_database_says_how_to_make_a_run(shown: Site) -> None:
    answer = get(shown, "/")

    assert "millrace run taxi" in answer.text
