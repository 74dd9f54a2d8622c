"""Locks: one change to a recipe's artifacts and versions at a time, and one process per node of a run.

These are the operating system's locks, on files in the environment's folders. Machines that share the folders share the
locks if the file system supports it.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from contracts.errors import BusyError
from pipeline.plan.environment import Environment

TRIES = 3
PAUSE_SECONDS = 0.02


@contextmanager
def held(name: str, environment: Environment) -> Iterator[None]:
    """Holds a recipe's lock; the operating system releases it when this process ends, however it ends.

    Raises:
        BusyError: Another run of the recipe, or one of its nodes, is going on.
    """
    with _recipe_lock(name, environment).open("a+") as lock:
        if not _taken(lock, fcntl.LOCK_EX):
            raise _busy(name, lock)
        _sign(lock)
        yield


@contextmanager
def shared(name: str, environment: Environment) -> Iterator[None]:
    """Shares a recipe's lock with others: nodes of runs that a scheduler started.

    Raises:
        BusyError: A run or a rollback of the recipe holds the lock exclusively.
    """
    with _recipe_lock(name, environment).open("a+") as lock:
        if not _taken(lock, fcntl.LOCK_SH):
            raise _busy(name, lock)
        _sign(lock)
        yield


@contextmanager
def task(run_folder: Path, node: str) -> Iterator[None]:
    """Holds the lock of one node of one run: no other process runs that node meanwhile.

    Raises:
        BusyError: Another process does.
    """
    run_folder.mkdir(parents=True, exist_ok=True)
    with _task_lock(run_folder, node).open("a+") as lock:
        if not _taken(lock, fcntl.LOCK_EX):
            raise BusyError(f"{node} of run {run_folder.name} is being run by another process.", "Wait for its end.")
        yield


@contextmanager
def wait_for(path: Path) -> Iterator[None]:
    """Holds a file's lock, waiting for it however long another process has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_held(name: str, environment: Environment, run_folder: Path | None = None) -> bool:
    """Whether a run or a rollback of the recipe, or a node of the run of that folder, is going on."""
    paths = [environment.state_root / name / ".lock"]
    paths += sorted(run_folder.glob(_task_lock(run_folder, "*").name)) if run_folder else []
    return any(_is_locked(path) for path in paths if path.exists())


def goes_on(environment: Environment, name: str, run_id: str, node: str | None) -> bool:
    """Whether a run of a recipe, or one node of it, may be going on.

    If the locks that it would hold cannot be seen from here, such as another machine's, it may be.
    """
    folder = environment.log_root / run_id
    own, recipe = _task_lock(folder, node or "*"), environment.state_root / name / ".lock"
    try:
        tasks = list(folder.glob(own.name))
        if tasks:
            return any(_is_locked(task) for task in tasks)
        # A node without a lock of its own belongs to a run that holds the recipe's lock.
        elsewhere = not recipe.exists() or not folder.exists() or any(folder.glob(_task_lock(folder, "*").name))
        return elsewhere or _is_locked(recipe)
    except OSError:
        return True


def _is_locked(path: Path) -> bool:
    with path.open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _recipe_lock(name: str, environment: Environment) -> Path:
    folder = environment.state_root / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder / ".lock"


def _task_lock(run_folder: Path, node: str) -> Path:
    return run_folder / f".{node}.lock"


def _sign(lock: IO[str]) -> None:
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()


def _busy(name: str, lock: IO[str]) -> BusyError:
    lock.seek(0)
    holder = lock.read().strip()
    return BusyError(f"another run of {name} is going on (process {holder}).", "Wait for its end, or stop it.")


def _taken(lock: IO[str], operation: int) -> bool:
    # Retried because `is_held` in another process takes it for an instant.
    for _ in range(TRIES):
        try:
            fcntl.flock(lock, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(PAUSE_SECONDS)
        else:
            return True
    return False
