"""Work on several batches at once, in threads: TensorFlow, Arrow and NumPy do theirs without Python's lock."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

WAITING = 2
"""Items for each core that are read before they are needed."""

Given = TypeVar("Given")
Made = TypeVar("Made")


def available_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def on_all_cores(work: Callable[[Given], Made], items: Iterable[Given]) -> Iterator[Made]:
    """Yields `work(item)` in the order of the items, several at once; few are held at a time.

    Args:
        work: Most of it must be done without Python's lock.
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
