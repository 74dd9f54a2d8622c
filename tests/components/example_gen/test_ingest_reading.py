"""The settings that say how data are read, applied alike to every format."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ingest_helpers import rejected_rows, rows

from contracts.errors import BadRowError, DataError

Ingest = Callable[..., tuple[Any, Any]]

PLANTS = [("1", "Ä"), ("2", "ß"), ("", "é")]
AS_ROWS = [{"n": [1], "t": ["Ä".encode()]}, {"n": [2], "t": ["ß".encode()]}, {"n": [], "t": ["é".encode()]}]


@pytest.mark.parametrize(
    ("name", "delimiter", "encoding", "settings"),
    [
        ("a.csv", ";", "utf-8", {"delimiter": ";"}),
        ("a.tsv", "\t", "utf-8", {}),
        ("a.tsv.gz", "\t", "utf-8", {}),
        ("a.csv", "\t", "utf-8", {"delimiter": "\\t"}),
        ("a.csv", "\t", "utf-8", {"delimiter": "tab"}),
        ("a.csv", ",", "latin-1", {"encoding": "latin-1"}),
        ("a.csv", ",", "cp1252", {"encoding": "cp1252"}),
        ("a.csv", ",", "utf-16", {}),
        ("a.csv.gz", ",", "utf-16", {}),
        ("a.csv", ",", "utf-16-le", {"encoding": "utf-16-le"}),
        ("a.csv", ",", "utf-8-sig", {}),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_delimiters_encodings_and_line_ends(
    ingest: Ingest, tmp_path: Path, name: str, delimiter: str, encoding: str, settings: Any, newline: str
) -> None:
    text = newline.join(delimiter.join(row) for row in [("n", "t"), *PLANTS])
    data = text.encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert rows(ingest(name, **settings)[0]) == sorted(AS_ROWS, key=repr)


@pytest.mark.parametrize(
    ("header", "names"), [(False, ["column_1", "column_2"]), (["n", "t"], ["n", "t"])], ids=["numbered", "named"]
)
def test_a_file_without_a_header(ingest: Ingest, tmp_path: Path, header: Any, names: list[str]) -> None:
    (tmp_path / "a.csv").write_text("\ufeff1,x\n2,y\n")
    expected = [{names[0]: [1], names[1]: [b"x"]}, {names[0]: [2], names[1]: [b"y"]}]
    assert rows(ingest("a.csv", header=header)[0]) == expected


def test_blank_lines_before_the_header(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\n\r\nn,t\n1,x\n2\n", newline="")
    with pytest.raises(BadRowError, match=r"a.csv, line 5, column 't': found 1 cell, expected 2 as in the header"):
        ingest("a.csv")
    assert rows(ingest("a.csv", on_bad_row="set_aside")[0]) == [{"n": [1], "t": [b"x"]}]


def test_a_quote_inside_an_unquoted_cell_is_a_character(
    ingest: Ingest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f'{i},5" pipe\n{i},"a ""b""\nc"\n{i},x"y"z\n' for i in range(40)]
    (tmp_path / "a.csv").write_text("n,t\n" + "".join(lines))
    expected = [[b'5" pipe'], [b'a "b"\nc'], [b'x"y"z']]
    assert sorted(row["t"] for row in rows(ingest("a.csv")[0])) == sorted(expected * 40)
    # Blocks and shards must still end where records end.
    from components.example_gen import blocks, shards

    for module, name in ((blocks, "SHARD_BYTES"), (blocks, "BLOCK_BYTES"), (shards, "SHARD_BYTES")):
        monkeypatch.setattr(module, name, 200)
    assert sorted(row["t"] for row in rows(ingest("a.csv")[0])) == sorted(expected * 40)


TYPES = {
    "zip": "text",
    "price": "float",
    "born": "date %d.%m.%Y",
    "seen": "datetime",
    "at": {"type": "time", "format": "%H:%M"},
    "ok": "bool",
    "k": "int",
}
CELLS = [
    {
        "zip": "02134",
        "price": "1.234,5",
        "born": "29.02.2024",
        "seen": "2024-02-29T12:30:15.9+02:00",
        "at": "12:30",
        "ok": "yes",
        "k": "3,0",
    },
    {"zip": "NA", "price": "?", "born": "NA", "seen": "1970-01-02", "at": "NA", "ok": "FALSE", "k": "NA"},
]
TYPED = [
    {
        "at": [45000],
        "born": [1709164800],
        "k": [3],
        "ok": [1],
        "price": [1234.5],
        "seen": [1709202615],
        "zip": [b"02134"],
    },
    {"at": [], "born": [], "k": [], "ok": [0], "price": [], "seen": [86400], "zip": []},
]


def write(path: Path, table: list[dict[str, Any]]) -> Path:
    """Writes a table of cells in the format of the path's suffix."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(table), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table))
    elif path.suffix == ".py":
        path.write_text(f"def rows():\n    yield from {table!r}\n")
    elif path.suffix == ".csv":
        cells = [list(table[0]), *([row[name] for name in table[0]] for row in table)]
        path.write_text("".join(";".join("" if c is None else str(c) for c in row) + "\n" for row in cells))
    else:
        import tensorflow as tf

        with tf.io.TFRecordWriter(str(path)) as writer:
            for row in table:
                writer.write(tf.train.Example(features=tf.train.Features(feature=_features(row))).SerializeToString())
    return path


