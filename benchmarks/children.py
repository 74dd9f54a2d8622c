"""Timed child processes, and functions called in one: `python -m benchmarks.children FUNCTION ARGUMENTS RESULT`."""

from __future__ import annotations

import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import components  # noqa: F401  # settles the environment before TensorFlow loads
from pipeline.plan.project import ENGINE

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


def run_child(name: str, arguments: Sequence[str], log_folder: Path, allowed: Collection[int] = (0,)) -> Timed:
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
            cwd=ENGINE,
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


def call_in_child(function: str, arguments: Mapping[str, Any], folder: Path, cores: Collection[int] = ()) -> Any:
    """Calls a function in a new process.

    Args:
        function: `module:function`; by name, for its module may load TensorFlow. It takes and returns what JSON holds.
        arguments: The function's, by name.
        folder: Where the process's log and result go.
        cores: The processor cores that it may use; none for all.

    Raises:
        ChildError: The process failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix=f"{function.rpartition(':')[2]}-", dir=folder))
    task, result = place / "arguments.json", place / "result.json"
    task.write_text(json.dumps({"cores": sorted(cores), "arguments": dict(arguments)}, indent=2), encoding="utf-8")
    run_child("output", ["-m", __name__, function, str(task), str(result)], place)
    return json.loads(result.read_text(encoding="utf-8"))


def main(path: str, task_path: str, result_path: str) -> None:
    """Calls the function of `path`, `module:function`, and writes what it returns."""
    task = json.loads(Path(task_path).read_text(encoding="utf-8"))
    if task["cores"]:
        # Before TensorFlow is loaded, which makes a thread for each core that it may run on.
        os.sched_setaffinity(0, task["cores"])
    module, _, name = path.partition(":")
    result = getattr(importlib.import_module(module), name)(**task["arguments"])
    Path(result_path).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
