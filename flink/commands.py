"""The Java that runs Flink, and the command lines and memory of the cluster's processes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from contracts.errors import MillraceError
from pipeline.plan.beam import machine_memory

LEAST_JAVA, MOST_JAVA = 11, 21
GET_JAVA = "Install one: apt-get install default-jre-headless (Debian, Ubuntu), brew install openjdk@21 (macOS)."


def find_java() -> str:
    """The path of Java.

    Raises:
        MillraceError: There is no Java, or Flink does not run on it.
    """
    path = shutil.which("java")
    version_output = _output([path, "-version"]) if path else ""
    version = re.search(r'version "(?:1\.)?(\d+)', version_output)
    if path is None or version is None:
        raise MillraceError("Flink needs Java 11 to 21; there is no java in the PATH that starts.", GET_JAVA)
    if not LEAST_JAVA <= int(version[1]) <= MOST_JAVA:
        raise MillraceError(f"Flink 1.19 runs on Java 11 to 21; {path} is Java {version[1]}.", GET_JAVA)
    return path


def _output(command: list[str]) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.stdout + ended.stderr


MEGABYTE = 2**20
LEAST_MEGABYTES = 4096


@dataclass(frozen=True)
class Sizes:
    """Memory sizes in megabytes; those of a TaskManager are for each one.

    Attributes:
        job_manager_heap: The JobManager's Java heap.
        job_server_heap: The Java heap of Beam's job server.
        task_heap: A TaskManager's Java heap for Beam's runner.
        managed: A TaskManager's memory for sorting and grouping.
        network: A TaskManager's buffers between tasks. With Flink's default of 64, Transform's job of over a hundred
            stages fails: "Insufficient number of network buffers".
    """

    job_manager_heap: int
    job_server_heap: int
    task_heap: int
    managed: int
    network: int


def process_sizes(memory: int) -> Sizes:
    """The sizes for a machine.

    Args:
        memory: The machine's megabytes; Python's workers, which do the data work, need most of them.
    """
    return Sizes(
        job_manager_heap=_between(384, memory // 32, 1024),
        job_server_heap=_between(256, memory // 48, 1024),
        task_heap=_between(384, memory // 16, 4096),
        managed=_between(256, memory // 16, 4096),
        network=512 if memory >= 2 * LEAST_MEGABYTES else 256,
    )


def machine_megabytes() -> int:
    """The megabytes of this machine, or of the container that this runs in."""
    return machine_memory() // MEGABYTE


def _between(least: int, value: int, most: int) -> int:
    return max(least, min(value, most))


HOST = "localhost"
JOB_MANAGER, TASK_MANAGER, JOB_SERVER = "jobmanager", "taskmanager", "jobserver"
ENTRY_POINTS = {
    JOB_MANAGER: "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint",
    TASK_MANAGER: "org.apache.flink.runtime.taskexecutor.TaskManagerRunner",
    JOB_SERVER: "org.apache.beam.runners.flink.FlinkJobServerDriver",
}
# Flink 1.19 was written for Java 8 and accesses the internals of these packages.
OPENED = ("java.lang", "java.util", "java.util.concurrent", "java.time", "java.net", "java.io")

TEMPORARY = ("staged", "tmp")
"""Folders that are not needed once the cluster is stopped."""

FRAMEWORK, OFF_HEAP, METASPACE = 128, 256, 512
"""Megabytes of each TaskManager."""

# Jars whose class loader the job server uses, and the jars that need them.
STAGED = ("beam-runners-", "beam-sdks-", "flink-clients-", "flink-java-", "flink-optimizer-", "flink-streaming-java-")


@dataclass(frozen=True)
class Ports:
    """The ports on which the cluster listens.

    Attributes:
        rest: The JobManager's REST API and web page.
        rpc: The JobManager, for its TaskManagers.
        job: Beam's job server.
        artifact: The job server's artifact service.
        expansion: The job server's expansion service, which nothing here uses.
    """

    rest: int = 8081
    rpc: int = 6123
    job: int = 8099
    artifact: int = 8098
    expansion: int = 8097


@dataclass(frozen=True)
class Commands:
    """The command lines that start the processes of a cluster.

    Attributes:
        java: The path of Java.
        folder: The folder of configuration and temporary files.
        jars: The folder of the jars.
        ports: The ports on which the cluster listens.
        slots: The number of tasks that a TaskManager runs in parallel.
        sizes: The processes' memory.
    """

    java: str
    folder: Path
    jars: Path
    ports: Ports
    slots: int
    sizes: Sizes

    def command(self, name: str) -> list[str]:
        """The command line of the process with this name."""
        if name == JOB_MANAGER:
            return self._java(name, [f"-Xmx{self.sizes.job_manager_heap}m"], ["--configDir", str(self._configuration)])
        return self._job_server() if name == JOB_SERVER else self._task_manager()

    @property
    def _configuration(self) -> Path:
        return self.folder / "conf"

    def _job_server(self) -> list[str]:
        ports = [f"--{name}-port={getattr(self.ports, name)}" for name in ("job", "artifact", "expansion")]
        flink = [f"--flink-master={HOST}:{self.ports.rest}", f"--flink-conf-dir={self._configuration}"]
        place = [f"--job-host={HOST}", f"--artifacts-dir={self.folder / 'staged'}"]
        return self._java(JOB_SERVER, [f"-Xmx{self.sizes.job_server_heap}m"], [*flink, *place, *ports])

    def _task_manager(self) -> list[str]:
        heap = FRAMEWORK + self.sizes.task_heap
        direct = FRAMEWORK + OFF_HEAP + self.sizes.network
        limits = [f"-XX:MaxDirectMemorySize={direct}m", f"-XX:MaxMetaspaceSize={METASPACE}m"]
        properties = [f"-D{name}={value}" for name, value in _worker_sizes(self.sizes).items()]
        options = [f"-Xms{heap}m", f"-Xmx{heap}m", *limits]
        return self._java(TASK_MANAGER, options, ["--configDir", str(self._configuration), *properties])

    def _java(self, name: str, options: list[str], arguments: list[str]) -> list[str]:
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
        path = self._small_class_path() if name == JOB_SERVER else ["-cp", f"{self.jars}/*"]
        log = ["-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss"]
        return [self.java, *opened, *options, *log, *path, ENTRY_POINTS[name], *arguments]

    def _small_class_path(self) -> list[str]:
        """A class path of only a few jars, with the others on Java's boot class path.

        With each job the job server sends its class path to the cluster, which already has all of its 150 MB.
        """
        jars = sorted(self.jars.glob("*.jar"))
        staged = [jar for jar in jars if jar.name.startswith(STAGED)]
        unstaged = [jar for jar in jars if jar not in staged]
        return [f"-Xbootclasspath/a:{os.pathsep.join(map(str, unstaged))}", "-cp", os.pathsep.join(map(str, staged))]

    def write_configuration(self) -> None:
        """Writes the configuration that all processes read."""
        self._configuration.mkdir(parents=True, exist_ok=True)
        settings = {
            "jobmanager.rpc.address": HOST,
            "jobmanager.rpc.port": self.ports.rpc,
            "jobmanager.bind-host": HOST,
            "taskmanager.host": HOST,
            "taskmanager.bind-host": HOST,
            "taskmanager.numberOfTaskSlots": self.slots,
            "rest.address": HOST,
            "rest.bind-address": HOST,
            "rest.port": self.ports.rest,
            "classloader.resolve-order": "parent-first",
            "io.tmp.dirs": self.folder / "tmp",
        }
        (self.folder / "tmp").mkdir(exist_ok=True)
        lines = [f"{name}: {value}\n" for name, value in settings.items()]
        (self._configuration / "flink-conf.yaml").write_text("".join(lines), encoding="utf-8")


def _worker_sizes(sizes: Sizes) -> Mapping[str, str]:
    """A TaskManager's memory settings; like Flink's own script, they give every size."""
    memory_sizes = {
        "framework.heap.size": FRAMEWORK,
        "framework.off-heap.size": FRAMEWORK,
        "task.heap.size": sizes.task_heap,
        "task.off-heap.size": OFF_HEAP,
        "managed.size": sizes.managed,
        "network.min": sizes.network,
        "network.max": sizes.network,
        "jvm-metaspace.size": METASPACE,
        "jvm-overhead.min": 192,
        "jvm-overhead.max": 192,
    }
    return {"taskmanager.cpu.cores": "1.0"} | {
        f"taskmanager.memory.{name}": f"{size}m" for name, size in memory_sizes.items()
    }