def _features(row: dict[str, Any]) -> dict[str, Any]:
    import tensorflow as tf

    def feature(cell: Any) -> Any:
        if isinstance(cell, str):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=[cell.encode()]))
        if isinstance(cell, int):
            return tf.train.Feature(int64_list=tf.train.Int64List(value=[cell]))
        return tf.train.Feature(float_list=tf.train.FloatList(value=[cell]))

    return {name: feature(cell) for name, cell in row.items() if cell is not None}


FORMATS = ["csv", "jsonl", "parquet", "py", "tfrecord"]


@pytest.mark.parametrize("suffix", FORMATS)
def test_declared_types_and_missing_values(ingest: Ingest, tmp_path: Path, suffix: str) -> None:
    write(tmp_path / f"a.{suffix}", CELLS)
    settings = {"columns": TYPES, "na_values": ["NA", "?"], "thousands": ".", "decimal": ",", "delimiter": ";"}
    assert rows(ingest(f"a.{suffix}", **settings)[0]) == TYPED


@pytest.mark.parametrize("suffix", FORMATS)
def test_numbers_that_stand_for_missing_values(ingest: Ingest, tmp_path: Path, suffix: str) -> None:
    write(tmp_path / f"a.{suffix}", [{"n": -999, "m": 1}, {"n": 5, "m": -999}])
    read = rows(ingest(f"a.{suffix}", na_values=[-999], delimiter=";")[0])
    assert read == [{"m": [1], "n": []}, {"m": [], "n": [5]}]


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(
    ("type_", "cell", "reason"),
    [
        ("float", "abc", "found 'abc', expected a number as in data.columns"),
        ("int", "3.5", "found '3.5', expected an integer of 64 bits as in data.columns"),
        ("bool", "maybe", "found 'maybe', expected true or false as in data.columns"),
        ("date", "2024-02-30", "found '2024-02-30', expected a date such as 2024-02-29 as in data.columns"),
        (
            "date %d.%m.%Y",
            "30.2.2024",
            "found '30.2.2024', expected a date such as 2024-02-29 written as %d.%m.%Y as in data.columns",
        ),
    ],
)
def test_a_value_that_is_not_of_its_columns_type(
    ingest: Ingest, tmp_path: Path, suffix: str, type_: str, cell: str, reason: str
) -> None:
    good = {"float": "1.5", "int": "7", "bool": "true", "date": "2024-02-29", "date %d.%m.%Y": "29.2.2024"}[type_]
    file = write(tmp_path / f"a.{suffix}", [{"a": good, "b": "x"}, {"a": cell, "b": "y"}])
    settings = {"columns": {"a": type_}, "delimiter": ";"}
    place = {"csv": "line 3", "jsonl": "line 2"}.get(suffix, "row 2")
    with pytest.raises(BadRowError) as caught:
        ingest(file.name, **settings)
    assert str(caught.value).startswith(f"{file}, {place}, column 'a': {reason}\n")
    examples, rejected = ingest(file.name, on_bad_row="set_aside", **settings)
    assert [row["b"] for row in rows(examples)] == [[b"x"]]
    (entry,) = rejected_rows(rejected)
    assert (entry["column"], entry["reason"]) == ("a", reason)


def test_numbers_with_marks_are_inferred(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('n;f;t\n1,234;"1,234.5";1,2\n12;-1,000,000.25;12\n')
    read = rows(ingest("a.csv", delimiter=";", thousands=",")[0])
    assert read == [{"f": [-1000000.25], "n": [12], "t": [b"12"]}, {"f": [1234.5], "n": [1234], "t": [b"1,2"]}]


def test_a_point_is_no_decimal_mark_where_that_is_a_comma(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("f;g\n1,5;1.500\n2;2,5\n")
    read = rows(ingest("a.csv", delimiter=";", decimal=",")[0])
    assert read == [{"f": [1.5], "g": [b"1.500"]}, {"f": [2.0], "g": [b"2,5"]}]


def test_a_declared_column_that_the_data_lack(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("mass\n1\n")
    with pytest.raises(DataError, match=r"gives the type of 'mas', which the data do not have. Did you mean mass\?"):
        ingest("a.csv", columns={"mas": "float"})


def test_lines_of_text(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one, two\r\n\nthree\n")
    assert rows(ingest("a.txt", format="text")[0]) == [{"text": [b"one, two"]}, {"text": [b"three"]}]
