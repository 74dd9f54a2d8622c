"""Which models were compared on the same rows before: what each Evaluator leaves for those that come after it.

A `ModelBlessing` holds a look in its custom properties. The Evaluator is handed all of them when it begins to work, and
not as an input or a setting: another model's look must not make it run again.
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
"""The execution property in which the Evaluator is handed earlier looks, as text."""

ROWS_PROPERTY, NOT_WORSE_PROPERTY = "evaluated_rows", "shown_not_worse"
MODEL_PROPERTY, BASELINE_PROPERTY = "current_model_id", "baseline_model_id"
"""TFX's names."""


@dataclass(frozen=True)
class Look:
    """A comparison of two models on the rows of an evaluation split.

    Attributes:
        rows: Which rows, see `rows_digest`.
        model: The candidate's id in the metadata store.
        baseline: The baseline's.
        not_worse: Whether the candidate was shown to lose no more than it may.
    """

    rows: str
    model: int
    baseline: int
    not_worse: bool


def rows_digest(table: PredictionsTable) -> str:
    """What evaluations of the same rows have in common, however these were ingested and in whatever order."""
    digests = np.sort(table.digests).astype("<u8").tobytes()
    return hashlib.sha256(f"{table.rows} ".encode() + digests).hexdigest()


def looks_to_text(blessings: Iterable[Any]) -> str:
    """The looks that ML Metadata's `ModelBlessing` artifacts hold, oldest first; those without a baseline hold none."""
    looks = []
    for blessing in sorted(blessings, key=lambda artifact: artifact.id):
        held = blessing.custom_properties
        rows, baseline = held[ROWS_PROPERTY].string_value, held[BASELINE_PROPERTY].int_value
        if rows and baseline:
            model, not_worse = held[MODEL_PROPERTY].int_value, bool(held[NOT_WORSE_PROPERTY].int_value)
            looks.append(asdict(Look(rows, model, baseline, not_worse)))
    return json.dumps(looks)


def earlier_looks(text: str, rows: str, model: int, baseline: int) -> list[bool]:
    """For each earlier look at some rows whether its model was shown to be not worse, in order.

    The same model against the same baseline is one look, however often it is evaluated.

    Args:
        text: What `looks_to_text` made.
        rows: Which rows.
        model: The candidate's id.
        baseline: The baseline's id.
    """
    earlier: dict[tuple[int, int], bool] = {}
    for look in (Look(**held) for held in json.loads(text)):
        if look.rows == rows and (look.model, look.baseline) == (model, baseline):
            break
        if look.rows == rows:
            earlier.setdefault((look.model, look.baseline), look.not_worse)
    return list(earlier.values())
