"""One side of a comparison in a process of its own: `python -m benchmarks.child FUNCTION ARGUMENTS RESULT`."""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import components  # noqa: F401  # settles the environment before TensorFlow loads
from benchmarks import children


def call(function: str, arguments: Mapping[str, Any], folder: Path, cores: Collection[int] = ()) -> Any:
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
    children.run("output", ["-m", __name__, function, str(task), str(result)], place)
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
