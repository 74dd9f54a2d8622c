"""Timed child processes: what a benchmark measures is a whole process, from its start to its end."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.recipe import PROJECT_ROOT

SHOWN_LINES = 15

# Keras 3 fails in stock's own example; said here too because stock's child imports nothing of ours that would say it.
ENVIRONMENT = {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}


class ChildError(Exception):
    """A child process failed; the message holds its last lines and where its whole output is."""


@dataclass(frozen=True)
class Timed:
    """One child process.

    Attributes:
        seconds: Wall time from its start to its end.
        cpu_seconds: Processor time, user and system, its own children included; steadier where others use the machine.
        began: Seconds since 1970 at its start.
    """

    seconds: float
    cpu_seconds: float
    began: float


def run(name: str, arguments: Sequence[str], log_folder: Path, allowed: Collection[int] = (0,)) -> Timed:
    """Runs `python ARGUMENTS` in the project's folder, with everything it prints in `<log_folder>/<name>.log`.

    Args:
        name: What to call the process in its log's name and in errors.
        arguments: What follows `python` on the command line.
        log_folder: Where the log goes; it is made if it is missing.
        allowed: Exit codes that are no failure.

    Raises:
        ChildError: It ended with another exit code.
    """
    log_folder.mkdir(parents=True, exist_ok=True)
    log = log_folder / f"{name}.log"
    cpu_before = _cpu_seconds()
    began, start = time.time(), time.perf_counter()
    with log.open("wb") as output:
        finished = subprocess.run(
            [sys.executable, "-W", "ignore", *arguments],
            cwd=PROJECT_ROOT,
            env=os.environ | ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    seconds = time.perf_counter() - start
    if finished.returncode not in allowed:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-SHOWN_LINES:]
        tail = "\n".join(f"  {line}" for line in lines)
        raise ChildError(f"{name} failed with exit code {finished.returncode}.\n{tail}\n\nLog: {log}")
    return Timed(seconds, _cpu_seconds() - cpu_before, began)


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
