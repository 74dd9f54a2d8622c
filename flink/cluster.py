"""Starts and stops a real Flink session cluster on this machine: `python -m flink.cluster start|stop`.

It has a JobManager, TaskManagers, and Beam's job server, which hands pipelines to Flink; all listen only on the
loopback interface.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import click

from contracts.errors import MillraceError
from flink import commands, jars
from flink.commands import (
    HOST,
    JOB_MANAGER,
    JOB_SERVER,
    LEAST_MEGABYTES,
    TEMPORARY,
    Commands,
    Ports,
    machine_megabytes,
    process_sizes,
)
from pipeline.plan import project

SHOWN_LINES = 8
PROCESS_POLL_SECONDS = 0.1
GRACE_SECONDS = 15.0


@dataclass(frozen=True)
class Process:
    """One process of the cluster.

    Attributes:
        name: Its name in this cluster; its log is `NAME.log`.
        folder: The folder of its log and of the file with its process id.
    """

    name: str
    folder: Path

    @property
    def log(self) -> Path:
        """What it prints."""
        return self.folder / f"{self.name}.log"

    @property
    def _pid_file(self) -> Path:
        return self.folder / f"{self.name}.pid"

    def start(self, command: Sequence[str]) -> None:
        """Starts Java with these arguments and a new log."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                [command[0], self._mark, *command[1:]],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._pid_file.write_text(str(process.pid), encoding="ascii")
        # A new process has no command line for a moment.
        while self.pid() is None and process.poll() is None:
            time.sleep(PROCESS_POLL_SECONDS)

    @property
    def _mark(self) -> str:
        """A Java property that distinguishes the process from any later one with the same id."""
        return f"-Dmillrace.process={self.folder.absolute()}/{self.name}"

    def pid(self) -> int | None:
        """The process id; None if it does not run."""
        if not self._pid_file.exists():
            return None
        pid = int(self._pid_file.read_text(encoding="ascii"))
        return pid if self._mark in _command_line(pid) else None

    def stop(self) -> bool:
        """Ends the process, by force if it does not end soon; returns whether it ran."""
        pid = self.pid()
        if pid is not None:
            os.kill(pid, signal.SIGTERM)
            deadline = time.monotonic() + GRACE_SECONDS
            while self.pid() is not None:
                if time.monotonic() > deadline:
                    os.kill(pid, signal.SIGKILL)
                time.sleep(PROCESS_POLL_SECONDS)
        self._pid_file.unlink(missing_ok=True)
        return pid is not None

    def last_lines(self) -> str:
        """The last lines of its log."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(f"  {line[:300]}" for line in lines[-SHOWN_LINES:]) or "  (it printed nothing)"


def _command_line(pid: int) -> str:
    """The command line of a process; empty if there is no such process, or it has ended."""
    listed = Path(f"/proc/{pid}/cmdline")
    if Path("/proc/self/cmdline").exists():
        try:
            return listed.read_bytes().decode("utf-8", "replace")
        except (FileNotFoundError, ProcessLookupError):
            return ""
    result = subprocess.run(
        ["ps", "-ww", "-p", str(pid), "-o", "command="], capture_output=True, text=True, check=False
    )
    return result.stdout


POLL_SECONDS = 0.25
START_SECONDS = 120.0


def default_folder() -> Path:
    """The folder of a cluster, within the project's folder."""
    return project.root() / ".flink"


