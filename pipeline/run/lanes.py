"""Processes that run a run's nodes, several at once: each is forked from one that has imported TFX, and runs one after
another.

A node that follows another in the same process finds TensorFlow started. A process of its own for each would cost a
second a run; threads will not do, because a node's output is told apart by the process's descriptors.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from types import TracebackType

from components import processes
from contracts.failure import Failure
from pipeline.run.schedule import Schedule

Work = Callable[[str], Failure | None]
"""Runs a node; returns why it failed, if it did."""

KEPT_BYTES = 2 * 2**30
"""A process that holds more after a node is ended: the next node gets a new one."""

POLL_SECONDS = 0.5


class KilledError(Exception):
    """A process that ran a node was ended from outside.

    Attributes:
        number: The signal, or 0 if it ended itself.
    """

    def __init__(self, node: str, exit_code: int) -> None:
        super().__init__(f"the process of {node} ended with exit code {exit_code}.")
        self.number = max(-exit_code, 0)


class _Lane:
    """A process that runs one node after another."""

    def __init__(self, work: Work) -> None:
        context = multiprocessing.get_context("fork")
        self._requests, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, work))
        self._process.start()
        theirs.close()
        self.node: str | None = None

    @property
    def answers(self) -> Connection:
        """Readable when its node has ended, or when the process has."""
        return self._requests

    def begin(self, node: str) -> None:
        """Gives it a node to run."""
        self.node = node
        self._requests.send(node)

    def end(self) -> tuple[str, Failure | None, bool]:
        """The node that has ended, why it failed if it did, and whether the process can run another.

        Raises:
            KilledError: The process ended first.
        """
        node, self.node = str(self.node), None
        try:
            failure, held_bytes = self._requests.recv()
        except EOFError:
            self._process.join()
            raise KilledError(node, int(self._process.exitcode or 0)) from None
        return node, failure, held_bytes <= KEPT_BYTES

    def close(self) -> None:
        """Ends the process, which has nothing to clean up between nodes."""
        self._process.kill()
        self._process.join()
        self._requests.close()


class Lanes:
    """Runs the nodes of a schedule in forked processes.

    Args:
        work: Runs a node, in a forked process.
        number: How many nodes may run at once.
    """

    def __init__(self, work: Work, number: int) -> None:
        self._work = work
        self._number = number
        self._lanes: list[_Lane] = []

    def __enter__(self) -> Lanes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for lane in self._lanes:
            lane.close()

    def run(self, schedule: Schedule) -> None:
        """Runs nodes until none can begin and none runs.

        Raises:
            KilledError: A process was ended from outside.
        """
        parent = os.getppid()
        while True:
            for node in schedule.ready()[: self._number - len(self._busy)]:
                schedule.begin(node)
                self._free_lane().begin(node)
            if not self._busy:
                return
            for lane in self._ended():
                node, failure, usable = lane.end()
                schedule.end(node, failure)
                if not usable:
                    self._lanes.remove(lane)
                    lane.close()
            if os.getppid() != parent:
                # Not by `die_with`: its thread would be in the way of forking.
                os._exit(1)

    @property
    def _busy(self) -> list[_Lane]:
        return [lane for lane in self._lanes if lane.node is not None]

    def _ended(self) -> list[_Lane]:
        """Waits until a node ends, or for a moment."""
        lanes = {lane.answers: lane for lane in self._busy}
        return [lanes[answers] for answers in wait(list(lanes), POLL_SECONDS) if isinstance(answers, Connection)]

    def _free_lane(self) -> _Lane:
        """The process that has run most nodes of those that run none, or a new one."""
        free = next((lane for lane in self._lanes if lane.node is None), None)
        if free is None:
            free = _Lane(self._work)
            self._lanes.append(free)
        return free


def _serve(requests: Connection, work: Work) -> None:
    """Runs the nodes that are asked for; ended by its parent, or with it."""
    # Not the handlers of the process that forked this one.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    processes.die_with(os.getppid())
    while True:
        try:
            node = requests.recv()
        except EOFError:
            os._exit(0)
        failure = work(node)
        requests.send((failure, _held_bytes()))


def _held_bytes() -> int:
    """How much memory this process holds now, or at most held where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize()
    except FileNotFoundError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
