"""Rows without label, numbers beyond float32, empty splits, and columns that a few cells make text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ingest_helpers import rejected_rows, rows

from components.example_gen import blocks, shards
from contracts.errors import DataError

Ingest = Callable[..., tuple[Any, Any]]
LARGEST = float(np.finfo(np.float32).max)


def notes(examples: Any) -> list[str]:
    """What ingest says about the data."""
    return list(json.loads(examples.get_string_custom_property("notes") or "[]"))


def test_rows_without_label_are_refused(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,kind\n1,a\n2,\n3,b\n4,NA\n")
    with pytest.raises(DataError) as caught:
        ingest("a.csv", labels=["kind"], na_values=["NA"])
    assert str(caught.value) == (
        f"2 rows of 4 have no label 'kind'; the first is {tmp_path}/a.csv, line 3.\n"
        "Give them one, or set data.on_missing_label: set_aside to go on without such rows and have them collected, "
        "or keep if features.py knows what to make of them."
    )


def test_rows_without_label_are_set_aside_and_counted(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('n,kind\n1,a\n\n"2\n",\n3,b\n')
    examples, rejected = ingest("a.csv", labels=["kind"], on_missing_label="set_aside")
    assert rows(examples) == [{"kind": [b"a"], "n": [1]}, {"kind": [b"b"], "n": [3]}]
    (entry,) = rejected_rows(rejected)
    assert (entry["line"], entry["column"], entry["reason"], entry["raw"]) == (4, "kind", "found no label", '"2\n",\n')
    assert notes(examples) == [f"label kind: 1 row without one set aside, first {tmp_path}/a.csv, line 4"]


def test_rows_without_label_are_kept(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,kind\n1,a\n2,\n")
    examples, rejected = ingest("a.csv", labels=["kind"], on_missing_label="keep")
    assert (len(rows(examples)), rejected.num_rows) == (2, 0)
    assert notes(examples) == [f"label kind: 1 row without one kept, first {tmp_path}/a.csv, line 3"]


def test_nan_and_empty_text_are_no_labels(ingest: Ingest, tmp_path: Path) -> None:
    table = {"x": pa.array([1.0, float("nan"), None, 2.0]), "t": ["a", "b", "c", ""]}
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    examples, rejected = ingest("a.parquet", labels=["x", "t"], on_missing_label="set_aside")
    assert rows(examples) == [{"t": [b"a"], "x": [1.0]}]
    found = [(entry["line"], entry["column"], entry["raw"]) for entry in rejected_rows(rejected)]
    assert found == [(2, "x", None), (3, "x", None), (4, "t", None)]


def test_a_label_that_is_no_column_is_left_to_the_features(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n\n1\n")
    assert rows(ingest("a.csv", labels=["big"])[0]) == [{"n": [1]}]


def write_overflow(path: Path) -> None:
    if path.suffix == ".csv":
        path.write_text("f,k\n1.5,1\n1e39,2\n-1e400,3\n-inf,4\n")
    elif path.suffix == ".jsonl":
        path.write_text('{"f": 1.5, "k": 1}\n{"f": 1e39, "k": 2}\n{"f": -1e400, "k": 3}\n{"f": -Infinity, "k": 4}\n')
    else:
        pq.write_table(pa.table({"f": [1.5, 1e39, -1e300, float("-inf")], "k": [1, 2, 3, 4]}), path)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_numbers_that_do_not_fit(ingest: Ingest, tmp_path: Path, name: str) -> None:
    write_overflow(tmp_path / name)
    with pytest.raises(DataError, match=r"column 'f': 2 rows have numbers that do not fit into a float of 32 bits"):
        ingest(name)
    infinity = float("inf")
    for what, expected in (
        ("keep", [1.5, infinity, -infinity, -infinity]),
        ("clip", [1.5, LARGEST, -LARGEST, -infinity]),
        ("set_aside", [1.5, -infinity]),
    ):
        examples, rejected = ingest(name, on_overflow=what)
        in_order = sorted(rows(examples), key=lambda row: row["k"])
        assert [row["f"][0] for row in in_order] == expected
        assert rejected.num_rows == 4 - len(expected)
        assert "numbers beyond 32 bits in 2 rows, first 1e+39" in notes(examples)[0].replace("1e39", "1e+39")


def test_the_message_names_the_first_row(ingest: Ingest, tmp_path: Path) -> None:
    write_overflow(tmp_path / "a.csv")
    with pytest.raises(DataError) as caught:
        ingest("a.csv")
    assert f"the first is 1e39 in {tmp_path}/a.csv, line 3.\n" in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "split 'eval' has no rows, expected some in every split; there are 1 in 'train'; data.splits is "),
        ({"split_by": "who"}, "data.split_by is 'who'.\nRows with the same value stay together: choose a column"),
    ],
)
def test_an_empty_split_is_refused(ingest: Ingest, tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    (tmp_path / "a.csv").write_text("who,n\n" + "p,1\n" * (5 if settings else 1))
    with pytest.raises(DataError) as caught:
        ingest("a.csv", splits={"train": 1000, "eval": 1}, **settings)
    assert message in str(caught.value)


def test_a_column_that_is_text_for_a_few_cells_is_named(ingest: Ingest, tmp_path: Path) -> None:
    body = "".join(f"{i},{i}.5,x{i},{i % 3}\n" for i in range(100)) + "NA,?,y,1\n7,NA,z,1\n,null,w,2\n"
    (tmp_path / "a.csv").write_text("mass,width,name,k\n" + body)
    examples, _ = ingest("a.csv")
    assert notes(examples) == [
        "column mass: 101 numbers, 1 'NA': read as text. If these stand for missing values, set data.na_values: "
        "['NA']; else declare it in data.columns.",
        "column width: 100 numbers, 1 '?', 1 'NA', 1 'null': read as text. If these stand for missing values, set "
        "data.na_values: ['?', 'NA', 'null']; else declare it in data.columns.",
    ]
    assert notes(ingest("a.csv", na_values=["NA", "?", "null"])[0]) == []
    assert notes(ingest("a.csv", columns={"mass": "text", "width": "text"})[0]) == []


def test_many_shards_give_one_verdict(ingest: Ingest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((blocks, "SHARD_BYTES"), (blocks, "BLOCK_BYTES"), (shards, "SHARD_BYTES")):
        monkeypatch.setattr(module, name, 1_000)
    lines = ["1,NA,a\n" if i % 100 == 50 else f"{i},{i},{'' if i in (123, 456) else 'b'}\n" for i in range(600)]
    (tmp_path / "a.csv").write_text("n,mass,kind\n" + "".join(lines))
    with pytest.raises(DataError, match=r"2 rows of 600 have no label 'kind'; the first is .*a.csv, line 125\."):
        ingest("a.csv", labels=["kind"])
    examples, rejected = ingest("a.csv", labels=["kind"], on_missing_label="set_aside")
    assert (examples.get_int_custom_property("num_rows"), rejected.num_rows) == (598, 2)
    assert notes(examples) == [
        f"label kind: 2 rows without one set aside, first {tmp_path}/a.csv, line 125",
        "column mass: 594 numbers, 6 'NA': read as text. If these stand for missing values, set data.na_values: "
        "['NA']; else declare it in data.columns.",
    ]


def test_leading_zeros_that_are_lost_are_named(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("zip,n\n90210,0\n02134,10\n00501,0\n")
    examples, _ = ingest("a.csv")
    assert sorted(row["zip"] for row in rows(examples)) == [[501], [2134], [90210]]
    assert notes(examples) == [
        f"column zip: leading zeros are lost, as of '02134' in {tmp_path}/a.csv, line 3. Where they matter, set "
        "data.columns: {zip: text}."
    ]
    kept, _ = ingest("a.csv", columns={"zip": "text"})
    assert sorted(row["zip"] for row in rows(kept)) == [[b"00501"], [b"02134"], [b"90210"]]
    assert notes(kept) == []


def test_infinite_numbers_are_named_for_the_gate(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("f\n1.5\ninf\n-inf\n")
    examples, _ = ingest("a.csv")
    assert notes(examples) == [f"column f: infinite numbers in 2 rows, first inf in {tmp_path}/a.csv, line 3"]
    assert json.loads(examples.get_string_custom_property("infinite")) == {"f": 2}
