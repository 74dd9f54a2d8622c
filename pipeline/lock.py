"""One change to a recipe's artifacts and versions at a time."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from components.errors import MillraceError
from pipeline.environment import Environment

TRIES = 3
PAUSE_SECONDS = 0.02


@contextmanager
def held(name: str, environment: Environment) -> Iterator[None]:
    """Holds a recipe's lock; the operating system frees it when this process ends, however it ends.

    Raises:
        MillraceError: Another run of the recipe is going on.
    """
    folder = environment.pipeline_root / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a+") as lock:
        if not _taken(lock):
            lock.seek(0)
            holder = lock.read().strip()
            raise MillraceError(
                f"another run of {name} is going on (process {holder}).", "Wait for its end, or stop it."
            )
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def _taken(lock: IO[str]) -> bool:
    # Tried again: `is_held` in another process has it for an instant.
    for _ in range(TRIES):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(PAUSE_SECONDS)
        else:
            return True
    return False


def is_held(name: str, environment: Environment) -> bool:
    """Whether a run or a rollback of the recipe is going on in some process of this machine."""
    path = environment.pipeline_root / name / ".lock"
    if not path.exists():
        return False
    with path.open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
