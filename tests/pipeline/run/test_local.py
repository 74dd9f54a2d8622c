"""Local runs: who may run, what a killed run leaves, and how failures are reported."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from ml_metadata.proto.metadata_store_pb2 import Execution
from store_builder import StoreBuilder

from contracts.errors import MillraceError, NodeError, StoreError
from contracts.failure import Failure, read_failure
from metadata.store import NodeRun
from pipeline.plan.environment import Environment
from pipeline.run import context, local, progress
from pipeline.run.context import RunContext
from pipeline.run.folder import RunFolder

RunSmall = Callable[..., local.Run]


def test_a_second_run_of_a_recipe_is_refused(run_small: RunSmall, places: Environment, started: list[str]) -> None:
    folder = places.pipeline_root / "small"
    folder.mkdir(parents=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711")
        lock.flush()
        with pytest.raises(MillraceError) as caught:
            run_small()
    assert str(caught.value) == ("another run of small is going on (process 4711).\nWait for its end, or stop it.")
    assert started == []


def test_the_lock_names_its_holder_and_is_freed(run_small: RunSmall, places: Environment, started: list[str]) -> None:
    for _ in range(2):
        run_small()
        assert (places.pipeline_root / "small" / ".lock").read_text() == str(os.getpid())
    assert len(started) == 2


def test_a_killed_runs_leftovers_are_swept(
    run_small: RunSmall, places: Environment, builder: StoreBuilder, started: list[str]
) -> None:
    builder.run("one")
    done, dead = builder.node("Transform"), builder.node("Trainer", "RUNNING")
    folders = {
        (node, output, number): places.pipeline_root / "small" / node / output / str(number)
        for node, output, number in (
            ("Trainer", "model", dead),
            ("Trainer", "model_run", dead),
            ("Trainer", "model", done),
            ("Transform", "transform_graph", done),
        )
    }
    for folder in folders.values():
        folder.mkdir(parents=True)
        (folder / "half.bin").touch()
    own = places.pipeline_root / "small" / "Trainer" / ".system" / "stateful_working_dir"
    (own / "0a-1b").mkdir(parents=True)
    run_small()
    assert not list(own.iterdir())
    assert {name for name, folder in folders.items() if not folder.exists()} == {
        ("Trainer", "model", dead),
        ("Trainer", "model_run", dead),
    }
    states = {e.id: e.last_known_state for e in builder.store.get_executions()}
    assert states == {done: Execution.COMPLETE, dead: Execution.CANCELED}


def test_failed_runs_are_left_as_they_are(
    run_small: RunSmall, places: Environment, builder: StoreBuilder, started: list[str]
) -> None:
    builder.run("one")
    failed = builder.node("Trainer", "FAILED")
    folder = places.pipeline_root / "small" / "Trainer" / "model" / str(failed)
    folder.mkdir(parents=True)
    run_small()
    assert folder.exists()
    assert [e.last_known_state for e in builder.store.get_executions()] == [Execution.FAILED]


Worker = Callable[[str], None]


@pytest.fixture
def fake_worker(project: Path) -> Worker:
    """Writes the module that `python -m pipeline.run.worker` runs in `project`; `folder` is the run's folder in it."""

    def write(source: str) -> None:
        package = project / "pipeline" / "run"
        package.mkdir(parents=True)
        (package.parent / "__init__.py").touch()
        (package / "__init__.py").touch()
        begin = "import json, sys\nfrom pathlib import Path\nfolder = Path(sys.stdin.readline().strip()).parent\n"
        (package / "worker.py").write_text(begin + source)

    return write


def failed_run(run_small: RunSmall) -> str:
    with pytest.raises(NodeError) as caught:
        run_small()
    return str(caught.value)


def test_a_failure_is_reported_with_the_users_lines_and_the_log(
    run_small: RunSmall, places: Environment, fake_worker: Worker
) -> None:
    failure = {
        "node": "Trainer",
        "kind": "ValueError",
        "message": "ValueError: no",
        "lines": ["recipes/a.py:1 in f: g()"],
    }
    fake_worker(f"(folder / 'failure.json').write_text({json.dumps(failure)!r})\nsys.exit(1)\n")
    assert failed_run(run_small) == (
        "Trainer failed.\nValueError: no\n  recipes/a.py:1 in f: g()\n\n"
        f"Log: {places.log_root / 'small-1' / 'Trainer.log'}"
    )


def test_a_worker_that_dies_is_reported_with_its_last_line(
    run_small: RunSmall, places: Environment, fake_worker: Worker
) -> None:
    fake_worker("print('first\\nthe reason\\n', file=sys.stderr)\nsys.exit(3)\n")
    assert failed_run(run_small) == (
        f"the pipeline could not be run (exit code 3).\nthe reason\n\nLog: {places.log_root / 'small-1' / 'worker.log'}"
    )


def test_a_worker_that_dies_silently(run_small: RunSmall, places: Environment, fake_worker: Worker) -> None:
    fake_worker("sys.exit(3)\n")
    assert "(exit code 3).\nIt left no output.\n" in failed_run(run_small)


def test_a_worker_that_was_killed_is_reported_as_such(
    run_small: RunSmall, places: Environment, fake_worker: Worker
) -> None:
    fake_worker("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    assert failed_run(run_small) == (
        "The pipeline was ended from outside, by SIGKILL; the system does that when memory runs out."
    )


