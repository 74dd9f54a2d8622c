"""The slices that the rows of a batch belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from components.engine import NotColumnar
from components.evaluation.columns import Column, column
from components.evaluation.predictions import Array

SliceKey: TypeAlias = tuple[tuple[str, Any], ...]
"""As TFMA has it: features, by name, each with a value; empty for all rows."""


@dataclass(frozen=True)
class Groups:
    """Which rows of a batch belong to which slice; a row belongs to several.

    Attributes:
        keys: The slices.
        rows: Positions of rows, int64 [memberships].
        slices: For each of these, a position in `keys`, int64 [memberships].
    """

    keys: list[SliceKey]
    rows: Array
    slices: Array


def group(features: Mapping[str, Any], specs: Sequence[Sequence[str]], rows: int) -> Groups:
    """Returns the slices of a batch, as `tfma.slicer.get_slices_for_features_dicts` does for one row.

    Args:
        features: Arrays [rows, …], or sparse values.
        specs: The features whose values, crossed, are slices; none for all rows.
        rows: How many there are.

    Raises:
        NotColumnar: A text is not UTF-8.
    """
    columns = {name: column(features.get(name)) for spec in specs for name in spec}
    parts = [_crossed([(name, columns[name]) for name in sorted(spec)], rows) for spec in specs]
    keys = [key for part in parts for key in part.keys]
    firsts = np.cumsum([0, *(len(part.keys) for part in parts)])
    slices = [part.slices + first for part, first in zip(parts, firsts, strict=False)]
    return Groups(keys, np.concatenate([part.rows for part in parts]), np.concatenate(slices))


def _crossed(columns: Sequence[tuple[str, Column]], rows: int) -> Groups:
    """One slice for each combination of values that a row has."""
    members, codes = np.arange(rows), np.zeros(rows, np.int64)
    keys: list[SliceKey] = [()]
    for name, values in columns:
        starts, ends = (np.searchsorted(values.rows, members, side) for side in ("left", "right"))
        counts = ends - starts
        places = np.repeat(starts - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        members, codes = np.repeat(members, counts), np.repeat(codes, counts)
        used, codes = np.unique(codes * len(values.values) + values.codes[places], return_inverse=True)
        pairs = [divmod(int(code), len(values.values)) for code in used]
        keys = [(*keys[before], (name, _as_key(values.values[value]))) for before, value in pairs]
    return Groups(keys, members, codes)


def _as_key(value: Any) -> Any:
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError as error:
        raise NotColumnar(f"{value!r}, by which a slice is formed, is not UTF-8") from error
