"""The rows that a model is most wrong about, with their features as JSON."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from tensorflow.core.example.example_pb2 import Example

from components.evaluation import losses
from components.evaluation.kept import Kept, Worst
from components.evaluation.measures import THRESHOLD
from components.evaluation.scored import Task

MAX_IMAGE_BYTES = 64_000
MAX_TEXT = 2_000
MAX_ENTRIES = 100
"""Of a feature; what is left out is counted."""

IMAGES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}
"""Kinds of image by how their bytes begin."""


def rows(kept: Kept, task: Task, classes: Sequence[str] | None) -> list[dict[str, Any]]:
    """The worst-scored rows, the worst first.

    Args:
        kept: The evaluation's rows.
        task: What they are from.
        classes: Names or ids of its classes.

    Returns:
        For each `loss` (cross-entropy, or the squared error of a number; None where the prediction is no number),
        `label` (a class's name or a number), `prediction` (a number, or one for each class), `predicted` (a class's
        name or None) and `features`: see `features`.
    """
    return [
        {
            "loss": _loss(row, task),
            "label": classes[int(row.label)] if classes else row.label,
            "prediction": _prediction(row),
            "predicted": _predicted(row, task, classes),
            "features": features(row.serialized),
        }
        for row in kept.worst
    ]


def features(serialized: bytes) -> dict[str, list[Any]]:
    """The values of a serialized tf.Example by feature.

    Numbers and text are as they are; a PNG or JPEG is `{"image": "data:…"}` if it is small, other bytes are
    `{"bytes": length}`; of a feature with very many values the first ones, and `{"more": count}`.
    """
    found = Example.FromString(serialized).features.feature
    return {name: _values(found[name]) for name in sorted(found)}


def _values(feature: Any) -> list[Any]:
    kind = feature.WhichOneof("kind")
    values = list(getattr(feature, kind).value) if kind else []
    shown = [_value(value) for value in values[:MAX_ENTRIES]]
    return [*shown, {"more": len(values) - MAX_ENTRIES}] if len(values) > MAX_ENTRIES else shown


def _value(value: Any) -> Any:
    if isinstance(value, float):
        # To as many digits as a 32-bit float has; JSON has no NaN.
        return float(f"{value:.7g}") if math.isfinite(value) else str(value)
    return _of_bytes(value) if isinstance(value, bytes) else value


def _of_bytes(value: bytes) -> Any:
    kind = next((kind for start, kind in IMAGES.items() if value.startswith(start)), None)
    if kind and len(value) < MAX_IMAGE_BYTES:
        return {"image": f"data:{kind};base64,{base64.b64encode(value).decode()}"}
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return {"bytes": len(value)}
    if kind or any(not (character.isprintable() or character.isspace()) for character in text):
        return {"bytes": len(value)}
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


def _loss(row: Worst, task: Task) -> float | None:
    label = np.array([row.label])
    if task == "binary":
        found = losses.binary_cross_entropy(label, row.prediction)[0]
    elif task == "multiclass":
        found = losses.multiclass_cross_entropy(label, row.prediction[None])[0]
    else:
        found = row.error**2
    return float(found) if math.isfinite(found) else None


def _prediction(row: Worst) -> Any:
    numbers = [float(f"{value:.6g}") if math.isfinite(value) else None for value in row.prediction.tolist()]
    return numbers[0] if len(numbers) == 1 else numbers


def _predicted(row: Worst, task: Task, classes: Sequence[str] | None) -> str | None:
    if classes is None or not np.isfinite(row.prediction).all():
        return None
    place = int(row.prediction[0] > THRESHOLD) if task == "binary" else int(row.prediction.argmax())
    return classes[place]
