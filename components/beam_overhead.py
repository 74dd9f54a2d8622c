"""Removes fixed costs of Beam's in-memory runner that a pipeline of many small stages pays over and over.

None of this changes what a pipeline computes. All costs were found by profiling a fresh taxi run, whose nodes build and
run about a hundred stages (`make bench-taxi` shows the total).
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
    if not isinstance(core.get_function_args_defaults, _SignatureCache):
        core.get_function_args_defaults = _SignatureCache(core.get_function_args_defaults)
    if not isinstance(userstate.get_dofn_specs, _DoFnSpecsCache):
        userstate.get_dofn_specs = _DoFnSpecsCache(userstate.get_dofn_specs)
    if not isinstance(_dill._trace, _TraceSwitch):
        _dill._trace = _TraceSwitch(_dill._trace)


class _SignatureCache:
    """Caches the signature of each function; Beam asks for all methods of a DoFn about ten times a stage."""

    def __init__(self, inspect: Callable[[Any], Arguments]) -> None:
        self._inspect = inspect
        self._cache: dict[tuple[Any, bool], Arguments] = {}

    def __call__(self, function: Any) -> Arguments:
        bound = isinstance(function, types.MethodType)
        if not bound and not isinstance(function, types.FunctionType):
            return self._inspect(function)
        key = (function.__func__ if bound else function, bound)
        if key not in self._cache:
            self._cache[key] = self._inspect(function)
        arguments, defaults = self._cache[key]
        # Copies, since callers append to them.
        return list(arguments), list(defaults)


class _DoFnSpecsCache:
    """Caches the state and timers of each DoFn; Beam asks for them several times, each time looking at all methods."""

    def __init__(self, inspect: Callable[[Any], tuple[set[Any], set[Any]]]) -> None:
        self._inspect = inspect
        self._cache: WeakKeyDictionary[Any, tuple[set[Any], set[Any]]] = WeakKeyDictionary()

    def __call__(self, dofn: Any) -> tuple[set[Any], set[Any]]:
        if dofn not in self._cache:
            self._cache[dofn] = self._inspect(dofn)
        states, timers = self._cache[dofn]
        return set(states), set(timers)


class _TraceSwitch:
    """Switches dill's trace only where that changes it; Beam switches it off after each object that it pickles or
    reads.

    At each change of a level, Python clears the caches of all loggers, of which there are thousands.
    """

    def __init__(self, switch: Callable[[bool], None]) -> None:
        self._switch = switch

    def __call__(self, on: bool) -> None:
        if on or _dill.log.level != logging.WARNING:
            self._switch(on)
