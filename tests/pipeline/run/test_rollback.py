"""Rollbacks: what is chosen, what is served, what is recorded and what the user is told."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from store_builder import StoreBuilder

from components.pusher import manifest, versions
from components.pusher.manifest import Origin
from contracts.errors import MillraceError
from contracts.model_reports import NOT_BLESSED
from metadata.store import Store
from pipeline import cli
from pipeline.commands import serving as rollback_command
from pipeline.plan.environment import Environment
from pipeline.run import lock, rollback, run_summary
from pipeline.run.workplace import Workplace

NOW = 1_700_000_000


class Pushes:
    """Pushes the recipe `small`, to the folder and the store, as the Pusher does.

    Args:
        places: The environment.
        builder: Writes the store.
    """

    def __init__(self, places: Environment, builder: StoreBuilder) -> None:
        self.base = places.serving_root / "small"
        self._model = places.pipeline_root / "model"
        self._builder = builder

    def __call__(self, graph: str) -> dict[str, Any]:
        """The PushedModel's properties."""
        self._model.mkdir(parents=True, exist_ok=True)
        (self._model / "saved_model.pb").write_text(graph)
        model = self._builder.artifact("Model")
        summary = {"blessed": True, "rows": 9, "metrics": [{"name": "AUC", "value": 0.9 + model / 100}]}
        evaluation = self._builder.artifact("ModelEvaluation")
        [uri] = [a.uri for a in self._builder.store.get_artifacts_by_id([evaluation])]
        Path(uri, "summary.json").write_text(json.dumps(summary))
        origin = Origin(model_id=model, model_uri="/model", run_id=f"run-{graph}")
        properties = manifest.pushed_properties(*versions.push_version(self._model, self.base, 5, origin))
        self._builder.run(f"run-{graph}")
        self._builder.node("Evaluator", inputs={"model": model}, outputs={"evaluation": evaluation})
        self._builder.node("Pusher", outputs={"pushed_model": self._builder.artifact("PushedModel", **properties)})
        return properties

    def served(self) -> str:
        """The content of the highest version."""
        return (versions.find_versions(self.base)[-1].path / "saved_model.pb").read_text()


@pytest.fixture
def push(places: Environment, builder: StoreBuilder, monkeypatch: pytest.MonkeyPatch) -> Pushes:
    monkeypatch.setattr(versions.time, "time", lambda: float(NOW))
    return Pushes(places, builder)


def test_a_rollback_goes_to_the_version_before_and_again_back(push: Pushes, places: Environment) -> None:
    push("a")
    push("b")
    done = rollback.roll_back("small", Workplace(places))
    assert (done.path.name, done.served_before, done.restored) == (str(NOW + 2), NOW + 1, NOW)
    assert push.served() == "a"
    again = rollback.roll_back("small", Workplace(places))
    assert (again.served_before, again.restored, push.served()) == (NOW + 2, NOW + 1, "b")


def test_a_rollback_may_go_further(push: Pushes, places: Environment) -> None:
    for graph in "abc":
        push(graph)
    rollback.roll_back("small", Workplace(places), NOW)
    assert push.served() == "a"


def refused(places: Environment, to: int | None = None) -> str:
    with pytest.raises(MillraceError) as caught:
        rollback.roll_back("small", Workplace(places), to)
    return str(caught.value)


def test_where_there_is_nothing_to_go_back_to_that_is_said(push: Pushes, places: Environment) -> None:
    assert refused(places) == f"there is nothing to roll back to: {push.base} holds no version."
    push("a")
    assert refused(places) == (
        f"there is nothing to roll back to: {push.base} holds no model but that of version {NOW}, which is served."
    )
    push("b")
    assert refused(places, 5) == f"{push.base} has no version 5; it could go back to {NOW}."
    assert refused(places, NOW + 1) == f"version {NOW + 1} is served already; it could go back to {NOW}."
    rollback.roll_back("small", Workplace(places))
    assert refused(places, NOW) == (
        f"version {NOW} is what version {NOW + 2} serves already; it could go back to {NOW + 1}."
    )


def test_a_rollback_waits_for_no_run(push: Pushes, places: Environment) -> None:
    with lock.held("small", places):
        assert "another run of small is going on" in refused(places)


def test_a_rollback_is_recorded_with_what_it_was_made_of(push: Pushes, places: Environment) -> None:
    first, second = push("a"), push("b")
    assert rollback.roll_back("small", Workplace(places)).recorded
    store = Store.open_sqlite(places.metadata_path)
    assert store is not None
    [execution] = store.history("small", "Rollback")
    [pushed_model] = store.outputs(execution.id)["pushed_model"]
    assert (execution.state, pushed_model.type, pushed_model.state) == ("COMPLETE", "PushedModel", "LIVE")
    expected = {
        "pushed": 1,
        "pushed_version": str(NOW + 2),
        "pushed_destination": str(push.base / str(NOW + 2)),
        "pushed_digest": first["pushed_digest"],
        "current_model_id": first["current_model_id"],
        "rolled_back_from": NOW + 1,
        "restored_version": NOW,
    }
    assert expected.items() <= pushed_model.properties.items()
    assert json.loads(Path(pushed_model.uri, "pushed.json").read_text()).items() >= expected.items()
    inputs = {name: artifact.properties["pushed_version"] for name, [artifact] in store.inputs(execution.id).items()}
    assert inputs == {"rolled_back": second["pushed_version"], "restored": first["pushed_version"]}
    connection = store._store
    contexts = {context.name for context in connection.get_contexts_by_execution(execution.id)}
    assert contexts == {"small", "small.Rollback"}
    rollback.roll_back("small", Workplace(places))
    assert len(store.history("small", "Rollback")) == 2


def test_without_a_store_a_rollback_is_done_all_the_same(push: Pushes, places: Environment) -> None:
    push("a")
    push("b")
    places.metadata_path.unlink()
    assert not rollback.roll_back("small", Workplace(places)).recorded
    assert push.served() == "a"
    assert not places.metadata_path.exists()


def test_after_a_rollback_a_run_does_not_claim_that_its_model_is_served(push: Pushes, places: Environment) -> None:
    first, second = push("a"), push("b")
    assert run_summary.push_state(second) == run_summary.PushState(push.base / str(NOW + 1))
    rollback.roll_back("small", Workplace(places))
    state = run_summary.push_state(second)
    assert (state.served, state.restorable) == (None, NOW + 1)
    assert state.why_not is not None
    assert state.why_not.startswith(
        f"Not served: version {NOW + 2} is, the content of version {NOW}, since the rollback of 20"
    )
    assert state.why_not.endswith(f"; this run's model is version {NOW + 1}.")
    assert run_summary.push_state(first) == run_summary.PushState(push.base / str(NOW + 2))
    rollback.roll_back("small", Workplace(places))
    assert run_summary.push_state(second) == run_summary.PushState(push.base / str(NOW + 3))


def test_a_later_push_is_reported_too(push: Pushes) -> None:
    first, _ = push("a"), push("b")
    assert run_summary.push_state(first) == run_summary.PushState(
        None, f"Not served: version {NOW + 1} is, which was pushed later; this run's model is version {NOW}.", NOW
    )
    shutil.rmtree(push.base / str(NOW))
    assert run_summary.push_state(first).restorable is None


def test_what_was_not_pushed() -> None:
    origin = Origin(model_id=1, model_uri="/model", run_id="run")
    assert run_summary.push_state(manifest.not_pushed_properties(origin, NOT_BLESSED)) == run_summary.PushState()
    state = run_summary.push_state(
        manifest.not_pushed_properties(origin, "the model was rolled back from: it is version 3", 3)
    )
    assert state == run_summary.PushState(None, "Not pushed: the model was rolled back from: it is version 3.", 3)


def command(places: Environment, monkeypatch: pytest.MonkeyPatch, *words: str) -> Result:
    monkeypatch.setattr(rollback_command.environments, "load", lambda _name: places)
    return CliRunner().invoke(cli.main, ["rollback", "small", *words], env={"COLUMNS": "40"})


def test_the_command_says_what_it_did(
    project: Path, push: Pushes, places: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    push("a")
    push("b")
    result = command(places, monkeypatch)
    assert result.exit_code == 0
    assert result.output.splitlines()[:2] == [
        f"Restored   version {NOW}, instead of version {NOW + 1}",
        f"Pushed to  {push.base / str(NOW + 2)}",
    ]
    assert result.output.splitlines()[2].endswith(f"millrace rollback small --to {NOW + 1}")


def test_the_command_reports_errors(
    project: Path, push: Pushes, places: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = command(places, monkeypatch)
    assert (result.exit_code, result.output.startswith("error: there is nothing to roll back to")) == (1, True)
    assert command(places, monkeypatch, "--list").exit_code == 1


def test_the_list_tells_versions_sources_and_metrics(
    project: Path, push: Pushes, places: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    (push.base / "1").mkdir(parents=True)
    push("a")
    push("b")
    rollback.roll_back("small", Workplace(places))
    rows = command(places, monkeypatch, "--list").output.splitlines()
    cells = [[cell.strip() for cell in row.split("  ") if cell.strip()] for row in rows]
    assert [[row[0], *row[2:]] for row in cells[2:5]] == [
        [str(NOW + 2), f"rollback to {NOW}", "1", "0.9100", "served"],
        [str(NOW + 1), "run-b", "4", "0.9400", "rolled back"],
        [str(NOW), "run-a", "1", "0.9100"],
    ]
    assert cells[5] == ["1", "not pushed by a run"]
    assert len(versions.find_versions(push.base)) == 4


def test_a_rollback_imports_neither_tensorflow_nor_tfx() -> None:
    code = "import sys, pipeline.commands.serving as _; print({'tensorflow', 'tfx', 'apache_beam'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
