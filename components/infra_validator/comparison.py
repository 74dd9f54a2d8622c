"""How far answers are from the expected ones, and which feature makes them differ."""

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
"""The least tolerance for a model's predictions, by Keras's dtype policy.

The same kernels compute all answers, but in batches of different sizes and in graphs that are optimized separately, so
that sums are added up in a different order.
"""


@dataclass(frozen=True)
class Allowed:
    """The tolerances.

    Attributes:
        features: For transformed features; the transform computes in float32 whatever the model does.
        predictions: For the server's predictions.
        tflite: For the TF Lite model's predictions.
    """

    features: Tolerance
    predictions: Tolerance
    tflite: Tolerance

    @classmethod
    def by(cls, settings: InfraValidatorSettings, precision: str) -> Allowed:
        """The tolerances that follow from the settings and the model's precision."""
        features, tflite = settings.max_difference, settings.max_tflite_difference
        least = TOLERANCES[precision]
        predictions = Tolerance(max(least.relative, features), max(least.absolute, features))
        return cls(Tolerance(features, features), predictions, Tolerance(tflite, tflite))


def excesses(got: Arrays, expected: Arrays, tolerance: Tolerance) -> dict[str, Array]:
    """Each row's difference as a multiple of the tolerance, float64 [rows] by output; above 1 is too far.

    Values that are not floats must be equal, or else they are off by infinity. They may differ in rows whose float
    outputs differ within the tolerance: of two nearly equal scores, either may give the predicted class.

    Args:
        got: The answers, [rows, ...] by name.
        expected: What they are compared with, under the same names.
        tolerance: For floats.
    """
    ratios = {name: _excess(got[name], values, tolerance) for name, values in expected.items()}
    floats = [name for name, values in expected.items() if values.dtype.kind == "f"]
    if floats:
        moved = np.max([ratios[name] for name in floats], axis=0)
        excused = (moved > 0) & (moved <= 1)
        for name in ratios.keys() - floats:
            ratios[name] = np.where(excused, 0.0, ratios[name])
    return ratios


def _excess(got: Array, expected: Array, tolerance: Tolerance) -> Array:
    rows = len(expected)
    if got.shape != expected.shape:
        return np.full(rows, np.inf)
    if expected.dtype.kind != "f" or got.dtype.kind not in "iuf":
        return np.where((got != expected).reshape(rows, -1).any(axis=1), np.inf, 0.0)
    difference = distances(got, expected)
    allowed = tolerance.absolute + tolerance.relative * np.abs(expected.astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(difference == 0, 0.0, difference / allowed)
    # Where infinity is expected, nothing else will do.
    ratios = np.where(np.isnan(ratios), np.inf, ratios)
    return np.asarray(ratios.reshape(rows, -1).max(axis=1, initial=0.0))


def distances(got: Array, expected: Array) -> Array:
    """The absolute differences of numbers; 0 for equal infinities and for two NaNs, infinity for other such pairs."""
    got_float, expected_float = got.astype(np.float64), expected.astype(np.float64)
    equal = (got_float == expected_float) | (np.isnan(got_float) & np.isnan(expected_float))
    with np.errstate(invalid="ignore"):
        difference = np.where(equal, 0.0, np.abs(got_float - expected_float))
    return np.asarray(np.where(np.isnan(difference), np.inf, difference))


def shown(values: Array) -> str:
    """The values of one row as text for a message."""
    flat = values.ravel().tolist()
    texts = [f"{value:.7g}" if isinstance(value, float) else str(value) for value in flat[:MOST_SHOWN]]
    more = f", … ({len(flat)} values)" if len(flat) > MOST_SHOWN else ""
    return f"[{', '.join(texts)}{more}]" if len(flat) != 1 else texts[0]


Row = Mapping[str, Any]


def culprit(bad: Row, good: Row, disagreement: Callable[[Sequence[Row]], Array]) -> str | None:
    """The feature that makes two answers to a row differ; None if replacing no single value brings them closer.

    Args:
        bad: A row for which the answers differ, by feature.
        good: A row for which they agree.
        disagreement: Gives the distance between the two answers to each row, float64 [rows].
    """
    names = [name for name in {**bad, **good} if not np.array_equal(bad.get(name, ()), good.get(name, ()))]
    disagreements = disagreement([bad, *(_exchanged(bad, good, name) for name in names)])
    best = int(np.argmin(disagreements))
    return names[best - 1] if best else None


def _exchanged(bad: Row, good: Row, name: str) -> Row:
    exchanged = {key: value for key, value in bad.items() if key != name}
    return {**exchanged, name: good[name]} if name in good else exchanged
