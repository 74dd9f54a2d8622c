"""One process of a training in several: `python -m components.trainer.worker_process TASK`, started by `cluster`.

TASK is the file of its task, or a folder with a file for each process: on a cluster all workers get the same command.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

import tensorflow as tf

from components import processes
from components.trainer.devices import cluster_config
from components.trainer.job import Failure, Task
from components.trainer.processes import PROGRESS_VARIABLE
from components.trainer.train import train
from contracts.errors import MillraceError


def main(task_path: str) -> None:
    """Trains, or serves the coordinator. An error is written to `failure_path`; the exit code is then 1."""
    task = Task.model_validate_json(_own_file(Path(task_path)).read_text(encoding="utf-8"))
    if task.parent is not None:
        processes.die_with(task.parent)
    exit_code = 0
    try:
        if is_server():
            serve()
        else:
            train(task.job, os.environ.get(PROGRESS_VARIABLE))
    except Exception as error:
        traceback.print_exc()
        Path(task.failure_path).write_text(_describe(error).model_dump_json(), encoding="utf-8")
        exit_code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    # A normal exit would have TensorFlow wait for processes that may be gone, and end with another traceback.
    os._exit(exit_code)


def is_server() -> bool:
    """Whether this task only serves the coordinator, as workers and parameter servers of `parameter_server` do."""
    config = cluster_config()
    return "ps" in config.get("cluster", {}) and config["task"]["type"] in ("worker", "ps")


def serve() -> None:
    """Serves the coordinator; does not return: whoever started the task ends it when the coordinator is done."""
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    cluster = resolver.cluster_spec()
    options = tf.compat.v1.ConfigProto()
    # A step may occupy one of these threads while it waits for other steps; with only one per core they can deadlock.
    options.inter_op_parallelism_threads = max(os.cpu_count() or 1, cluster.num_tasks("worker") + 1)
    server = tf.distribute.Server(
        cluster, job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc", config=options
    )
    server.join()


def _own_file(path: Path) -> Path:
    """This process's task file: `path` itself, or the file in that folder for the task that TF_CONFIG names."""
    if not path.is_dir():
        return path
    task = cluster_config()["task"]
    return path / f"{task['type']}-{task['index']}.json"


def _describe(error: Exception) -> Failure:
    if isinstance(error, MillraceError):
        return Failure(kind=type(error).__name__, what=error.what, fix=error.fix)
    lost = isinstance(error, (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError))
    return Failure(kind=None, what=f"{type(error).__name__}: {error}", lost_peer=lost)


if __name__ == "__main__":
    main(sys.argv[1])
