"""Who starts the processes of a training in several: this machine, or what is put in its place for a while."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from components.trainer import worker_process
from components.trainer.settings import TrainerSettings


@dataclass(frozen=True)
class Launch:
    """Processes that are to train together.

    Attributes:
        folder: What each is to do, in a file of its name; all processes must see it by the same path.
        numbers: How many of each kind: one `chief`, and `worker` and `ps`, as in TF_CONFIG. Each needs a TF_CONFIG.
        progress: The file that the chief writes its progress to; it is named by `callbacks.PROGRESS_VARIABLE`.
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
        """What every process runs, the same for all."""
        return [sys.executable, "-W", "ignore", "-m", worker_process.__name__, str(self.folder)]

    def failure_path(self, name: str) -> Path:
        """Where a process leaves the exception that ends it."""
        return self.folder / f"{name}.failure.json"


Launcher = Callable[[Launch], None]
"""Starts the processes, returns when the chief has ended well, and leaves none behind; a MillraceError says why not."""

_chosen: ContextVar[Launcher | None] = ContextVar("launcher", default=None)


@contextmanager
def by(launcher: Launcher) -> Iterator[None]:
    """Has the processes of trainings in several started by `launcher`."""
    token = _chosen.set(launcher)
    try:
        yield
    finally:
        _chosen.reset(token)


def chosen() -> Launcher | None:
    """What starts the processes; None for this machine."""
    return _chosen.get()


def numbers(settings: TrainerSettings) -> dict[str, int]:
    """How many processes of each kind there are; the chief of `multi_worker` is one of its workers."""
    if settings.strategy == "parameter_server":
        return {"chief": 1, "worker": settings.workers, "ps": settings.parameter_servers}
    return {"chief": 1, "worker": settings.workers - 1}
