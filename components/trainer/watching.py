"""Watches the processes of a training: the first that dies ends them all, and its error is told."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from components import errors
from components.errors import MillraceError, TrainingError
from components.trainer.worker_process import Failure

POLL_SECONDS = 0.2
LAST_LINES = 10
LINE_LENGTH = 300


@dataclass(frozen=True)
class Worker:
    """A process that was started.

    Attributes:
        name: Its task in the cluster, such as `worker-1`.
        process: The process.
        log: What it prints.
        failure_path: Where it writes the exception that ended it.
        is_chief: Whether its output is shown, and the training is over with it.
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
        return read(self.failure_path)


def read(failure_path: Path) -> Failure | None:
    """The exception that ended a process, if one did."""
    if not failure_path.exists():
        return None
    return Failure.model_validate_json(failure_path.read_text(encoding="utf-8"))


def watch(workers: Sequence[Worker]) -> None:
    """Waits for the end of the chief, and shows what it prints.

    Raises:
        TrainingError: A process died; the message has its last lines.
        MillraceError: What a process raised.
    """
    [chief] = [worker for worker in workers if worker.is_chief]
    with chief.log.open("rb") as output:
        while chief.process.poll() is None and not any(worker.failed for worker in workers):
            _show(output)
            _wait(chief.process)
        # Those that fail because another one did follow it at once.
        _wait(chief.process)
        _show(output)
    failed = [worker for worker in workers if worker.failed]
    if failed:
        raise _error(min(failed, key=lambda worker: rank(worker.failure)))


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process at once, if it still runs."""
    process.kill()
    process.wait()


def _wait(process: subprocess.Popen[bytes]) -> None:
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=POLL_SECONDS)


def _show(output: BinaryIO) -> None:
    sys.stdout.write(output.read().decode(errors="replace"))
    sys.stdout.flush()


def rank(failure: Failure | None) -> int:
    """The order in which failures are likely to be the cause of the others; a process that was ended has none."""
    if failure is None:
        return 0
    return 2 if failure.lost_peer else 1


def known(failure: Failure | None) -> MillraceError | None:
    """The error of ours that ended a process, if one did."""
    if failure is None or failure.kind is None:
        return None
    kind: type[MillraceError] = getattr(errors, failure.kind)
    return kind(failure.what, failure.fix)


def last_lines(log: str) -> str:
    """The end of what a process printed."""
    shown = [line[:LINE_LENGTH] for line in log.splitlines() if line.strip()][-LAST_LINES:]
    return "\n".join(shown) or "It left no output."


def _error(worker: Worker) -> MillraceError:
    error = known(worker.failure)
    if error:
        return error
    code = worker.process.returncode
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    last = last_lines(worker.log.read_text(encoding="utf-8", errors="replace"))
    return TrainingError(
        f"{worker.name} of the training {how}; its last lines:\n{last}\nLog: {worker.log}",
        "Mend the cause, or give the machine more memory if that was it, and run again: what was trained is kept.",
    )
