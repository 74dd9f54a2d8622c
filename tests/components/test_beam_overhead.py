"""What is taken out of Beam's fixed costs changes no answer."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from apache_beam.runners.worker import statesampler
from apache_beam.transforms import core

from components import beam_overhead


class Doer:
    """A method with and without defaults."""

    def process(self, element: int, factor: int = 2, *, offset: int = 1) -> int:
        return element * factor + offset


def plain(element: int, window: str = "w") -> tuple[int, str]:
    return element, window


@pytest.fixture
def beam(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Beam's own inspection; everything is put back after the test."""
    own = core.get_function_args_defaults
    own = getattr(own, "_inspect", own)
    monkeypatch.setattr(core, "get_function_args_defaults", own)
    sampler = statesampler.StateSampler.__init__
    monkeypatch.setattr(sampler, "__defaults__", sampler.__defaults__)
    return own


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
