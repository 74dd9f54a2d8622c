"""How far answers are from what was seen, where most, and which feature makes it so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from components.infra_validator.sample import Array, Arrays
from components.infra_validator.settings import InfraValidatorSettings
from contracts.model_reports import Tolerance

MOST_SHOWN = 6

TOLERANCES = {
    "float32": Tolerance(0.0, 0.0),
    # A sum on the other side of a rounding border changes by 2^-10 or 2^-7 of its value, in each layer.
    "mixed_float16": Tolerance(1e-2, 2e-3),
    "mixed_bfloat16": Tolerance(5e-2, 1e-2),
}
"""What a model's predictions may be off by at least, by Keras's dtype policy.

The same kernels compute all answers, but in batches of other sizes and in graphs that were optimized for themselves:
sums are added up in another order.
"""


@dataclass(frozen=True)
class Allowed:
    """What may be off by how much.

    Attributes:
        features: Transformed features; the transform computes in float32 whatever the model does.
        predictions: The server's.
        tflite: The TF Lite model's.
    """

    features: Tolerance
    predictions: Tolerance
    tflite: Tolerance

    @classmethod
    def by(cls, settings: InfraValidatorSettings, precision: str) -> Allowed:
        """What the settings and the model's precision say."""
        features, tflite = settings.max_difference, settings.max_tflite_difference
        least = TOLERANCES[precision]
        predictions = Tolerance(max(least.relative, features), max(least.absolute, features))
        return cls(Tolerance(features, features), predictions, Tolerance(tflite, tflite))


def excesses(got: Arrays, wanted: Arrays, tolerance: Tolerance) -> dict[str, Array]:
    """By output, how many times of what is allowed each row is off, float64 [rows]: above 1 is too far.

    What is no float has to be equal: else it is off by infinity. Beside floats it may be another in rows in which these
    are others, too, within what is allowed: the class with the highest of two scores that are nearly the same.

    Args:
        got: The answers, [rows, ...] by name.
        wanted: What they are held to; of the same names.
        tolerance: For floats.
    """
    found = {name: _excess(got[name], values, tolerance) for name, values in wanted.items()}
    floats = [name for name, values in wanted.items() if values.dtype.kind == "f"]
    if floats:
        moved = np.max([found[name] for name in floats], axis=0)
        excused = (moved > 0) & (moved <= 1)
        for name in found.keys() - floats:
            found[name] = np.where(excused, 0.0, found[name])
    return found


def _excess(got: Array, wanted: Array, tolerance: Tolerance) -> Array:
    rows = len(wanted)
    if got.shape != wanted.shape:
        return np.full(rows, np.inf)
    if wanted.dtype.kind != "f" or got.dtype.kind not in "iuf":
        return np.where((got != wanted).reshape(rows, -1).any(axis=1), np.inf, 0.0)
    off = distances(got, wanted)
    allowed = tolerance.absolute + tolerance.relative * np.abs(wanted.astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(off == 0, 0.0, off / allowed)
    # An infinity that is expected allows for nothing.
    ratios = np.where(np.isnan(ratios), np.inf, ratios)
    return np.asarray(ratios.reshape(rows, -1).max(axis=1, initial=0.0))


def distances(got: Array, wanted: Array) -> Array:
    """The absolute differences of numbers; 0 between equal infinities and between NaNs, else infinity with these."""
    one, other = got.astype(np.float64), wanted.astype(np.float64)
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(invalid="ignore"):
        off = np.where(same, 0.0, np.abs(one - other))
    return np.asarray(np.where(np.isnan(off), np.inf, off))


def shown(values: Array) -> str:
    """The values of one row, as a sentence holds them."""
    flat = values.ravel().tolist()
    texts = [f"{value:.7g}" if isinstance(value, float) else str(value) for value in flat[:MOST_SHOWN]]
    more = f", … ({len(flat)} values)" if len(flat) > MOST_SHOWN else ""
    return f"[{', '.join(texts)}{more}]" if len(flat) != 1 else texts[0]


Row = Mapping[str, Any]


def culprit(bad: Row, good: Row, disagreement: Callable[[Sequence[Row]], Array]) -> str | None:
    """The value that makes two answers to a row differ; None if exchanging no value for another brings them closer.

    Args:
        bad: A row about which the answers differ, by feature.
        good: One about which they agree.
        disagreement: How far the answers to rows are apart, float64 [rows].
    """
    names = [name for name in {**bad, **good} if not np.array_equal(bad.get(name, ()), good.get(name, ()))]
    apart = disagreement([bad, *(_exchanged(bad, good, name) for name in names)])
    best = int(np.argmin(apart))
    return names[best - 1] if best else None


def _exchanged(bad: Row, good: Row, name: str) -> Row:
    others = {key: value for key, value in bad.items() if key != name}
    return {**others, name: good[name]} if name in good else others
