"""The processes of a training that runs in several: how they are started and watched. Needs no TensorFlow."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from components.trainer.job import Failure
from components.trainer.settings import TrainerSettings
from contracts import errors
from contracts.errors import MillraceError, TrainingError

WORKER_PROCESS = "components.trainer.worker_process"
"""The module that each process runs; by name, because importing it loads TensorFlow."""

PROGRESS_VARIABLE = "MILLRACE_PROGRESS"
"""The environment variable that tells the chief of several processes its progress file; the others have none."""

SURROUNDINGS = "surroundings"
"""The key of the training's Surroundings in `custom_config`, and in an execution's properties, only in memory."""

POLL_SECONDS = 0.2
LAST_LINES = 10
LINE_LENGTH = 300


@dataclass(frozen=True)
class Launch:
    """Processes that are to train together.

    Attributes:
        folder: Holds a task file named after each process; all processes must see it under the same path.
        numbers: How many there are of each kind: one `chief`, and `worker` and `ps`, as in TF_CONFIG, which each needs.
        progress: The file that the chief writes its progress to; its environment needs it in `PROGRESS_VARIABLE`.
    """

    folder: Path
    numbers: Mapping[str, int]
    progress: str | None

    @property
    def names(self) -> list[str]:
        """The processes' names, such as `worker-0`; the chief's first."""
        return [f"{kind}-{index}" for kind, number in self.numbers.items() for index in range(number)]

    @property
    def command(self) -> list[str]:
        """The command that every process runs, the same for all."""
        return worker_command(self.folder)

    def failure_path(self, name: str) -> Path:
        """The file to which a process writes the exception that ends it."""
        return failure_path(self.folder, name)


Launcher = Callable[[Launch], None]
"""Starts the processes, returns when the chief has succeeded, and leaves none behind; raises a MillraceError if not."""


@dataclass(frozen=True)
class Surroundings:
    """What the caller provides for a training, without influence on its result.

    Attributes:
        progress: The file for the training's progress; None writes none.
        launcher: Starts the processes if there are several; None starts them on this machine.
    """

    progress: str | None = None
    launcher: Launcher | None = None


def worker_command(task: Path) -> list[str]:
    """The command line of a process of a training.

    Args:
        task: The file of its Task, or a folder with a file for each process.
    """
    return [sys.executable, "-W", "ignore", "-m", WORKER_PROCESS, str(task)]


def process_counts(settings: TrainerSettings) -> dict[str, int]:
    """How many processes of each kind there are; the chief of `multi_worker` is one of its workers."""
    if settings.strategy == "parameter_server":
        return {"chief": 1, "worker": settings.workers, "ps": settings.parameter_servers}
    return {"chief": 1, "worker": settings.workers - 1}


@dataclass(frozen=True)
class Worker:
    """A process that was started.

    Attributes:
        name: Its task in the cluster, such as `worker-1`.
        process: The process.
        log: The file with its output.
        failure_path: The file to which it writes the exception that ends it.
        is_chief: Whether its output is shown, and the training ends when it does.
    """

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    failure_path: Path
    is_chief: bool

    @property
    def failed(self) -> bool:
        """Whether it died."""
        return self.process.poll() not in (None, 0)

    @property
    def failure(self) -> Failure | None:
        """The exception that ended it, if one did."""
        return read_failure(self.failure_path)


def watch(workers: Sequence[Worker]) -> None:
    """Waits until the chief ends, and shows its output.

    Raises:
        TrainingError: A process died; the message has its last lines.
        MillraceError: A process raised it.
    """
    [chief] = [worker for worker in workers if worker.is_chief]
    with chief.log.open("rb") as output:
        while chief.process.poll() is None and not any(worker.failed for worker in workers):
            _show(output)
            _wait(chief.process)
        # If one process fails, the others fail soon after.
        _wait(chief.process)
        _show(output)
    failed = [worker for worker in workers if worker.failed]
    if failed:
        raise _error(min(failed, key=lambda worker: rank_failure(worker.failure)))


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Kills a process if it is still running."""
    process.kill()
    process.wait()


def failure_path(folder: Path, name: str) -> Path:
    """The file to which a process writes the exception that ends it; `folder` holds the training's tasks."""
    return folder / f"{name}.failure.json"


def read_failure(path: Path) -> Failure | None:
    """The exception that ended a process, if one did."""
    return Failure.model_validate_json(path.read_text(encoding="utf-8")) if path.exists() else None


def rank_failure(failure: Failure | None) -> int:
    """A rank for failures, lowest for the likeliest cause of the others; None is a process that was killed."""
    if failure is None:
        return 0
    return 2 if failure.lost_peer else 1


def known_error(failure: Failure | None) -> MillraceError | None:
    """The MillraceError that ended a process, if one did."""
    if failure is None or failure.kind is None:
        return None
    kind: type[MillraceError] = getattr(errors, failure.kind)
    return kind(failure.what, failure.fix)


def last_lines(log: str) -> str:
    """The last lines of a process's output."""
    lines = [line[:LINE_LENGTH] for line in log.splitlines() if line.strip()][-LAST_LINES:]
    return "\n".join(lines) or "It left no output."


def _wait(process: subprocess.Popen[bytes]) -> None:
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=POLL_SECONDS)


def _show(output: BinaryIO) -> None:
    sys.stdout.write(output.read().decode(errors="replace"))
    sys.stdout.flush()


def _error(worker: Worker) -> MillraceError:
    if error := known_error(worker.failure):
        return error
    code = worker.process.returncode
    ending = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    last = last_lines(worker.log.read_text(encoding="utf-8", errors="replace"))
    return TrainingError(
        f"{worker.name} of the training {ending}; its last lines:\n{last}\nLog: {worker.log}",
        "Mend the cause, or give the machine more memory if that was it, and run again: what was trained is kept.",
    )
