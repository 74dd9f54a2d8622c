"""Starts a training in several processes: on this machine, or wherever the caller's launcher puts them.

The processes find each other by TF_CONFIG on loopback, as the tasks of a real cluster do over its network. If the
environment already has a TF_CONFIG, nothing is started, since this process is one of its tasks.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import tensorflow as tf

from components.trainer import (
    devices,
    processes,
    worker_process,  # noqa: F401  # started by name; its code counts for the Trainer's fingerprint
)
from components.trainer.job import Job, Task
from components.trainer.processes import PROGRESS_VARIABLE, Launch, Launcher, Surroundings, Worker
from components.trainer.settings import TrainerSettings
from contracts.errors import TrainingError

GPUS_VARIABLE = "CUDA_VISIBLE_DEVICES"

Role = tuple[str, int]
"""Kind and index of a task, as in TF_CONFIG."""


def is_needed(settings: TrainerSettings) -> bool:
    """Whether this training needs processes of its own.

    Besides the strategies with several processes, that is true of trainings that reconfigure TensorFlow's devices. This
    is only possible before TensorFlow uses any, and in a pipeline's process it already has.
    """
    if devices.cluster_config():
        return False
    if settings.in_several_processes:
        return True
    gpus = tf.config.list_physical_devices("GPU")
    rehearsal = not gpus and (settings.replicas or 1) > 1
    return rehearsal or bool(gpus and settings.gpu_memory_limit_mb)


def train(job: Job, surroundings: Surroundings) -> None:
    """Trains in processes of its own, and returns when the chief has exported the model.

    Raises:
        TrainingError: A process died, and the others were ended; or there are fewer GPUs than workers.
        MillraceError: A process raised it.
    """
    if surroundings.launcher and job.settings.in_several_processes:
        _train_elsewhere(job, surroundings.progress, surroundings.launcher)
    else:
        _train_here(job, surroundings.progress)


def _train_elsewhere(job: Job, progress: str | None, launcher: Launcher) -> None:
    """Writes the tasks to a folder beside the logs, which all processes can see, and has the launcher start them."""
    prefix = Path(_log_prefix(job, progress))
    with tempfile.TemporaryDirectory(prefix=f"{prefix.name}processes-", dir=prefix.parent) as folder:
        launch = Launch(Path(folder), processes.process_counts(job.settings), progress)
        for name in launch.names:
            _write_task(launch.folder, name, job, parent=None)
        launcher(launch)


def _train_here(job: Job, progress: str | None) -> None:
    roles = _roles(job.settings)
    cores = _divide(sorted(os.sched_getaffinity(0)), job.settings.workers)
    gpus = _divide_gpus(job.settings.workers) if len(roles) > 1 else []
    addresses = _addresses(roles) if len(roles) > 1 else {}
    logs = _log_prefix(job, progress)
    with tempfile.TemporaryDirectory(prefix="millrace-training-") as folder, ExitStack() as started:
        workers = []
        for role in roles:
            kind, index = role
            name, is_chief = f"{kind}-{index}", role == roles[0]
            task = _write_task(Path(folder), name, job, parent=os.getpid())
            environment = _environment(addresses, role, progress if is_chief else None)
            if gpus:
                environment[GPUS_VARIABLE] = gpus[index] if kind == "worker" else "-1"
            log = Path(f"{logs}{name}.log")
            with _on_cores(cores[index] if kind == "worker" else []):
                process = _start(task, environment, log)
            started.callback(processes.end_process, process)
            workers.append(Worker(name, process, log, processes.failure_path(Path(folder), name), is_chief))
        processes.watch(workers)


def _write_task(folder: Path, name: str, job: Job, parent: int | None) -> Path:
    task = Task(job=job, parent=parent, failure_path=str(processes.failure_path(folder, name)))
    path = folder / f"{name}.json"
    path.write_text(task.model_dump_json(), encoding="utf-8")
    return path


def _roles(settings: TrainerSettings) -> list[Role]:
    """The tasks, the chief first."""
    workers = [("worker", index) for index in range(settings.workers)]
    if settings.strategy != "parameter_server":
        return workers
    return [("chief", 0), *workers, *(("ps", index) for index in range(settings.parameter_servers))]


def _divide(cores: Sequence[int], num_workers: int) -> list[list[int]]:
    """Each worker's share of the cores; empty lists, which mean all cores, if there are fewer cores than workers."""
    if num_workers == 1 or len(cores) < num_workers:
        return [[] for _ in range(num_workers)]
    return [list(cores[index::num_workers]) for index in range(num_workers)]


def _divide_gpus(num_workers: int) -> list[str]:
    """The GPUs that each worker may see, as CUDA names them; empty if the machine has none."""
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


def _addresses(roles: Sequence[Role]) -> dict[str, list[str]]:
    """A free port on loopback for each task, by kind."""
    addresses: dict[str, list[str]] = {}
    with ExitStack() as reserved:
        # All are held open at once, or two tasks could be given the same port.
        for kind, _ in roles:
            listener = reserved.enter_context(socket.socket())
            listener.bind(("127.0.0.1", 0))
            addresses.setdefault(kind, []).append(f"127.0.0.1:{listener.getsockname()[1]}")
    return addresses


def _environment(addresses: dict[str, list[str]], role: Role, progress: str | None) -> dict[str, str]:
    """A process's environment: this process's, plus what it needs to find the others and the recipe."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    environment.pop(PROGRESS_VARIABLE, None)
    if progress:
        environment[PROGRESS_VARIABLE] = progress
    if addresses:
        task = {"cluster": addresses, "task": {"type": role[0], "index": role[1]}}
        environment[devices.CONFIG_VARIABLE] = json.dumps(task)
    return environment


def _log_prefix(job: Job, progress: str | None) -> str:
    """The prefix of the processes' logs: beside the Trainer's log in a run, else with the training's other files."""
    if progress:
        return str(Path(progress).with_name(Path(progress).name.partition(".")[0] + "."))
    Path(job.model_run_dir).mkdir(parents=True, exist_ok=True)
    return f"{job.model_run_dir}/"


@contextmanager
def _on_cores(cores: Collection[int]) -> Iterator[None]:
    """Binds the processes that this thread starts to some of the cores; to all of them if none are given.

    A process has to be bound from its start, because TensorFlow creates a thread for each core when it is loaded.
    """
    if not cores:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _start(task: Path, environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            processes.worker_command(task),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
