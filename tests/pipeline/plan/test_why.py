"""Every sentence of `millrace why`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2
from store_builder import StoreBuilder

from contracts.errors import MillraceError
from metadata import paging
from metadata import store as store_module
from metadata.store import Store
from pipeline.plan import why
from pipeline.plan.environment import Environment
from pipeline.plan.fingerprint import Fingerprint

BASE = Fingerprint(
    settings={"trainer.epochs": 1, "label": "big"},
    code={"recipes/small/model.py": "aa"},
    packages={"tensorflow": "2.16.2"},
    files={"data.csv": "11"},
)


def explain(places: Environment, node: str = "Trainer") -> str:
    store = Store.open_sqlite(places.metadata_path)
    assert store is not None
    return why.explain(store, "small", node)


def trained_twice(builder: StoreBuilder, then: Fingerprint, now: Fingerprint, state: str = "COMPLETE") -> None:
    """Two runs of the Trainer on the same input."""
    examples = builder.artifact("Examples")
    for run_id, fingerprint, ended in (("one", then, "COMPLETE"), ("two", now, state)):
        builder.run(run_id)
        builder.node("Trainer", ended, fingerprint, {"examples": examples}, {"model": builder.artifact("Model")})


def test_a_node_that_never_ran(places: Environment, builder: StoreBuilder) -> None:
    with pytest.raises(MillraceError) as caught:
        explain(places)
    assert str(caught.value) == "Trainer of small has not run yet.\nRun it with `millrace run small`."


@pytest.mark.parametrize(
    ("state", "verb"),
    [
        ("COMPLETE", "ran"),
        ("FAILED", "ran (and failed)"),
        ("CANCELED", "ran (and was stopped)"),
        ("RUNNING", "is running"),
        ("NEW", "is running"),
    ],
)
def test_the_first_run(places: Environment, builder: StoreBuilder, state: str, verb: str) -> None:
    builder.run("one")
    builder.node("Trainer", state, BASE)
    assert explain(places) == f"Trainer {verb} because it had never run to its end before."


def test_a_first_run_that_failed_does_not_count(places: Environment, builder: StoreBuilder) -> None:
    for run_id, state in (("one", "FAILED"), ("two", "COMPLETE")):
        builder.run(run_id)
        builder.node("Trainer", state, BASE)
    assert explain(places) == "Trainer ran because it had never run to its end before."


def test_a_cached_node_names_the_run_that_made_its_outputs(places: Environment, builder: StoreBuilder) -> None:
    model = builder.artifact("Model")
    for run_id, state in (("one", "COMPLETE"), ("two", "CACHED"), ("three", "CACHED")):
        builder.run(run_id)
        builder.node("Trainer", state, BASE, outputs={"model": model})
    assert explain(places) == "Trainer was cached: its inputs, settings, code and packages are those of run one."


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        ({"settings": {"trainer.epochs": 2, "label": "big"}}, "setting trainer.epochs (1 -> 2) changed"),
        ({"settings": {"label": "big"}}, "setting trainer.epochs (1 -> unset) changed"),
        ({"settings": {**BASE.settings, "trainer.seed": 3}}, "setting trainer.seed (unset -> 3) changed"),
        ({"code": {"recipes/small/model.py": "bb"}}, "the code of recipes/small/model.py changed"),
        ({"code": {**BASE.code, "recipes/small/new.py": "cc"}}, "the code of recipes/small/new.py changed"),
        ({"packages": {"tensorflow": "2.17.0"}}, "package tensorflow (2.16.2 -> 2.17.0) changed"),
        ({"files": {"data.csv": "22"}}, "the contents of data.csv changed"),
        (
            {"code": {"recipes/small/model.py": "bb"}, "settings": {"trainer.epochs": 2, "label": "big"}},
            "setting trainer.epochs (1 -> 2); the code of recipes/small/model.py changed",
        ),
        (
            {"settings": {name: 1 for name in "abc"}},
            "setting a (unset -> 1); setting b (unset -> 1); setting c (unset -> 1); and 2 more changed",
        ),
    ],
)
def test_what_changed_is_named(
    places: Environment, builder: StoreBuilder, now: dict[str, dict[str, object]], reason: str
) -> None:
    trained_twice(builder, BASE, Fingerprint(**{**vars(BASE), **now}))
    assert explain(places) == f"Trainer ran because {reason}."


def test_a_run_that_failed_names_what_changed_too(places: Environment, builder: StoreBuilder) -> None:
    trained_twice(builder, BASE, Fingerprint(**{**vars(BASE), "code": {"m.py": "x"}}), state="FAILED")
    assert explain(places).startswith("Trainer ran (and failed) because the code of m.py; the code of recipes/small/")


def test_a_run_is_compared_with_the_last_success(places: Environment, builder: StoreBuilder) -> None:
    other = Fingerprint(**{**vars(BASE), "files": {"data.csv": "22"}})
    for run_id, state, fingerprint in (
        ("one", "COMPLETE", BASE),
        ("two", "FAILED", other),
        ("three", "COMPLETE", other),
    ):
        builder.run(run_id)
        builder.node("Trainer", state, fingerprint)
    assert explain(places) == "Trainer ran because the contents of data.csv changed."


def test_a_new_input_names_the_node_that_made_it(places: Environment, builder: StoreBuilder) -> None:
    graph = builder.artifact("TransformGraph")
    for run_id in ("one", "two"):
        builder.run(run_id)
        examples = builder.artifact("Examples")
        builder.node("Transform", outputs={"transformed_examples": examples})
        builder.node("Trainer", "COMPLETE", BASE, {"examples": examples, "transform_graph": graph})
    assert explain(places) == "Trainer ran because its input examples is new: Transform ran before it."


def test_a_new_input_from_elsewhere(places: Environment, builder: StoreBuilder) -> None:
    for run_id in ("one", "two"):
        builder.run(run_id)
        builder.node("Trainer", "COMPLETE", BASE, {"examples": builder.artifact("Examples")})
    assert explain(places) == "Trainer ran because its input examples is new."


def test_outputs_that_are_gone(places: Environment, builder: StoreBuilder, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for run_id in ("one", "two"):
        builder.run(run_id)
        builder.node("Trainer", "COMPLETE", BASE, outputs={"model": builder.artifact("Model", folder)})
    forced = "Trainer ran because it was told to (--force or --from): nothing that it depends on changed."
    assert explain(places) == forced
    shutil.rmtree(folder)
    assert explain(places) == f"Trainer ran because its earlier outputs are no longer there: {folder} is gone."


@pytest.fixture
def partial(builder: StoreBuilder) -> StoreBuilder:
    """A whole run `one`, then `--from Trainer` as `two`: Transform is recorded as cached, without a fingerprint."""
    graph = builder.artifact("TransformGraph")
    builder.run("one")
    builder.node("Transform", "COMPLETE", BASE, {"examples": builder.artifact("Examples")}, {"transform_graph": graph})
    builder.run("two")
    builder.node("Transform", "CACHED", outputs={"transform_graph": graph})
    return builder


def test_a_node_that_a_partial_run_took_over_unchecked(places: Environment, partial: StoreBuilder) -> None:
    assert (
        explain(places, "Transform") == "Transform was taken from run one as it was: the run began after it (--from)."
    )


def test_a_run_is_not_compared_with_a_taken_over_node(places: Environment, partial: StoreBuilder) -> None:
    partial.run("three")
    inputs = {"examples": 2}
    partial.node("Transform", "COMPLETE", Fingerprint(**{**vars(BASE), "code": {"f.py": "x"}}), inputs)
    assert "the code of f.py" in explain(places, "Transform")


def test_the_baseline_is_looked_up_in_every_run(places: Environment, builder: StoreBuilder) -> None:
    for run_id in ("one", "two"):
        builder.run(run_id)
        builder.node("BaselineModel")
    assert explain(places, "BaselineModel") == (
        "BaselineModel runs every time: it looks up the served model to compare with."
    )


@pytest.mark.parametrize(
    ("content", "verdict"),
    [
        ('{"blessed": true, "rows": 9, "metrics": [], "reason": "Blessed: AUC is 1."}', " Blessed: AUC is 1."),
        ('{"blessed": true, "rows": 9, "metrics": []}', ""),  # By an older version.
        ("{", " What came out of it cannot be told: "),
        (None, ""),
    ],
)
def test_the_evaluator_says_why_it_decided_as_it_did(
    places: Environment, builder: StoreBuilder, tmp_path: Path, content: str | None, verdict: str
) -> None:
    if content is not None:
        (tmp_path / "summary.json").write_text(content)
    builder.run("one")
    builder.node("Evaluator", "COMPLETE", BASE, outputs={"evaluation": builder.artifact("ModelEvaluation", tmp_path)})
    explained = explain(places, "Evaluator")
    assert explained.startswith(f"Evaluator ran because it had never run to its end before.{verdict}")
    assert len(explained.splitlines()) == 1 or content == "{"


def test_the_pusher_looks_at_what_is_served_in_every_run(places: Environment, builder: StoreBuilder) -> None:
    for run_id in ("one", "two"):
        builder.run(run_id)
        builder.node("Pusher", "COMPLETE", BASE)
    assert explain(places, "Pusher") == "Pusher ran because what it has to do depends on what is served already."


def test_of_a_long_history_only_the_newest_are_read(
    places: Environment, builder: StoreBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "READ_AT_ONCE", 2)
    for number in range(9):
        builder.run(f"run-{number}")
        builder.node("Trainer", "COMPLETE", Fingerprint(**{**vars(BASE), "files": {"data.csv": str(number)}}))
    asked, read = paging.newest, []

    def reading(*arguments: Any) -> list[mlmd_pb2.Execution]:
        executions = asked(*arguments)
        read.extend(execution.id for execution in executions)
        return executions

    monkeypatch.setattr(paging, "newest", reading)
    assert explain(places) == "Trainer ran because the contents of data.csv changed."
    assert read == [9, 8, 8, 7]


def test_the_run_to_compare_with_is_searched_for_as_far_back_as_needed(
    places: Environment, partial: StoreBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "READ_AT_ONCE", 2)
    for number in range(5):
        partial.run(f"partial-{number}")
        partial.node("Transform", "CACHED", outputs={"transform_graph": 1})
    partial.run("last")
    partial.node("Transform", "COMPLETE", Fingerprint(**{**vars(BASE), "code": {"f.py": "x"}}), {"examples": 2})
    assert "the code of f.py" in explain(places, "Transform")


def test_an_old_run_is_compared_with_the_one_before_it(places: Environment, builder: StoreBuilder) -> None:
    for number in range(4):
        builder.run(f"run-{number}")
        builder.node("Trainer", "COMPLETE", Fingerprint(**{**vars(BASE), "packages": {"tensorflow": str(number)}}))
    store = Store.open_sqlite(places.metadata_path)
    assert store is not None
    sentence = why.explain(store, "small", "Trainer", execution=3)
    assert sentence == "Trainer ran because package tensorflow (1 -> 2) changed."
