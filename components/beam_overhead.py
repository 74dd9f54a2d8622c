"""Takes fixed costs out of Beam's in-memory runner that a pipeline of many small stages pays over and over.

None changes what a pipeline computes. All were found by profiling a fresh taxi run, whose nodes build and run some
hundred stages (`make bench-taxi` shows the sum).
"""

from __future__ import annotations

import logging
import types
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from apache_beam.runners.worker import statesampler
from apache_beam.transforms import core, userstate
from dill import _dill

SAMPLING_PERIOD_MILLISECONDS = 10

Arguments = tuple[list[str], list[Any]]


def reduce_overhead() -> None:
    """Applies all savings to this process; calling it again changes nothing."""
    # Every stage ends by joining a sampling thread that sleeps this long, 200 ms by default.
    statesampler.StateSampler.__init__.__defaults__ = (SAMPLING_PERIOD_MILLISECONDS,)
    if not isinstance(core.get_function_args_defaults, _Remembered):
        core.get_function_args_defaults = _Remembered(core.get_function_args_defaults)
    if not isinstance(userstate.get_dofn_specs, _RememberedSpecs):
        userstate.get_dofn_specs = _RememberedSpecs(userstate.get_dofn_specs)
    if not isinstance(_dill._trace, _Trace):
        _dill._trace = _Trace(_dill._trace)


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


class _RememberedSpecs:
    """Remembers the state and timers of each DoFn; Beam asks each several times, and looks at all of its methods."""

    def __init__(self, inspect: Callable[[Any], tuple[set[Any], set[Any]]]) -> None:
        self._inspect = inspect
        self._known: WeakKeyDictionary[Any, tuple[set[Any], set[Any]]] = WeakKeyDictionary()

    def __call__(self, dofn: Any) -> tuple[set[Any], set[Any]]:
        if dofn not in self._known:
            self._known[dofn] = self._inspect(dofn)
        states, timers = self._known[dofn]
        return set(states), set(timers)


class _Trace:
    """Switches dill's trace only where it changes; Beam switches it off after each object that it pickles or reads.

    Python forgets what it knows of all loggers, of which there are thousands, at each change of a level.
    """

    def __init__(self, switch: Callable[[bool], None]) -> None:
        self._switch = switch

    def __call__(self, on: bool) -> None:
        if on or _dill.log.level != logging.WARNING:
            self._switch(on)
