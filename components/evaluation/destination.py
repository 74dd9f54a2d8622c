"""Where the evaluation that is being built leaves what it keeps.

TFX calls `extractors.extractors` with what the evaluation is made of, and with nothing about where it goes.
"""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Destination:
    """Where it goes.

    Attributes:
        folder: The evaluation's folder.
        sampled_rows: How many rows the sample of predictions gets at most; 0 for no sample.
    """

    folder: str
    sampled_rows: int


_current: contextvars.ContextVar[Destination | None] = contextvars.ContextVar("destination", default=None)


@contextmanager
def leaving(folder: str, sampled_rows: int) -> Iterator[None]:
    """Makes evaluations that are built meanwhile in this thread leave their predictions in `folder`."""
    token = _current.set(Destination(folder, sampled_rows))
    try:
        yield
    finally:
        _current.reset(token)


def current() -> Destination | None:
    """Where the evaluation that is being built leaves them; None where it leaves none."""
    return _current.get()
