"""How much memory each process of the cluster gets, by the memory of the machine."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.beam import machine_memory

MEGABYTE = 2**20
LEAST_MEGABYTES = 4096


@dataclass(frozen=True)
class Sizes:
    """Megabytes; the sizes of a TaskManager are those of each.

    Attributes:
        job_manager_heap: Java heap of the JobManager.
        job_server_heap: Java heap of Beam's job server.
        task_heap: Java heap of a TaskManager for Beam's runner.
        managed: What a TaskManager sorts and groups in.
        network: A TaskManager's buffers between tasks. With Flink's own 64 Transform's job, of over a hundred stages,
            fails: "Insufficient number of network buffers".
    """

    job_manager_heap: int
    job_server_heap: int
    task_heap: int
    managed: int
    network: int


def sizes(memory: int) -> Sizes:
    """The sizes for a machine.

    Args:
        memory: Megabytes that it has; Python's workers, which do the data work, need most of them.
    """
    return Sizes(
        job_manager_heap=_between(384, memory // 32, 1024),
        job_server_heap=_between(256, memory // 48, 1024),
        task_heap=_between(384, memory // 16, 4096),
        managed=_between(256, memory // 16, 4096),
        network=512 if memory >= 2 * LEAST_MEGABYTES else 256,
    )


def memory() -> int:
    """The megabytes of this machine, or of the container that this runs in."""
    return machine_memory() // MEGABYTE


def _between(least: int, wanted: int, most: int) -> int:
    return max(least, min(wanted, most))