@dataclass(frozen=True)
class Cluster:
    """A Flink session cluster with Beam's job server.

    Attributes:
        folder: The folder of its logs and process ids.
        ports: The ports on which it listens.
        task_managers: The number of TaskManagers.
        jars: The folder of the jars that Maven downloads.
    """

    folder: Path = field(default_factory=default_folder)
    ports: Ports = field(default_factory=Ports)
    task_managers: int = 2
    jars: Path = field(default_factory=lambda: default_folder() / "jars")

    @property
    def slots(self) -> int:
        """The number of tasks that a TaskManager runs in parallel."""
        return max(1, (os.cpu_count() or 1) // self.task_managers)

    @property
    def processes(self) -> list[Process]:
        """The processes, in the order in which they start."""
        workers = [f"taskmanager-{number}" for number in range(1, self.task_managers + 1)]
        return [Process(name, self.folder / "run") for name in (JOB_MANAGER, *workers, JOB_SERVER)]

    def start(self) -> bool:
        """Starts the processes that do not run and waits until all are ready; returns whether any had to be started.

        Raises:
            MillraceError: Java or Maven is missing, a port is taken, or a process died or was not ready in time.
        """
        path = commands.find_java()
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            missing = [process for process in self.processes if process.pid() is None]
            if missing:
                jars.fetch(self.jars)
                self._check_ports({process.name for process in missing})
                start_commands = Commands(
                    path, self.folder, self.jars, self.ports, self.slots, process_sizes(_enough_memory())
                )
                start_commands.write_configuration()
                for process in missing:
                    process.start(start_commands.command(process.name))
            try:
                self._wait()
            except MillraceError:
                self._stop()
                raise
        return bool(missing)

    def stop(self) -> bool:
        """Ends all processes; returns whether any ran."""
        if not self.folder.exists():
            return False
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return self._stop()

    def _stop(self) -> bool:
        stopped = [process.stop() for process in reversed(self.processes)]
        for name in TEMPORARY:
            shutil.rmtree(self.folder / name, ignore_errors=True)
        return any(stopped)

    def _check_ports(self, names: set[str]) -> None:
        ports_of_process = {
            JOB_MANAGER: {"rest": self.ports.rest, "rpc": self.ports.rpc},
            JOB_SERVER: {name: getattr(self.ports, name) for name in ("job", "artifact", "expansion")},
        }
        for name in names & ports_of_process.keys():
            for option, port in ports_of_process[name].items():
                if _answers(port):
                    raise MillraceError(
                        f"port {port}, which Flink's {name} needs, is taken by another process.",
                        f"End that process, or choose another port: make flink FLAGS='--{option}-port {port + 100}', "
                        "and name it in environments/flink.yaml.",
                    )

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            for process in self.processes:
                if process.pid() is None:
                    raise MillraceError(f"Flink's {process.name} died. Its last lines:\n{process.last_lines()}", _SEE)
            registered = registered_task_managers(self.ports.rest)
            if registered == self.task_managers and _answers(self.ports.job):
                return
            if time.monotonic() > deadline:
                slow = self.processes[-1 if registered == self.task_managers else 1]
                raise MillraceError(
                    f"after {START_SECONDS:.0f} s {registered} of {self.task_managers} TaskManagers are registered. "
                    f"The last lines of {slow.name}:\n{slow.last_lines()}",
                    _SEE,
                )
            time.sleep(POLL_SECONDS)


_SEE = "The whole logs are in .flink/run/; `make flink` tries again."


def registered_task_managers(rest_port: int) -> int:
    """The number of TaskManagers registered with the JobManager on this machine; 0 while it does not answer."""
    try:
        with urllib.request.urlopen(f"http://{HOST}:{rest_port}/overview", timeout=5) as response:
            return int(json.load(response)["taskmanagers"])
    except (urllib.error.URLError, ConnectionError, TimeoutError, ValueError, KeyError):
        # The JobManager opens its port before it can answer.
        return 0


def _answers(port: int) -> bool:
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as connection:
        connection.settimeout(1)
        return connection.connect_ex((HOST, port)) == 0


def _enough_memory() -> int:
    megabytes = machine_megabytes()
    if megabytes < LEAST_MEGABYTES:
        raise MillraceError(
            f"a Flink cluster with two TaskManagers needs {LEAST_MEGABYTES} MB of memory; "
            f"this machine has {megabytes} MB.",
            "Run without it: --env local.",
        )
    return megabytes


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """A Flink session cluster with Beam's job server on this machine."""


FOLDER_OPTION = click.option(
    "--folder",
    default=default_folder,
    type=click.Path(path_type=Path, resolve_path=True),
    help="Folder of the logs and process ids.",
)


@main.command()
@FOLDER_OPTION
@click.option("--rest-port", default=Ports.rest, show_default=True, help="Port of Flink's REST API and web page.")
@click.option("--rpc-port", default=Ports.rpc, show_default=True, help="Port of the JobManager for its TaskManagers.")
@click.option("--job-port", default=Ports.job, show_default=True, help="Port of Beam's job server.")
@click.option("--artifact-port", default=Ports.artifact, show_default=True, help="Of its artifacts.")
@click.option("--expansion-port", default=Ports.expansion, show_default=True, help="Port of its expansion service.")
def start(folder: Path, rest_port: int, rpc_port: int, job_port: int, artifact_port: int, expansion_port: int) -> None:
    """Start the cluster unless it runs, and wait until it is ready."""
    cluster = Cluster(folder, Ports(rest_port, rpc_port, job_port, artifact_port, expansion_port))
    try:
        started = cluster.start()
    except MillraceError as error:
        click.echo(f"flink: {error}", err=True)
        sys.exit(1)
    click.echo(f"flink: {jars.describe(cluster.jars)}")
    slots = cluster.task_managers * cluster.slots
    click.echo(
        f"Flink {'runs' if started else 'already runs'}: {cluster.task_managers} TaskManagers, {slots} slots, "
        f"http://{HOST}:{rest_port}; Beam's job server on {HOST}:{job_port}.\n"
        "Run on it: millrace run taxi --env flink; end it: make flink-stop"
    )


@main.command()
@FOLDER_OPTION
def stop(folder: Path) -> None:
    """Stop the cluster."""
    click.echo("Flink is stopped." if Cluster(folder).stop() else "Flink is not running.")


if __name__ == "__main__":
    main()
