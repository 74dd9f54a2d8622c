"""The command lines of the cluster's processes, and Flink's configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from flink.sizes import Sizes

HOST = "localhost"
JOB_MANAGER, TASK_MANAGER, JOB_SERVER = "jobmanager", "taskmanager", "jobserver"
ENTRY_POINTS = {
    JOB_MANAGER: "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint",
    TASK_MANAGER: "org.apache.flink.runtime.taskexecutor.TaskManagerRunner",
    JOB_SERVER: "org.apache.beam.runners.flink.FlinkJobServerDriver",
}
# Flink 1.19 was written for Java 8 and looks into these.
OPENED = ("java.lang", "java.util", "java.util.concurrent", "java.time", "java.net", "java.io")

TEMPORARY = ("staged", "tmp")
"""Folders that are of no use once the cluster is stopped."""

FRAMEWORK, OFF_HEAP, METASPACE = 128, 256, 512
"""Megabytes of each TaskManager."""

# What the job server asks for the class loader of, and what needs these.
STAGED = ("beam-runners-", "beam-sdks-", "flink-clients-", "flink-java-", "flink-optimizer-", "flink-streaming-java-")


@dataclass(frozen=True)
class Ports:
    """Where the cluster listens.

    Attributes:
        rest: The JobManager's REST and web page.
        rpc: The JobManager for its TaskManagers.
        job: Beam's job server.
        artifact: Its artifacts.
        expansion: Its expansion service, which nothing here uses.
    """

    rest: int = 8081
    rpc: int = 6123
    job: int = 8099
    artifact: int = 8098
    expansion: int = 8097


@dataclass(frozen=True)
class Commands:
    """How the processes of a cluster are started.

    Attributes:
        java: The path of Java.
        folder: Of configuration and temporary files.
        jars: The folder of the jars.
        ports: Where the cluster listens.
        slots: How many tasks a TaskManager runs side by side.
        sizes: Of the processes' memory.
    """

    java: str
    folder: Path
    jars: Path
    ports: Ports
    slots: int
    sizes: Sizes

    def of(self, name: str) -> list[str]:
        """The command line of a process, by its name."""
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
        given = [f"-D{name}={value}" for name, value in _worker_sizes(self.sizes).items()]
        options = [f"-Xms{heap}m", f"-Xmx{heap}m", *limits]
        return self._java(TASK_MANAGER, options, ["--configDir", str(self._configuration), *given])

    def _java(self, name: str, options: list[str], arguments: list[str]) -> list[str]:
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
        path = self._staged_least() if name == JOB_SERVER else ["-cp", f"{self.jars}/*"]
        log = ["-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss"]
        return [self.java, *opened, *options, *log, *path, ENTRY_POINTS[name], *arguments]

    def _staged_least(self) -> list[str]:
        """A class path that is a few jars, with all the others where Java's own classes are.

        With each job the job server sends its class path to the cluster, which has all of it: 150 MB.
        """
        every = sorted(self.jars.glob("*.jar"))
        staged = [jar for jar in every if jar.name.startswith(STAGED)]
        others = [jar for jar in every if jar not in staged]
        return [f"-Xbootclasspath/a:{os.pathsep.join(map(str, others))}", "-cp", os.pathsep.join(map(str, staged))]

    def write_configuration(self) -> None:
        """Writes what all of them read."""
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


def _worker_sizes(chosen: Sizes) -> Mapping[str, str]:
    """A TaskManager wants every size given, as Flink's own script does."""
    memory_sizes = {
        "framework.heap.size": FRAMEWORK,
        "framework.off-heap.size": FRAMEWORK,
        "task.heap.size": chosen.task_heap,
        "task.off-heap.size": OFF_HEAP,
        "managed.size": chosen.managed,
        "network.min": chosen.network,
        "network.max": chosen.network,
        "jvm-metaspace.size": METASPACE,
        "jvm-overhead.min": 192,
        "jvm-overhead.max": 192,
    }
    return {"taskmanager.cpu.cores": "1.0"} | {
        f"taskmanager.memory.{name}": f"{size}m" for name, size in memory_sizes.items()
    }
