"""Starts and stops a real Flink session cluster here, with Beam's job server: `python -m flink.cluster start|stop`.

A JobManager, TaskManagers, and what hands Beam's pipelines to Flink; all on the loopback interface alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import sys
import time
import urllib.error
import urllib.request
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import click

from components.errors import MillraceError
from flink import jars
from flink.commands import HOST, JOB_MANAGER, JOB_SERVER, TEMPORARY, Commands, Ports
from flink.processes import Process
from flink.sizes import LEAST_MEGABYTES, memory, sizes

FOLDER = Path(__file__).resolve().parent.parent / ".flink"
POLL_SECONDS = 0.25
START_SECONDS = 120.0


@dataclass(frozen=True)
class Cluster:
    """A cluster.

    Attributes:
        folder: Of its logs and process ids.
        ports: Where it listens.
        task_managers: How many TaskManagers it has.
        jars: The folder of what Maven brings.
    """

    folder: Path = FOLDER
    ports: Ports = field(default_factory=Ports)
    task_managers: int = 2
    jars: Path = FOLDER / "jars"

    @property
    def slots(self) -> int:
        """How many tasks a TaskManager runs side by side."""
        return max(1, (os.cpu_count() or 1) // self.task_managers)

    @property
    def processes(self) -> list[Process]:
        """In the order in which they start."""
        workers = [f"taskmanager-{number}" for number in range(1, self.task_managers + 1)]
        return [Process(name, self.folder / "run") for name in (JOB_MANAGER, *workers, JOB_SERVER)]

    def start(self) -> bool:
        """Starts what does not run and waits until all of it can be used; whether anything had to be started.

        Raises:
            MillraceError: Java or Maven is missing, a port is taken, a process died or came not to its work in time.
        """
        path = jars.java()
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            missing = [process for process in self.processes if process.pid() is None]
            if missing:
                jars.fetch(self.jars)
                self._check_ports({process.name for process in missing})
                commands = Commands(path, self.folder, self.jars, self.ports, self.slots, sizes(_enough_memory()))
                commands.write_configuration()
                for process in missing:
                    process.start(commands.of(process.name))
            try:
                self._wait()
            except MillraceError:
                self._stop()
                raise
        return bool(missing)

    def stop(self) -> bool:
        """Ends all of it; whether anything ran."""
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
        of_process = {
            JOB_MANAGER: {"rest": self.ports.rest, "rpc": self.ports.rpc},
            JOB_SERVER: {name: getattr(self.ports, name) for name in ("job", "artifact", "expansion")},
        }
        for name in names & of_process.keys():
            for option, port in of_process[name].items():
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
    """How many TaskManagers the JobManager on this machine has; 0 while it does not answer."""
    try:
        with urllib.request.urlopen(f"http://{HOST}:{rest_port}/overview", timeout=5) as answer:
            return int(json.load(answer)["taskmanagers"])
    except (urllib.error.URLError, ConnectionError, TimeoutError, ValueError, KeyError):
        # It opens its port before it can answer.
        return 0


def _answers(port: int) -> bool:
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as connection:
        connection.settimeout(1)
        return connection.connect_ex((HOST, port)) == 0


def _enough_memory() -> int:
    found = memory()
    if found < LEAST_MEGABYTES:
        raise MillraceError(
            f"a Flink cluster with two TaskManagers needs {LEAST_MEGABYTES} MB of memory; here are {found} MB.",
            "Run without it: --env local.",
        )
    return found


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """A Flink session cluster with Beam's job server on this machine."""


FOLDER_OPTION = click.option(
    "--folder", default=FOLDER, type=click.Path(path_type=Path, resolve_path=True), help="Of its logs and process ids."
)


@main.command()
@FOLDER_OPTION
@click.option("--rest-port", default=Ports.rest, show_default=True, help="Of Flink's REST and web page.")
@click.option("--rpc-port", default=Ports.rpc, show_default=True, help="Of the JobManager for its TaskManagers.")
@click.option("--job-port", default=Ports.job, show_default=True, help="Of Beam's job server.")
@click.option("--artifact-port", default=Ports.artifact, show_default=True, help="Of its artifacts.")
@click.option("--expansion-port", default=Ports.expansion, show_default=True, help="Of its expansion service.")
def start(folder: Path, rest_port: int, rpc_port: int, job_port: int, artifact_port: int, expansion_port: int) -> None:
    """Start what does not run yet, and wait until it can be used."""
    cluster = Cluster(folder, Ports(rest_port, rpc_port, job_port, artifact_port, expansion_port))
    try:
        started = cluster.start()
    except MillraceError as error:
        click.echo(f"flink: {error}", err=True)
        sys.exit(1)
    slots = cluster.task_managers * cluster.slots
    click.echo(
        f"Flink {'runs' if started else 'already runs'}: {cluster.task_managers} TaskManagers, {slots} slots, "
        f"http://{HOST}:{rest_port}; Beam's job server on {HOST}:{job_port}.\n"
        "Run on it: millrace run taxi --env flink; end it: make flink-stop"
    )


@main.command()
@FOLDER_OPTION
def stop(folder: Path) -> None:
    """Stop all of it."""
    click.echo("Flink is stopped." if Cluster(folder).stop() else "Flink does not run.")


if __name__ == "__main__":
    main()
