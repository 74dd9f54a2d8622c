"""Which models were compared on the same rows before, as each run of the Evaluator records it for later ones.

A `ModelBlessing` holds a look in its custom properties. The Evaluator receives all looks when it starts to run, rather
than as an input or a setting, because another model's look must not make it run again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from components.evaluation.predictions import PredictionsTable

EARLIER_LOOKS = "earlier_looks"
"""The execution property with earlier looks, as text, for the Evaluator."""

ROWS_PROPERTY, NOT_WORSE_PROPERTY = "evaluated_rows", "shown_not_worse"
MODEL_PROPERTY, BASELINE_PROPERTY = "current_model_id", "baseline_model_id"
"""TFX's names."""


@dataclass(frozen=True)
class Look:
    """A comparison of two models on the rows of an evaluation split.

    Attributes:
        rows: The digest of the rows, see `rows_digest`.
        model: The candidate's id in the metadata store.
        baseline: The baseline's id.
        not_worse: Whether the candidate was shown to lose no more than allowed.
    """

    rows: str
    model: int
    baseline: int
    not_worse: bool


def rows_digest(table: PredictionsTable) -> str:
    """A digest that is the same for all evaluations of the same rows, regardless of how and in what order they came."""
    digests = np.sort(table.digests).astype("<u8").tobytes()
    return hashlib.sha256(f"{table.rows} ".encode() + digests).hexdigest()


def looks_to_text(blessings: Iterable[Any]) -> str:
    """The looks in ML Metadata's `ModelBlessing` artifacts, oldest first; those without a baseline hold none."""
    looks = []
    for blessing in sorted(blessings, key=lambda artifact: artifact.id):
        properties = blessing.custom_properties
        rows, baseline = properties[ROWS_PROPERTY].string_value, properties[BASELINE_PROPERTY].int_value
        if rows and baseline:
            model, not_worse = properties[MODEL_PROPERTY].int_value, bool(properties[NOT_WORSE_PROPERTY].int_value)
            looks.append(asdict(Look(rows, model, baseline, not_worse)))
    return json.dumps(looks)


def earlier_looks(text: str, rows: str, model: int, baseline: int) -> list[bool]:
    """For each earlier look at the same rows, in order, whether its model was shown to be not worse.

    The same model compared with the same baseline is one look, however often it is evaluated.

    Args:
        text: The result of `looks_to_text`.
        rows: The digest of the rows.
        model: The candidate's id.
        baseline: The baseline's id.
    """
    earlier: dict[tuple[int, int], bool] = {}
    for look in (Look(**fields) for fields in json.loads(text)):
        if look.rows == rows and (look.model, look.baseline) == (model, baseline):
            break
        if look.rows == rows:
            earlier.setdefault((look.model, look.baseline), look.not_worse)
    return list(earlier.values())
