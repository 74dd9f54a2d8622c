"""The savings on Beam's fixed costs change no result."""

from __future__ import annotations

import functools
import logging
from typing import Any

import pytest
from apache_beam import DoFn
from apache_beam.runners.worker import statesampler
from apache_beam.transforms import core, userstate
from apache_beam.transforms.timeutil import TimeDomain
from dill import _dill

from components import beam_overhead


class Doer:
    """A method with and without defaults."""

    def process(self, element: int, factor: int = 2, *, offset: int = 1) -> int:
        return element * factor + offset


def plain(element: int, window: str = "w") -> tuple[int, str]:
    return element, window


@pytest.fixture
def beam(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Beam's own inspection; the test's changes are undone afterwards."""
    inspect = core.get_function_args_defaults
    inspect = getattr(inspect, "_inspect", inspect)
    monkeypatch.setattr(core, "get_function_args_defaults", inspect)
    for module, name in ((userstate, "get_dofn_specs"), (_dill, "_trace")):
        monkeypatch.setattr(module, name, getattr(getattr(module, name), "_inspect", getattr(module, name)))
    sampler = statesampler.StateSampler.__init__
    monkeypatch.setattr(sampler, "__defaults__", sampler.__defaults__)
    return inspect


@pytest.mark.parametrize(
    "function",
    [plain, Doer.process, Doer().process, functools.partial(plain, window="x"), lambda a, b=3: a],
    ids=["function", "method", "bound method", "partial", "lambda"],
)
def test_signatures_are_those_that_beam_reads(beam: Any, function: Any) -> None:
    beam_overhead.reduce_overhead()
    for _ in range(2):
        assert core.get_function_args_defaults(function) == beam(function)


def test_who_changes_an_answer_does_not_change_the_next(beam: Any) -> None:
    beam_overhead.reduce_overhead()
    names, defaults = core.get_function_args_defaults(plain)
    names.append("more")
    defaults.clear()
    assert core.get_function_args_defaults(plain) == beam(plain)


def test_a_second_call_changes_nothing(beam: Any) -> None:
    beam_overhead.reduce_overhead()
    once = core.get_function_args_defaults
    beam_overhead.reduce_overhead()
    assert core.get_function_args_defaults is once
    assert statesampler.StateSampler.__init__.__defaults__ == (beam_overhead.SAMPLING_PERIOD_MILLISECONDS,)


COUNT = DoFn.StateParam(userstate.CombiningValueStateSpec("count", sum))
LATER = DoFn.TimerParam(userstate.TimerSpec("later", TimeDomain.WATERMARK))


class Counting(DoFn):
    """State and a timer."""

    def process(self, element: int, count: Any = COUNT, later: Any = LATER) -> None:
        count.add(element)


def test_state_and_timers_are_those_that_beam_finds(beam: Any) -> None:
    beam_overhead.reduce_overhead()
    counting, plain_one = Counting(), DoFn()
    for _ in range(2):
        states, timers = userstate.get_dofn_specs(counting)
        assert (states, timers) == ({COUNT.state_spec}, {LATER.timer_spec})
        states.clear()
        assert userstate.get_dofn_specs(plain_one) == (set(), set())
    assert userstate.is_stateful_dofn(counting)
    assert not userstate.is_stateful_dofn(plain_one)


def test_the_trace_of_pickling_is_switched_as_before(beam: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    beam_overhead.reduce_overhead()
    levels: list[int] = []
    monkeypatch.setattr(_dill.log, "setLevel", lambda level: levels.append(level) or setattr(_dill.log, "level", level))
    monkeypatch.setattr(_dill.log, "level", logging.NOTSET)
    for on in (False, False, True, True, False, False):
        _dill._trace(on)
    assert levels == [logging.WARNING, logging.INFO, logging.INFO, logging.WARNING]
