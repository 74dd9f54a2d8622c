"""How the processes of a training are watched."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from components.trainer import processes
from components.trainer.job import Failure
from contracts.errors import AnomalyError, TrainingError

FOREVER = "import threading; threading.Event().wait()"
FAILS = "import sys; print('first'); print('last'); sys.exit(3)"


def start(folder: Path, name: str, code: str, failure: Failure | None = None) -> processes.Worker:
    """A process that runs `code`; the chief is named so."""
    log, failure_path = folder / f"{name}.log", folder / f"{name}.json"
    if failure:
        failure_path.write_text(failure.model_dump_json())
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-c", code], stdout=output, stderr=output)
    return processes.Worker(name, process, log, failure_path, name == "chief")


def watched(*workers: processes.Worker) -> None:
    try:
        processes.watch(workers)
    finally:
        for worker in workers:
            processes.end_process(worker.process)


def test_the_chief_s_end_is_the_end_and_its_output_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watched(start(tmp_path, "chief", "print('Epoch 1/1')"), start(tmp_path, "ps-0", FOREVER))
    assert capsys.readouterr().out == "Epoch 1/1\n"


def test_a_worker_that_fails_ends_the_training_with_its_last_lines(tmp_path: Path) -> None:
    worker = start(tmp_path, "worker-1", FAILS)
    with pytest.raises(TrainingError) as caught:
        watched(start(tmp_path, "chief", FOREVER), worker)
    assert caught.value.what == (
        f"worker-1 of the training ended with exit code 3; its last lines:\nfirst\nlast\nLog: {worker.log}"
    )


def test_an_error_of_ours_arrives_as_it_was_raised(tmp_path: Path) -> None:
    failure = Failure(kind="AnomalyError", what="The rows are odd.", fix="Straighten them.")
    with pytest.raises(AnomalyError) as caught:
        watched(start(tmp_path, "chief", FOREVER), start(tmp_path, "worker-1", FAILS, failure))
    assert (caught.value.what, caught.value.fix) == ("The rows are odd.", "Straighten them.")


def test_the_cause_is_told_and_not_what_it_did_to_others(tmp_path: Path) -> None:
    lost = start(tmp_path, "chief", FAILS, Failure(kind=None, what="UnavailableError", lost_peer=True))
    cause = start(tmp_path, "worker-1", "import os; os.kill(os.getpid(), 9)")
    cause.process.wait()
    with pytest.raises(TrainingError, match=r"^worker-1 of the training was ended by SIGKILL"):
        watched(lost, cause)
