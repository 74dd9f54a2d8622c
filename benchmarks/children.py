"""Timed child processes, and calls of functions in them: `python -m benchmarks.children FUNCTION ARGUMENTS RESULT`."""

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

# Keras 3 fails in stock's own example; set here too because stock's child imports no module of ours that sets it.
ENVIRONMENT = {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}


class ChildError(Exception):
    """A child process failed; the message has its last lines and the path of its whole output."""


@dataclass(frozen=True)
class Timed:
    """One child process.

    Attributes:
        seconds: Wall time from its start to its end.
        cpu_seconds: Processor time, user and system, including its children; steadier if others use the machine.
        began: When it started, in seconds since 1970.
    """

    seconds: float
    cpu_seconds: float
    began: float


def run_child(
    name: str, arguments: Sequence[str], log_folder: Path, allowed: Collection[int] = (0,), project: Path = ENGINE
) -> Timed:
    """Runs `python ARGUMENTS` in a project's folder, with its output in `<log_folder>/<name>.log`.

    Args:
        name: The process's name in errors and in the name of its log.
        arguments: What follows `python` on the command line.
        log_folder: The folder of the log; created if it is missing.
        allowed: Exit codes that are not failures.
        project: The folder that it runs in; by default this one.

    Raises:
        ChildError: The process ended with another exit code.
    """
    log_folder.mkdir(parents=True, exist_ok=True)
    log = log_folder / f"{name}.log"
    cpu_before = _cpu_seconds()
    began, start = time.time(), time.perf_counter()
    with log.open("wb") as output:
        finished = subprocess.run(
            [sys.executable, "-W", "ignore", *arguments],
            cwd=project,
            env=os.environ | ENVIRONMENT | {"PYTHONPATH": str(ENGINE)},
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
        function: `module:function`, by name, since its module may load TensorFlow. It takes and returns JSON values.
        arguments: The function's arguments, by name.
        folder: The folder of the process's log and result.
        cores: The processor cores that the process may use; empty for all.

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
        # Before TensorFlow is loaded, which starts a thread for each core that it may use.
        os.sched_setaffinity(0, task["cores"])
    module, _, name = path.partition(":")
    result = getattr(importlib.import_module(module), name)(**task["arguments"])
    Path(result_path).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
