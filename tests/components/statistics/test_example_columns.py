"""Serialized tf.Examples as columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tiny_artifacts import serialized

from components.artifacts import split_files
from components.statistics import columns

ROWS = [
    {"fare": 0.5, "hour": 1, "company": "Blue", "tags": ["a", "b"], "empty": None},
    {"fare": None, "hour": None, "company": "", "tags": [], "empty": None},
    {"fare": [2.0, 3.5], "hour": 2**40, "company": [], "tags": "c", "empty": None},
]
KINDS = {"fare": "FLOAT", "hour": "INT", "company": "BYTES", "tags": "BYTES", "empty": "EMPTY"}


def test_known_kinds_give_the_same_columns() -> None:
    rows = np.array([serialized(row) for row in ROWS], object)
    known, found = columns.decode(rows, KINDS), columns.decode(rows)
    assert known.schema.equals(found.schema)
    assert known.equals(found)
    assert known.column("fare").to_pylist() == [[0.5], None, [2.0, 3.5]]


def test_the_kinds_are_those_that_example_gen_has_written(tmp_path: Path) -> None:
    assert columns.kinds_of(str(tmp_path)) is None
    (tmp_path / "columns.json").write_text(json.dumps(KINDS))
    assert columns.kinds_of(str(tmp_path)) == KINDS


@pytest.mark.parametrize(("row_bytes", "rows"), [(1, 100), (10, 100), (50, 20), (5000, 1), (0, 100)])
def test_a_batch_has_as_many_rows_as_fit(row_bytes: float, rows: int) -> None:
    assert columns.batch_rows(row_bytes, most_rows=100, most_bytes=1000) == rows


def lists(*values: list[int] | None) -> pa.Array:
    return pa.array(values, pa.large_list(pa.int64()))


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (lists([1], [], [2]), [[1], None, [2]]),
        (lists([], [], [2, 3]), [None, None, [2, 3]]),
        (lists([1], None, []), [[1], None, None]),
        (lists([1], [2]), [[1], [2]]),
        (lists([1], None, [2]), [[1], None, [2]]),
        (lists([], []), [None, None]),
        (lists([9], [1], [], [2], [8]).slice(1, 3), [[1], None, [2]]),
        (pa.nulls(2), [None, None]),
    ],
)
def test_lists_without_values_become_null(column: pa.Array, expected: list[list[int] | None]) -> None:
    batch = pa.RecordBatch.from_arrays([column], ["a"])
    assert columns.missing_as_null(batch).column(0).to_pylist() == expected


def test_a_batch_without_rows_stays_without_rows() -> None:
    batch = pa.RecordBatch.from_arrays([lists()], ["a"])
    assert columns.missing_as_null(batch).num_rows == 0


def test_the_files_of_a_split_are_sorted(examples: Callable[..., Any]) -> None:
    raw = examples(train=[{"a": 1}], eval=[{"a": 1}])
    folder = Path(raw.uri, "Split-train")
    for name in ("b.gz", "a.gz"):
        (folder / name).touch()
    assert [Path(path).name for path in split_files(raw, "train")] == [
        "a.gz",
        "b.gz",
        "data_tfrecord-00000-of-00001.gz",
    ]


def test_decoding_reads_all_files_in_order(examples: Callable[..., Any]) -> None:
    raw = examples(train=[{"a": 1}, {"a": None}], eval=[{"a": 3}])
    files = [*split_files(raw, "train"), *split_files(raw, "eval")]
    assert columns.decode_files(files).to_pydict() == {"a": [[1], None, [3]]}
