"""What an artifact was made from, and what was made from it."""

from __future__ import annotations

import pytest
from store_builder import StoreBuilder

from metadata import lineage
from pipeline.plan.environment import Environment
from pipeline.run.workplace import Workplace


@pytest.fixture
def chain(builder: StoreBuilder) -> dict[str, int]:
    """Examples -> model -> pushed, then the same again with cached examples."""
    ids = {name: builder.artifact("Model", f"/{name}") for name in ("examples", "model", "pushed", "model2")}
    builder.run("one")
    builder.node("ExampleGen", outputs={"examples": ids["examples"]})
    builder.node("Trainer", inputs={"examples": ids["examples"]}, outputs={"model": ids["model"]})
    builder.node("Pusher", inputs={"model": ids["model"]}, outputs={"pushed_model": ids["pushed"]})
    builder.run("two")
    builder.node("ExampleGen", "CACHED", outputs={"examples": ids["examples"]})
    builder.node("Trainer", inputs={"examples": ids["examples"]}, outputs={"model": ids["model2"]})
    builder.node("Pusher", "CACHED", inputs={"model": ids["model"]}, outputs={"pushed_model": ids["pushed"]})
    return ids


def traced(
    places: Environment, artifact: int, direction: lineage.Direction = "up", limit: int = 500
) -> lineage.Lineage:
    store = Workplace(places).open_store()
    assert store is not None
    lineage_part = lineage.trace(store, artifact, direction, limit)
    assert lineage_part is not None
    return lineage_part


def steps(part: lineage.Lineage) -> list[tuple[str | None, str]]:
    return [(step.place.run, step.place.node) for step in part.steps.values()]


def test_up_to_the_first_producers(places: Environment, chain: dict[str, int]) -> None:
    part = traced(places, chain["pushed"])
    assert steps(part) == [("one", "ExampleGen"), ("one", "Trainer"), ("one", "Pusher")]
    assert set(part.artifacts) == {chain["pushed"], chain["model"], chain["examples"]}
    [step] = part.steps_next_to(chain["pushed"])
    assert (step.inputs, step.outputs) == ({"model": (chain["model"],)}, {"pushed_model": (chain["pushed"],)})
    assert part.whole


def test_down_to_everything_made_from_it(places: Environment, chain: dict[str, int]) -> None:
    part = traced(places, chain["examples"], "down")
    assert steps(part) == [("one", "Trainer"), ("one", "Pusher"), ("two", "Trainer")]
    assert set(part.artifacts) == set(chain.values())
    assert [step.place.run for step in part.steps_next_to(chain["examples"])] == ["one", "two"]


def test_a_walk_that_gets_too_long_says_so(places: Environment, chain: dict[str, int]) -> None:
    part = traced(places, chain["examples"], "down", limit=1)
    assert not part.whole
    assert set(part.artifacts) == {chain["examples"], chain["model"], chain["model2"]}


def test_an_artifact_that_nothing_made_is_its_own_lineage(places: Environment, builder: StoreBuilder) -> None:
    alone = builder.artifact("Model")
    part = traced(places, alone)
    assert (set(part.artifacts), part.steps, part.steps_next_to(alone)) == ({alone}, {}, [])


def test_no_lineage_of_what_is_not_there(places: Environment, builder: StoreBuilder) -> None:
    store = Workplace(places).open_store()
    assert store is not None
    assert lineage.trace(store, 7) is None
