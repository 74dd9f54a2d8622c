"""The worker of a run: started for it, or forked from a process on standby; none of them imports TFX here."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline.run import workers
from pipeline.run.folder import Request, RunFolder
from pipeline.run.standby import READY
from pipeline.run.workers import ForkedWorker, OwnWorker

NOTE = """
import os, signal, sys
from pathlib import Path

def note(path, parent):
    said = f"{parent} {os.getpid()} {os.environ.get('SAID')} {os.environ['TMPDIR']}"
    Path(path).with_name("note").write_text(said)
    if os.environ.get("SAID") == "wait":
        signal.pause()
    return int(os.environ.get("CODE", "0"))
"""

STANDBY = (
    NOTE
    + """
import socket, types
from pipeline.run import standby
sys.modules["pipeline.run.worker"] = types.SimpleNamespace(run=lambda path: note(path, os.getppid()))
descriptor, path, minutes = sys.argv[1:]
standby.Standby(socket.socket(fileno=int(descriptor)), path, float(minutes) * 60).serve()
"""
)

OWN = NOTE + "sys.exit(note(sys.stdin.readline().strip(), 'own'))"


@pytest.fixture(autouse=True)
def _stand_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Processes that note who they are where the real ones would run a pipeline, with a short folder for sockets."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        monkeypatch.setattr(workers, "STANDBY", (sys.executable, "-c", STANDBY))
        monkeypatch.setattr(workers, "WORKER", (sys.executable, "-c", OWN))
        monkeypatch.setattr(workers, "_started", [])
        yield
        for process in workers._started:
            process.kill()
            process.wait()


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = RunFolder(tmp_path / "run")
    made.write_request(Request(recipe="small", overrides=(), environment="local", run_id="run", span=None))
    return made


@pytest.fixture
def run(folder: RunFolder, tmp_path: Path) -> Callable[..., list[str]]:
    """Runs a worker to its end; returns its parent, its id, what it was told and its temporary folder."""

    def run(minutes: float = 5, code: int = 0) -> list[str]:
        worker = workers.start(tmp_path, minutes)
        worker.begin(folder)
        while not worker.has_ended(60):
            pass
        assert worker.exit_code == code
        worker.close()
        return (folder.path / "note").read_text().split()

    return run


def _started(folder: RunFolder, tmp_path: Path) -> tuple[ForkedWorker, int]:
    """A worker that does not end by itself, and its process id."""
    worker = workers.start(tmp_path, 5)
    assert isinstance(worker, ForkedWorker)
    worker.begin(folder)
    note = folder.path / "note"
    while not note.exists() or not note.read_text():
        assert not worker.has_ended(0.01)
    return worker, int(note.read_text().split()[1])


def _is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists() and " Z " not in Path(f"/proc/{pid}/stat").read_text()


def test_without_standby_each_run_has_a_process_of_its_own(run: Callable[..., list[str]], tmp_path: Path) -> None:
    first, second = run(0), run(0)
    assert first[0] == second[0] == "own"
    assert first[3] == str(tmp_path)
    assert workers._started == []


def test_the_next_run_finds_the_process_on_standby(
    run: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, second = run(), run()
    [standby] = workers._started
    assert first[0] == second[0] == str(standby.pid)
    assert first[1] != second[1]
    assert first[3] == str(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    assert run()[0] == str(standby.pid)


def test_its_exit_code_is_told(run: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODE", "3")
    run(code=3)


def test_another_environment_variable_means_another_process_on_standby(
    run: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run()
    monkeypatch.setenv("SAID", "TF_something=1")
    said = run()
    first, second = workers._started
    assert said[0] == str(second.pid)
    assert said[2] == "TF_something=1"
    assert first.wait(60) == 0
    assert len(list(Path(tempfile.gettempdir()).glob("*/*.sock"))) == 1


def test_a_changed_file_of_ours_means_another_process_on_standby(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "components"
    package.mkdir()
    (package / "one.py").write_text("a = 1")
    monkeypatch.setattr(workers.project, "root", lambda: tmp_path)
    monkeypatch.setattr(workers.project, "ENGINE", tmp_path)
    imported, place = workers._names()
    assert workers._names() == (imported, place)
    (package / "one.py").write_text("a = 10")
    changed, same_place = workers._names()
    assert changed != imported
    assert same_place == place
    monkeypatch.setattr(workers.project, "root", lambda: tmp_path / "other")
    assert workers._names()[1] != place


def test_a_worker_that_is_closed_is_gone_and_its_parent_is_not(
    folder: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAID", "wait")
    worker, pid = _started(folder, tmp_path)
    worker.close()
    assert worker.exit_code == -signal.SIGKILL
    assert not _is_alive(pid)
    assert workers._started[0].poll() is None


def test_when_the_process_on_standby_is_killed_its_worker_is_too(
    folder: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAID", "wait")
    worker, pid = _started(folder, tmp_path)
    workers._started[0].kill()
    workers._started[0].wait()
    while not worker.has_ended(60):
        pass
    assert worker.exit_code == -signal.SIGKILL
    assert not _is_alive(pid)
    worker.close()


def test_a_process_on_standby_that_cannot_start_costs_nothing_but_time(
    run: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "STANDBY", (sys.executable, "-c", "raise SystemExit(1)"))
    assert run()[0] == "own"


def test_it_ends_when_nobody_asks_for_long(tmp_path: Path) -> None:
    worker = workers.start(tmp_path, 0.001)
    assert isinstance(worker, ForkedWorker)
    assert workers._started[0].wait(60) == 0
    worker.close()
    assert list(Path(tempfile.gettempdir()).glob("*/*.sock")) == []


def test_one_that_was_greeted_and_asks_nothing_starts_nothing(
    run: Callable[..., list[str]], tmp_path: Path, folder: RunFolder
) -> None:
    worker = workers.start(tmp_path, 5)
    assert isinstance(worker, ForkedWorker)
    assert worker._line() == READY
    worker.close()
    assert not (folder.path / "note").exists()
    assert run()[0] == str(workers._started[0].pid)


def test_in_a_folder_that_others_can_read_nothing_stays(tmp_path: Path) -> None:
    sockets = Path(tempfile.gettempdir(), f"millrace-standby-{os.getuid()}")
    sockets.mkdir(mode=0o755)
    sockets.chmod(0o755)
    worker = workers.start(tmp_path, 5)
    assert isinstance(worker, OwnWorker)
    worker.close()
    assert workers._started == []


def test_what_a_worker_says_before_it_knows_its_run_is_in_the_log(
    folder: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "WORKER", (sys.executable, "-c", "raise SystemExit('no TensorFlow here')"))
    worker = workers.start(tmp_path, 0)
    worker.begin(folder)
    while not worker.has_ended(60):
        pass
    assert worker.exit_code == 1
    assert folder.worker_log.read_text() == "no TensorFlow here\n"
    worker.close()
