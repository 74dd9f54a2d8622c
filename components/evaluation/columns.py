"""A feature's values in the rows of a batch, as TFMA's extracts hold them, as codes of its different values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from components.evaluation.predictions import Array


@dataclass(frozen=True)
class Column:
    """A feature's values in the rows of a batch.

    Attributes:
        rows: The row of each value, ascending, int64 [values].
        codes: Positions in `values`, int64 [values].
        values: The different ones: numbers or bytes.
    """

    rows: Array
    codes: Array
    values: list[Any]


def column(values: Any) -> Column:
    """A feature's values; a value that a row has several times counts once.

    Args:
        values: An array [rows, …], sparse values, or None for a feature that no row has.
    """
    if values is None:
        rows, flat = np.zeros(0, np.int64), np.zeros(0, np.int64)
    elif isinstance(values, np.ndarray):
        width = int(np.prod(values.shape[1:]))
        rows, flat = np.repeat(np.arange(len(values)), width), values.ravel()
    else:
        rows, flat = np.asarray(values.indices)[:, 0], np.asarray(values.values)
    encoded = pa.array(flat).dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    different = encoded.dictionary.tolist()
    if len(rows) and (np.diff(rows) <= 0).any():
        pairs = np.unique(rows * len(different) + codes)
        rows, codes = np.divmod(pairs, len(different))
    return Column(rows, codes, different)
