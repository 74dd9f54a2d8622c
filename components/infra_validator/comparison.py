"""Whether the answers of a server are those that the Evaluator saw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Outputs = Mapping[str, Array]
MOST_SHOWN = 6


@dataclass(frozen=True)
class Tolerance:
    """How far a number may be off: |got - expected| <= absolute + relative * |expected|.

    The same kernels compute both answers, but one row at a time instead of thousands, in a graph that was optimized as
    a whole: sums are added up in another order. Anything else that differs is a fault.
    """

    relative: float
    absolute: float


TOLERANCES = {
    # Units in the last place of float32 are 6e-8; some hundred of them are lost in long sums of mixed signs.
    "float32": Tolerance(1e-4, 1e-5),
    # A sum on the other side of a rounding border changes by 2^-10 or 2^-7 of its value, in each layer.
    "mixed_float16": Tolerance(1e-2, 2e-3),
    "mixed_bfloat16": Tolerance(5e-2, 1e-2),
}
"""By Keras's dtype policy."""


@dataclass(frozen=True)
class Difference:
    """Something that was answered otherwise.

    Attributes:
        row: The position of the row in the sample.
        api: `REST` or `gRPC`.
        output: The output's name; empty where the whole answer is meant.
        got: What the server answered.
        expected: What the Evaluator saw.
    """

    row: int
    api: str
    output: str
    got: str
    expected: str

    def __str__(self) -> str:
        what = f"output {self.output}" if self.output else "the answer"
        return f"row {self.row} over {self.api}: {what} is {self.got}, expected {self.expected}"


def differences(row: int, api: str, got: Outputs, expected: Outputs, tolerance: Tolerance) -> Iterator[Difference]:
    """What differs between two answers to one row, an entry an output.

    Args:
        row: The position of the row in the sample.
        api: `REST` or `gRPC`.
        got: The served outputs by name.
        expected: The Evaluator's outputs by name; an empty name stands for the only output.
        tolerance: For floats; all else must be equal.
    """
    named = {next(iter(got)): expected[""]} if set(expected) == {""} and len(got) == 1 else expected
    if set(got) != set(named):
        yield Difference(row, api, "", f"outputs {', '.join(sorted(got))}", f"outputs {', '.join(sorted(named))}")
        return
    for name, wanted in named.items():
        given = got[name]
        if given.shape != wanted.shape:
            yield Difference(row, api, name, f"of shape {given.shape}", f"shape {wanted.shape}")
        elif not _equal(given, wanted, tolerance):
            yield Difference(row, api, name, _shown(given), _shown(wanted))


def _equal(given: Array, wanted: Array, tolerance: Tolerance) -> bool:
    if not np.issubdtype(wanted.dtype, np.inexact):
        return bool(np.array_equal(given, wanted))
    return bool(
        given.dtype.kind in "iuf"
        and np.allclose(given, wanted, rtol=tolerance.relative, atol=tolerance.absolute, equal_nan=True)
    )


def _shown(values: Array) -> str:
    flat = values.ravel().tolist()
    texts = [f"{value:.7g}" if isinstance(value, float) else str(value) for value in flat[:MOST_SHOWN]]
    more = f", … ({len(flat)} values)" if len(flat) > MOST_SHOWN else ""
    return f"[{', '.join(texts)}{more}]" if len(flat) != 1 else texts[0]
