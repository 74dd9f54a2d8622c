"""Takes fixed costs out of Beam's in-memory runner that a pipeline of many small stages pays over and over.

Neither changes what a pipeline computes. Both were found by profiling a fresh taxi run, whose nodes build and run some
hundred stages (`make bench-taxi` shows the sum).
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from apache_beam.runners.worker import statesampler
from apache_beam.transforms import core

SAMPLING_PERIOD_MILLISECONDS = 10

Arguments = tuple[list[str], list[Any]]


def reduce_overhead() -> None:
    """Applies both savings to this process; calling it again changes nothing."""
    # Every stage ends by joining a sampling thread that sleeps this long, 200 ms by default.
    statesampler.StateSampler.__init__.__defaults__ = (SAMPLING_PERIOD_MILLISECONDS,)
    if not isinstance(core.get_function_args_defaults, _Remembered):
        core.get_function_args_defaults = _Remembered(core.get_function_args_defaults)


class _Remembered:
    """Remembers the signature of each function; Beam asks for those of all methods of a DoFn some ten times a stage."""

    def __init__(self, inspect: Callable[[Any], Arguments]) -> None:
        self._inspect = inspect
        self._known: dict[tuple[Any, bool], Arguments] = {}

    def __call__(self, function: Any) -> Arguments:
        bound = isinstance(function, types.MethodType)
        if not bound and not isinstance(function, types.FunctionType):
            return self._inspect(function)
        key = (function.__func__ if bound else function, bound)
        if key not in self._known:
            self._known[key] = self._inspect(function)
        arguments, defaults = self._known[key]
        # Callers append to what they get.
        return list(arguments), list(defaults)
