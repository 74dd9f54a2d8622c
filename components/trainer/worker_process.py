"""One process of a training in several: `python -m components.trainer.worker_process TASK`, started by `cluster`.

TASK is the file of what it is to do, or a folder with a file for each: on a cluster all workers get one command.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path

from components import processes
from components.errors import MillraceError
from components.settings import Settings
from components.trainer.job import Job


class Task(Settings):
    """What a process is to do.

    Attributes:
        job: What is trained.
        parent: The process that watches this one; None where that is on another machine.
        cores: The processor cores to run on; empty for all.
        failure_path: Where an error goes.
    """

    job: Job
    parent: int | None
    cores: list[int]
    failure_path: str


class Failure(Settings):
    """An exception as plain data.

    Attributes:
        kind: The class's name in `components.errors`; None for any other exception.
        what: Its message; of a MillraceError, the fault alone.
        fix: What the user can do about it.
        lost_peer: Whether it only tells that another process is gone.
    """

    kind: str | None
    what: str
    fix: str | None = None
    lost_peer: bool = False


def main(task_path: str) -> None:
    """Trains, or serves those that train; an error ends the process with exit code 1 and is found at `failure_path`."""
    task = Task.model_validate_json(_own(Path(task_path)).read_text(encoding="utf-8"))
    if task.parent is not None:
        processes.die_with(task.parent)
    if task.cores:
        # Before TensorFlow is loaded, which makes a thread for each core that it may run on.
        os.sched_setaffinity(0, task.cores)
    exit_code = 0
    try:
        _run(task.job)
    except Exception as error:
        traceback.print_exc()
        Path(task.failure_path).write_text(_describe(error).model_dump_json(), encoding="utf-8")
        exit_code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    # Taking TensorFlow apart again waits for processes that may be gone, and ends in a traceback of its own.
    os._exit(exit_code)


def _own(path: Path) -> Path:
    """This process's file; of a folder, the one that TF_CONFIG names."""
    if not path.is_dir():
        return path
    task = json.loads(os.environ["TF_CONFIG"])["task"]
    return path / f"{task['type']}-{task['index']}.json"


def _run(job: Job) -> None:
    from components.trainer import cluster, run

    if cluster.is_server():
        cluster.serve()
    else:
        run.train(job)


def _describe(error: Exception) -> Failure:
    import tensorflow as tf

    if isinstance(error, MillraceError):
        return Failure(kind=type(error).__name__, what=error.what, fix=error.fix)
    lost = isinstance(error, (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError))
    return Failure(kind=None, what=f"{type(error).__name__}: {error}", lost_peer=lost)


if __name__ == "__main__":
    main(sys.argv[1])