def test_a_node_that_failed_without_a_word(
    run_small: RunSmall, places: Environment, builder: StoreBuilder, fake_worker: Worker
) -> None:
    builder.run("small-1")
    builder.node("Transform")
    builder.node("Trainer", "FAILED")
    fake_worker("(folder / 'Trainer.log').write_text('begin\\nout of memory\\n')\nsys.exit(1)\n")
    log = places.log_root / "small-1" / "Trainer.log"
    assert failed_run(run_small) == f"Trainer failed.\nout of memory\n\nLog: {log}"


def test_a_failure_is_told_where_the_disk_of_the_logs_was_full(
    places: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    failure = Failure(node="Trainer", message="OSError: [Errno 28] No space left on device")
    # No folder of logs: it cannot be written there either.
    RunFolder(places.log_root / "one").write_failure(failure)
    assert read_failure(tmp_path) == failure


def test_a_full_disk_is_named_where_nothing_could_be_written_down(
    run_small: RunSmall, places: Environment, fake_worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_worker("sys.exit(1)\n")
    usage = shutil.disk_usage(places.log_root.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=4096))
    with pytest.raises(NodeError) as caught:
        run_small()
    assert str(caught.value) == f"No space left on device: {places.log_root / 'small-1'}. Make room there first."


def test_a_run_that_ends_well_gives_its_nodes(
    run_small: RunSmall, places: Environment, builder: StoreBuilder, fake_worker: Worker
) -> None:
    builder.run("small-1")
    builder.node("Transform")
    fake_worker("assert json.loads((folder / 'request.json').read_text())['run_id'] == 'small-1'\n")
    finished = run_small(force=True)
    assert (finished.id, finished.new, list(finished.nodes)) == ("small-1", True, ["Transform"])


def test_a_store_that_is_down_for_an_update_does_not_end_the_run(
    run_small: RunSmall,
    places: Environment,
    builder: StoreBuilder,
    fake_worker: Worker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    builder.run("small-1")
    builder.node("Transform")
    fake_worker("while not (folder / 'back').exists():\n    pass\n")
    look, looks = local._nodes, []

    def away_at_first(context: RunContext) -> dict[str, NodeRun]:
        looks.append(context.run_id)
        if len(looks) == 1:
            raise StoreError("away")
        (context.folder.path / "back").touch()
        return look(context)

    monkeypatch.setattr(local, "_nodes", away_at_first)
    assert list(run_small(force=True).nodes) == ["Transform"]
    assert len(looks) >= 3


def test_temporary_files_of_a_worker_go_with_it(run_small: RunSmall, places: Environment, fake_worker: Worker) -> None:
    fake_worker(
        "import os, signal, tempfile\n"
        "(folder / 'left').write_text(tempfile.mkdtemp())\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with pytest.raises(NodeError):
        run_small()
    left = Path((places.log_root / "small-1" / "left").read_text())
    assert left.parent.name.startswith("millrace-")
    assert not left.parent.exists()


def test_what_a_killed_run_left_beside_its_artifacts_is_removed(
    run_small: RunSmall, places: Environment, fake_worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    fake_worker("import os\n(folder / 'temporary').write_text(os.environ['TMPDIR'])\n")
    run_small()
    folder = places.log_root / "small-1"
    temporary = Path((folder / "temporary").read_text())
    temporary.mkdir()
    others = temporary.with_name("millrace-000000000000-others")
    others.mkdir()
    report, memo = (f".{name}.{'0a' * 16}" for name in ("report.html", "source_digests.json"))
    (folder / report).write_text("half")
    (places.pipeline_root / "small" / memo).write_text("half")
    run_small(run_id="small-2")
    assert not temporary.exists()
    assert others.exists()
    assert not (folder / report).exists()
    assert not (places.pipeline_root / "small" / memo).exists()


def test_the_worker_runs_with_this_interpreter(run_small: RunSmall, places: Environment, fake_worker: Worker) -> None:
    fake_worker("(folder / 'python').write_text(sys.executable)\n")
    run_small()
    assert (places.log_root / "small-1" / "python").read_text() == sys.executable


def test_an_interrupted_run_ends_its_worker_and_sweeps(
    run_small: RunSmall,
    places: Environment,
    builder: StoreBuilder,
    fake_worker: Worker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    builder.run("small-1")
    running = builder.node("Trainer", "RUNNING")
    fake_worker("import signal\nsignal.pause()\n")

    def interrupt(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(progress.View, "update", interrupt)
    monkeypatch.setattr(RunContext, "sweep_leftovers", _after_first(RunContext.sweep_leftovers))
    with pytest.raises(KeyboardInterrupt):
        run_small()
    [execution] = builder.store.get_executions_by_id([running])
    assert execution.last_known_state == Execution.CANCELED


def _after_first(function: Callable[..., None]) -> Callable[..., None]:
    """Skips the first call, which sweeps up after earlier runs."""
    calls = iter((False, True))

    def call(*arguments: object) -> None:
        if next(calls):
            function(*arguments)

    return call


def test_run_ids_sort_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context.time, "strftime", lambda form: {"%Y%m%d-%H%M%S": "20261121-041502"}[form])
    assert context.new_run_id("small") == "small-20261121-041502"
