"""Rows of an evaluation, made up for tests."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from components.evaluation import recording
from components.evaluation.predictions import PredictionsTable
from components.evaluation.recording import Source


@dataclass(frozen=True)
class Scores:
    """Labels 0 and 1, the chance of 1 that a model gives, and that of a worse one, each [n]."""

    labels: Any
    scores: Any
    worse: Any


def scores_like_taxi(rows: int) -> Scores:
    """Two thirds of the rows are surely 0, as taxi trips paid in cash are; the others are hard to tell."""
    generator = np.random.default_rng(1)
    sure = generator.random(rows) < 0.65
    logits = np.where(sure, generator.normal(-7, 1, rows), generator.normal(0.5, 1.2, rows))
    labels = (generator.random(rows) < 1 / (1 + np.exp(-logits))).astype(np.int64)
    noisy = logits + generator.normal(0, 0.5, rows)
    return Scores(labels, *(np.float32(1 / (1 + np.exp(-which))) for which in (logits, noisy)))


def batch(
    labels: Any, outputs: Any, features: Mapping[str, Any] | None = None, rows: Sequence[bytes] | None = None
) -> dict[str, Any]:
    """TFMA's extracts of a batch with the rows' digests; without `rows` these are numbered."""
    count = len(labels["candidate"] if isinstance(labels, dict) else labels)
    serialized = rows or [f"row {number}".encode() for number in range(count)]
    return recording.with_digests(
        {
            "input": np.array(serialized, object),
            "labels": labels,
            "predictions": outputs,
            "features": dict(features or {}),
        }
    )


def kept_of(
    labels: Any,
    outputs: Any,
    baseline: Any = None,
    features: Mapping[str, Any] | None = None,
    rows: Sequence[bytes] | None = None,
    weights: Any = None,
) -> PredictionsTable:
    """What is kept of one batch with these labels and predictions."""
    names = tuple(sorted(features or {}))
    labels, outputs = np.asarray(labels), np.asarray(outputs, np.float32)
    weight = None
    if weights is not None:
        features, weight = {**(features or {}), "weight": np.asarray(weights)[:, None]}, "weight"
    if baseline is None:
        return recording.read_batch(batch(labels, outputs, features, rows), Source(None, None, "", names, weight))
    both = {"candidate": outputs, "baseline": np.asarray(baseline, np.float32)}
    of_both = {"candidate": labels, "baseline": labels}
    source = Source("candidate", "baseline", "", names, weight)
    return recording.read_batch(batch(of_both, both, features, rows), source)


def digest(row: bytes) -> int:
    """What rows are chosen by."""
    return int.from_bytes(hashlib.sha256(row).digest()[:8], "big")
