"""Watches the processes below this one while they run: processor time and memory, twice a second."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import psutil

PERIOD_SECONDS = 0.5


@dataclass
class Watched:
    """What was seen of all processes together.

    Attributes:
        times: When, in seconds since 1970.
        cpu_seconds: Processor time so far of those that run, and of children that they have waited for.
        bytes_held: Their memory; what several share counts once (PSS).
    """

    times: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    bytes_held: list[int] = field(default_factory=list)

    @property
    def peak_bytes(self) -> int:
        """The most memory that was seen."""
        return max(self.bytes_held, default=0)

    def cores_in_use(self, spans: Sequence[tuple[float, float]]) -> float:
        """The cores in use on average, within spans of time given by start and end in seconds since 1970."""
        seconds = cpu_seconds = 0.0
        for span in _joined(spans):
            first, last = (min(bisect_left(self.times, moment), len(self.times) - 1) for moment in span)
            seconds += self.times[last] - self.times[first]
            cpu_seconds += self.cpu_seconds[last] - self.cpu_seconds[first]
        return cpu_seconds / seconds if seconds else 0.0


@contextmanager
def watched() -> Iterator[Watched]:
    """Watches all processes that this one starts within the context."""
    seen, ended = Watched(), threading.Event()

    def watch() -> None:
        while not ended.wait(PERIOD_SECONDS):
            cpu_seconds, bytes_held = 0.0, 0
            for process in psutil.Process().children(recursive=True):
                # One that has ended in the meantime.
                with suppress(psutil.NoSuchProcess):
                    cpu_seconds += sum(process.cpu_times()[:4])
                    bytes_held += process.memory_full_info().pss
            seen.times.append(time.time())
            seen.cpu_seconds.append(cpu_seconds)
            seen.bytes_held.append(bytes_held)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def _joined(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same time in spans that do not overlap."""
    joined: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined
