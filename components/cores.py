"""Work on several batches at once: in threads where it is done without Python's lock, else in processes."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

from components import processes

WAITING = 2
"""Items for each core that are read before they are needed."""

Given = TypeVar("Given")
Made = TypeVar("Made")


def available_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def worker_processes() -> Iterator[ProcessPoolExecutor]:
    """A process for each core, for work that holds Python's lock; each takes seconds to import what it needs.

    They are started anew rather than forked: this process has threads of TensorFlow and Arrow.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(available_cores(), context, processes.die_with, (os.getpid(),)) as pool:
        yield pool


def on_all_cores(work: Callable[[Given], Made], items: Iterable[Given]) -> Iterator[Made]:
    """Yields `work(item)` in the order of the items, several at once; few are held at a time.

    Args:
        work: Most of it must be done without Python's lock, as TensorFlow, Arrow and NumPy do theirs: calls of a
            few microseconds are not, since threads wait longer for the lock than such a call takes.
        items: Read in this thread, as they are needed.
    """
    cores = available_cores()
    remaining = iter(items)
    with ThreadPoolExecutor(cores) as pool:
        waiting = deque(pool.submit(work, item) for item in islice(remaining, cores * WAITING))
        try:
            while waiting:
                made = waiting.popleft().result()
                waiting.extend(pool.submit(work, item) for item in islice(remaining, 1))
                yield made
        finally:
            for future in waiting:
                future.cancel()
