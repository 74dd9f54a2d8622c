"""One node of a run in its own process: when it runs, what it finds, and what a scheduler is told."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_metadata as mlmd
import pytest
from click.testing import CliRunner
from ml_metadata.proto.metadata_store_pb2 import Execution
from store_builder import StoreBuilder

from contracts.errors import BusyError, DataError, MillraceError, NodeError, SettingsError, StoreError
from metadata.store import NodeRun
from pipeline import cli
from pipeline.plan import fingerprint
from pipeline.plan.environment import Environment
from pipeline.plan.recipe import Recipe
from pipeline.run import lock, node
from pipeline.run.context import RunContext
from pipeline.run.folder import Request, RunFolder
from pipeline.run.workplace import Workplace

Work = Callable[..., list[str]]


def task(small: Recipe, places: Environment, name: str = "Trainer", run_id: str = "one") -> node.Task:
    request = Request(recipe="small", overrides=(), environment="local", run_id=run_id, span=None)
    return node.Task(RunContext(small, Workplace(places), small.find_inputs(), request), name)


@pytest.fixture
def prints(small: Recipe, places: Environment) -> dict[str, fingerprint.Fingerprint]:
    """The current fingerprints of `small`."""
    return fingerprint.fingerprints(small, places, small.find_inputs())


@pytest.fixture
def work(builder: StoreBuilder, monkeypatch: pytest.MonkeyPatch) -> Work:
    """Stands in for TFX: `work("COMPLETE")` makes every node end in that state; returns the nodes that were run."""

    def install(state: str) -> list[str]:
        done: list[str] = []

        def run(to_run: node.Task, _prints: object) -> None:
            done.append(to_run.node)
            if builder.store.get_context_by_type_and_name("pipeline_run", to_run.run_id) is None:
                builder.run(to_run.run_id)
            builder.node(to_run.node, state)

        monkeypatch.setattr(node, "_work", run)
        return done

    return install


def test_a_node_is_run_once_in_a_run(
    small: Recipe, places: Environment, builder: StoreBuilder, work: Work, prints: dict[str, Any]
) -> None:
    done = work("COMPLETE")
    first = node.run(task(small, places, "BaselineModel"))
    assert (first.new, first.record.node, first.record.state) == (True, "BaselineModel", "COMPLETE")
    assert not node.run(task(small, places, "BaselineModel")).new
    assert node.run(task(small, places, "BaselineModel", "two")).new
    assert done == ["BaselineModel"] * 2
    request = Request.model_validate_json(RunFolder(places.log_root / "two").request_path.read_bytes())
    assert request == task(small, places, "BaselineModel", "two").context.request


def test_what_ran_of_other_code_is_not_taken(
    small: Recipe, places: Environment, builder: StoreBuilder, work: Work, prints: dict[str, Any]
) -> None:
    builder.run("one")
    builder.node("Trainer", fingerprint=prints["Trainer"])
    builder.node("Transform", fingerprint=prints["Trainer"])
    done = work("COMPLETE")
    assert not node.run(task(small, places)).new
    with pytest.raises(SettingsError) as caught:
        node.run(task(small, places, "Transform"))
    assert str(caught.value) == (
        "Transform ran in run one already, with other settings, code, packages or data.\nBegin a run with another id."
    )
    assert done == []


def test_what_a_killed_process_left_is_swept_and_nothing_else(
    small: Recipe, places: Environment, builder: StoreBuilder, work: Work
) -> None:
    builder.run("other")
    elsewhere = builder.node("Trainer", "RUNNING")
    builder.run("one")
    beside, dead = builder.node("Evaluator", "RUNNING"), builder.node("Trainer", "RUNNING")
    folders = [
        places.pipeline_root / "small" / name / output / str(number)
        for name, output, number in (
            ("Trainer", "model", dead),
            ("Trainer", ".system/executor_execution", dead),
            ("Trainer", "model", elsewhere),
            ("Evaluator", "blessing", beside),
        )
    ]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "half.bin").touch()
    work("COMPLETE")
    assert node.run(task(small, places)).new
    states = [execution.last_known_state for execution in builder.store.get_executions_by_id([elsewhere, beside, dead])]
    assert states == [Execution.RUNNING, Execution.RUNNING, Execution.CANCELED]
    assert [folder.exists() for folder in folders] == [False, False, True, True]


def test_a_node_that_another_process_runs_is_refused(small: Recipe, places: Environment, work: Work) -> None:
    done = work("COMPLETE")
    with lock.task(places.log_root / "one", "Trainer"):
        with pytest.raises(BusyError) as caught:
            node.run(task(small, places))
        node.run(task(small, places, "Evaluator"))
        node.run(task(small, places, "Trainer", "two"))
    assert str(caught.value) == "Trainer of run one is being run by another process.\nWait for its end."
    assert done == ["Evaluator", "Trainer"]


def test_nodes_and_whole_runs_keep_each_other_away(small: Recipe, places: Environment, work: Work) -> None:
    work("COMPLETE")
    with lock.held("small", places), pytest.raises(BusyError, match="another run of small is going on"):
        node.run(task(small, places))
    with (
        lock.shared("small", places),
        lock.shared("small", places),
        pytest.raises(BusyError, match=f"another run of small is going on \\(process {os.getpid()}\\)"),
        lock.held("small", places),
    ):
        pass


def test_a_held_task_counts_as_going_on(places: Environment) -> None:
    folder = places.log_root / "one"
    assert not lock.is_held("small", places, folder)
    with lock.task(folder, "Trainer"):
        assert lock.is_held("small", places, folder)
        assert not lock.is_held("small", places, places.log_root / "two")
    assert not lock.is_held("small", places, folder)


def test_a_run_belongs_to_one_recipe(small: Recipe, places: Environment, builder: StoreBuilder, work: Work) -> None:
    other = StoreBuilder(places.metadata_path, places.pipeline_root, "other")
    other.run("one")
    other.node("Trainer")
    with pytest.raises(SettingsError) as caught:
        node.run(task(small, places))
    assert str(caught.value) == "run one is a run of other, not of small.\nChoose another --run."


@pytest.mark.parametrize("run_id", ["", "../up", "a b", ".hidden"])
def test_a_run_id_is_a_folders_name(run_id: str) -> None:
    with pytest.raises(SettingsError, match=r"expected letters, digits, `_`, `-` and `\.`"):
        node.check_run_id(run_id)
    node.check_run_id("taxi-2026.11_21")


def test_a_failure_ends_with_what_the_log_ends_with(small: Recipe, places: Environment, work: Work) -> None:
    work("FAILED")
    log = places.log_root / "one" / "Trainer.log"
    log.parent.mkdir(parents=True)
    log.write_text("begin\nout of luck\n")
    with pytest.raises(NodeError) as caught:
        node.run(task(small, places))
    assert str(caught.value) == f"Trainer failed.\nout of luck\n\nLog: {log}"


def test_what_is_interrupted_is_swept(
    small: Recipe, places: Environment, builder: StoreBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []

    def interrupt(_task: node.Task, _prints: object) -> None:
        builder.run("one")
        begun.append(builder.node("Trainer", "RUNNING"))
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(node, "_work", interrupt)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(node.StoppedError), node.stopped_by_the_scheduler():
        node.run(task(small, places))
    [execution] = builder.store.get_executions_by_id(begun)
    assert execution.last_known_state == Execution.CANCELED
    assert signal.getsignal(signal.SIGTERM) == before


def test_the_nodes_before_it_must_have_succeeded(small: Recipe, places: Environment, builder: StoreBuilder) -> None:
    builder.run("one")
    builder.node("ExampleGen")
    builder.node("SchemaGen", "FAILED")
    node._check_upstream(task(small, places), ["ExampleGen"])
    with pytest.raises(SettingsError) as caught:
        node._check_upstream(task(small, places), ["ExampleGen", "SchemaGen", "DataGate"])
    assert str(caught.value) == (
        "Trainer comes after nodes that have not succeeded in run one: SchemaGen (FAILED), DataGate (not begun).\n"
        "Run them first."
    )


@pytest.mark.parametrize(("name", "path"), [("Trainer", "checkpoints/{digest}.lock"), ("Pusher", ".push.lock")])
def test_two_runs_neither_train_the_same_nor_push_at_once(
    small: Recipe, places: Environment, prints: dict[str, Any], name: str, path: str
) -> None:
    file = places.pipeline_root / "small" / path.format(digest=prints["Trainer"].digest)
    with node._exclusively(task(small, places, name), prints), file.open() as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with node._exclusively(task(small, places, "Evaluator"), prints), file.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def failing(error: Exception, to_run: node.Task) -> MillraceError:
    with pytest.raises(MillraceError) as caught, node._translated(to_run):
        raise error
    return caught.value


def in_tfx(cause: Exception) -> RuntimeError:
    """The error as TFX raises it: another error with the real one as its cause."""
    error = RuntimeError("in TFX")
    error.__cause__ = cause
    return error


def test_failures_are_reported_and_what_may_pass_is_told_apart(small: Recipe, places: Environment) -> None:
    to_run = task(small, places)
    log = places.log_root / "one" / "Trainer.log"
    bad = failing(DataError("the data are bad.", "Mend them."), to_run)
    assert isinstance(bad, NodeError)
    assert (str(bad), bad.kind) == (f"Trainer failed.\nthe data are bad.\nMend them.\n\nLog: {log}", "DataError")
    unknown = failing(in_tfx(ZeroDivisionError("division by zero")), to_run)
    assert (type(unknown), str(unknown)) == (NodeError, f"Trainer failed.\nRuntimeError: in TFX\n\nLog: {log}")
    away = failing(in_tfx(mlmd.errors.InternalError("server closed the connection")), to_run)
    assert (type(away), str(away)) == (
        StoreError,
        "the metadata store went away: server closed the connection.\nRun the node again.",
    )


@pytest.mark.parametrize(
    ("outcome", "code", "output"),
    [
        (NodeRun(1, "Trainer", "COMPLETE", 0, 2_500, {}), 0, "Trainer done in 2.5 s\n"),
        (NodeRun(1, "Trainer", "CACHED", 0, 2_500, {}), 0, "Trainer cached\n"),
        (NodeError("Trainer failed."), 1, "error: Trainer failed.\n"),
        (SettingsError("too early."), 2, "error: too early.\n"),
        (BusyError("busy."), 75, "error: busy.\n"),
        (StoreError("away."), 75, "error: away.\n"),
        (KeyboardInterrupt(), 130, "Stopped. Nothing half done is left; the same command goes on.\n"),
        (node.StoppedError(), 143, "Stopped. Nothing half done is left; the same command goes on.\n"),
    ],
)
def test_the_exit_code_says_whether_to_try_again(
    project: Path, monkeypatch: pytest.MonkeyPatch, outcome: NodeRun | BaseException, code: int, output: str
) -> None:
    asked: list[node.Task] = []

    def run(to_run: node.Task) -> node.Done:
        asked.append(to_run)
        if isinstance(outcome, BaseException):
            raise outcome
        return node.Done(outcome, new=True)

    monkeypatch.setattr(node, "run", run)
    result = CliRunner().invoke(
        cli.main, ["node", "run", "small", "trainer", "--run", "one", "--set", "trainer.epochs=3"]
    )
    assert (result.exit_code, result.output.startswith(output)) == (code, True), result.output
    [requested] = asked
    assert (requested.node, requested.run_id, requested.context.recipe.settings.trainer.epochs) == ("Trainer", "one", 3)


def test_what_succeeded_before_is_said(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = NodeRun(1, "Trainer", "COMPLETE", 0, 2_500, {})
    monkeypatch.setattr(node, "run", lambda _task: node.Done(record, new=False))
    result = CliRunner().invoke(cli.main, ["node", "run", "small", "Trainer", "--run", "one"])
    assert result.output == "Trainer succeeded in run one before; nothing to do.\n"
