"""What all image formats give: an encoded image, its class and its name. Imports no Pillow: preflight comes by here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from components.example_gen.encoding import Column
from components.example_gen.kinds import Kind
from components.example_gen.sources import Batch, RejectedRow

BATCH_BYTES = 4 << 20
COLUMNS = {"image": Kind.BYTES, "label": Kind.INT, "class": Kind.BYTES, "name": Kind.BYTES}


@dataclass(frozen=True)
class ImageRow:
    """One image.

    Attributes:
        image: Encoded, as TensorFlow's `decode_image` reads it.
        label: The class id, from 0.
        name: Where it comes from; unique in the input.
    """

    image: bytes
    label: int
    name: str


def to_batches(rows: Iterable[ImageRow | RejectedRow], classes: Sequence[str]) -> Iterator[Batch]:
    """Yields rows in batches of about BATCH_BYTES.

    Args:
        rows: Good and bad ones.
        classes: The names of the classes, by class id.
    """
    good: list[ImageRow] = []
    rejected: list[RejectedRow] = []
    size = 0
    for row in rows:
        if isinstance(row, RejectedRow):
            rejected.append(row)
            continue
        good.append(row)
        size += len(row.image)
        if size >= BATCH_BYTES:
            yield _to_batch(good, rejected, classes)
            good, rejected, size = [], [], 0
    yield _to_batch(good, rejected, classes)


def _to_batch(rows: list[ImageRow], rejected: list[RejectedRow], classes: Sequence[str]) -> Batch:
    values = {
        "image": pa.array([row.image for row in rows], pa.binary()),
        "label": pa.array([row.label for row in rows], pa.int64()),
        # Names of files are bytes to the system; those that are no UTF-8 must come through as they are.
        "class": pa.array([os.fsencode(classes[row.label]) for row in rows], pa.binary()),
        "name": pa.array([os.fsencode(row.name) for row in rows], pa.binary()),
    }
    offsets = np.arange(len(rows) + 1, dtype=np.int64)
    return Batch([Column(name, kind, values[name], offsets) for name, kind in COLUMNS.items()], len(rows), rejected)
