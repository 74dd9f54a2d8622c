"""Training in several processes of this machine, or as one task of a cluster that TF_CONFIG describes.

The processes find each other by TF_CONFIG on loopback, as the tasks of a real cluster do over its network; where the
environment has a TF_CONFIG already, nothing is started, for this process is one of those tasks.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import tensorflow as tf

from components.errors import TrainingError
from components.trainer import callbacks, launching, strategies, watching, worker_process
from components.trainer.job import Job
from components.trainer.settings import TrainerSettings

GPUS_VARIABLE = "CUDA_VISIBLE_DEVICES"


def is_server() -> bool:
    """Whether this task only serves a coordinator, as workers and parameter servers of `parameter_server` do."""
    config = strategies.cluster_config()
    return "ps" in config.get("cluster", {}) and config["task"]["type"] in ("worker", "ps")


def serve() -> None:
    """Serves the coordinator; does not return, for whoever started the task ends it when the coordinator is done."""
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    cluster = resolver.cluster_spec()
    options = tf.compat.v1.ConfigProto()
    # A step waits in one of these threads for others to be done; with as few as cores it may wait for ever.
    options.inter_op_parallelism_threads = max(os.cpu_count() or 1, cluster.num_tasks("worker") + 1)
    server = tf.distribute.Server(
        cluster, job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc", config=options
    )
    server.join()


def is_needed(settings: TrainerSettings) -> bool:
    """Whether this training needs processes of its own.

    Besides the strategies of several processes these are trainings that change TensorFlow's devices, which can only be
    done before TensorFlow uses any, and in a pipeline's process it already has.
    """
    if strategies.cluster_config():
        return False
    if settings.in_several_processes:
        return True
    gpus = tf.config.list_physical_devices("GPU")
    rehearsal = not gpus and (settings.replicas or 1) > 1
    return rehearsal or bool(gpus and settings.gpu_memory_limit_mb)


def train(job: Job) -> None:
    """Trains in processes of its own, and returns when the chief has exported the model.

    Raises:
        TrainingError: One of the processes died, and the others were ended; or there are fewer GPUs than workers.
        MillraceError: What a process raised.
    """
    launcher = launching.chosen()
    if launcher and job.settings.in_several_processes:
        _train_elsewhere(job, launcher)
    else:
        _train_here(job)


def _train_elsewhere(job: Job, launcher: launching.Launcher) -> None:
    """Leaves what each process is to do in a folder beside the logs, which all of them see, and has them started."""
    prefix = Path(_log_prefix(job))
    with tempfile.TemporaryDirectory(prefix=f"{prefix.name}processes-", dir=prefix.parent) as folder:
        launch = launching.Launch(
            Path(folder), launching.numbers(job.settings), os.environ.get(callbacks.PROGRESS_VARIABLE)
        )
        for name in launch.names:
            task = worker_process.Task(job=job, parent=None, cores=[], failure_path=str(launch.failure_path(name)))
            (launch.folder / f"{name}.json").write_text(task.model_dump_json(), encoding="utf-8")
        launcher(launch)


def _train_here(job: Job) -> None:
    roles = _roles(job.settings)
    shares = _divide(sorted(os.sched_getaffinity(0)), sum(kind == "worker" for kind, _ in roles))
    gpus = _divide_gpus(job.settings.workers)
    logs = _log_prefix(job)
    with tempfile.TemporaryDirectory(prefix="millrace-training-") as folder, ExitStack() as started:
        addresses = _addresses(roles) if len(roles) > 1 else {}
        workers = []
        for kind, index in roles:
            name = f"{kind}-{index}"
            task = worker_process.Task(
                job=job,
                parent=os.getpid(),
                cores=shares[index] if kind == "worker" else [],
                failure_path=f"{folder}/{name}.failure.json",
            )
            task_path = Path(folder, f"{name}.json")
            task_path.write_text(task.model_dump_json(), encoding="utf-8")
            is_chief = (kind, index) == roles[0]
            environment = _environment(addresses, kind, index, is_chief)
            if len(roles) > 1 and gpus:
                environment[GPUS_VARIABLE] = gpus[index] if kind == "worker" else "-1"
            log = Path(f"{logs}{name}.log")
            process = _start(task_path, environment, log)
            workers.append(watching.Worker(name, process, log, Path(task.failure_path), is_chief))
            started.callback(watching.end, process)
        watching.watch(workers)


def _roles(settings: TrainerSettings) -> list[tuple[str, int]]:
    """The tasks' kinds and numbers, the chief's first."""
    workers = [("worker", index) for index in range(settings.workers)]
    if settings.strategy != "parameter_server":
        return workers
    return [("chief", 0), *workers, *(("ps", index) for index in range(settings.parameter_servers))]


def _divide(cores: Sequence[int], num_workers: int) -> list[list[int]]:
    """Each worker's part of the cores; empty lists, for all of them, where there are fewer cores than workers."""
    if num_workers == 1 or len(cores) < num_workers:
        return [[] for _ in range(num_workers)]
    return [list(cores[index::num_workers]) for index in range(num_workers)]


def _divide_gpus(num_workers: int) -> list[str]:
    """The GPUs that each worker may see, as CUDA names them; none where the machine has none."""
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return []
    if len(gpus) < num_workers:
        raise TrainingError(
            f"trainer.workers is {num_workers}, but this machine has {len(gpus)} GPUs, expected at least one for each.",
            f"Set trainer.workers to at most {len(gpus)}, or rehearse on the processor with {GPUS_VARIABLE}=-1.",
        )
    names = (os.environ.get(GPUS_VARIABLE) or ",".join(map(str, range(len(gpus))))).split(",")
    return [",".join(names[index::num_workers]) for index in range(num_workers)]


def _addresses(roles: Sequence[tuple[str, int]]) -> dict[str, list[str]]:
    """A free port on loopback for each task, by kind."""
    found: dict[str, list[str]] = {}
    with ExitStack() as reserved:
        # All are held at once, or two tasks could be given the same.
        for kind, _ in roles:
            listener = reserved.enter_context(socket.socket())
            listener.bind(("127.0.0.1", 0))
            found.setdefault(kind, []).append(f"127.0.0.1:{listener.getsockname()[1]}")
    return found


def _environment(addresses: dict[str, list[str]], kind: str, index: int, is_chief: bool) -> dict[str, str]:
    """This process's environment, with what a task needs to find the others and the recipe."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    if addresses:
        task = {"cluster": addresses, "task": {"type": kind, "index": index}}
        environment[strategies.CONFIG_VARIABLE] = json.dumps(task)
    if not is_chief:
        environment.pop(callbacks.PROGRESS_VARIABLE, None)
    return environment


def _log_prefix(job: Job) -> str:
    """Where the processes' logs go: beside the Trainer's log in a run, else with the training's other files."""
    progress = os.environ.get(callbacks.PROGRESS_VARIABLE)
    if progress:
        return str(Path(progress).with_name(Path(progress).name.partition(".")[0] + "."))
    Path(job.model_run_dir).mkdir(parents=True, exist_ok=True)
    return f"{job.model_run_dir}/"


def _start(task: Path, environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", worker_process.__name__, str(task)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
