"""Has memory that requests needed given back to the system."""

from __future__ import annotations

import ctypes
import os
import platform

# glibc's malloc.h, and the variable of the same meaning by which the user may say otherwise.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
SETTINGS = {
    "MALLOC_ARENA_MAX": (M_ARENA_MAX, 2),
    "MALLOC_MMAP_THRESHOLD_": (M_MMAP_THRESHOLD, 256 * 1024),
    "MALLOC_TRIM_THRESHOLD_": (M_TRIM_THRESHOLD, 256 * 1024),
}


def give_back() -> list[str]:
    """Sets glibc's allocator to return what is free; call it before threads are started.

    By itself it keeps what was once needed in an arena of each thread: a server of many threads that gets requests of
    many sizes grows for days.

    Returns:
        Names of the settings that were made: none that the environment has already, none with another C library.
    """
    if platform.libc_ver()[0] != "glibc":
        return []
    libc = ctypes.CDLL(None)
    return [
        name
        for name, (option, value) in SETTINGS.items()
        if name not in os.environ and libc.mallopt(option, value) == 1
    ]
