"""The messages for wrong data and settings, and where malformed rows go."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ingest_helpers import rows
from pydantic import ValidationError

from components.example_gen.settings import DataSettings
from contracts.errors import BadRowError, DataError

Ingest = Callable[..., tuple[Any, Any]]

BAD_ROWS = [
    (b"1,2\n3\n", 3, "b", "found 1 cell, expected 2 as in the header", b"3\n"),
    (b"1,2\n3,4,5\n", 3, None, "found 3 cells, expected 2 as in the header", b"3,4,5\n"),
    (b"1,2\n3,\xff\n", 3, "b", "found the byte 0xff, expected UTF-8 or what data.encoding names", b"3,\xff\n"),
    (b'1,2\n"3,4\n', 3, "a", "found a quote that never closes, expected its partner", b'"3,4\n'),
    (b'1,"x\ny"\n3\n', 4, "b", "found 1 cell, expected 2 as in the header", b"3\n"),
    (
        b"1,2\n3,\0\n",
        3,
        "b",
        "found a row that is not CSV (line contains NUL), expected cells divided by ','",
        b"3,\0\n",
    ),
]


@pytest.mark.parametrize(("body", "line", "column", "reason", "raw"), BAD_ROWS)
def test_a_malformed_csv_row(
    ingest: Ingest, tmp_path: Path, body: bytes, line: int, column: str | None, reason: str, raw: bytes
) -> None:
    file = tmp_path / "data.csv"
    file.write_bytes(b"a,b\n" + body)
    with pytest.raises(BadRowError) as caught:
        ingest("data.csv")
    where = f"{file}, line {line}" + (f", column {column!r}" if column else "")
    fix = "Mend the row, or set `data.on_bad_row: set_aside` to go on without such rows and have them collected."
    assert str(caught.value) == f"{where}: {reason}\n{fix}"

    examples, rejected = ingest("data.csv", on_bad_row="set_aside")
    (entry,) = [json.loads(line) for path in Path(rejected.uri).iterdir() for line in path.read_text().splitlines()]
    assert entry.pop("raw").encode("utf-8", "surrogateescape") == raw
    assert entry == {"file": str(file), "line": line, "column": column, "reason": reason}
    assert (rejected.num_rows, len(rows(examples))) == (1, 1)


def test_a_stray_quote_costs_its_own_row_only(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text('size,n\n"5 pipe,1\n' + "".join(f"x,{i}\n" for i in range(100)))
    examples, rejected = ingest("data.csv", on_bad_row="set_aside")
    assert (rejected.num_rows, examples.get_int_custom_property("num_rows")) == (1, 100)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[1]", "found a list, expected one JSON object a line"),
        ("{", "found no JSON (Expecting property name enclosed in double quotes: line 1 column 2 (char 1))"),
        ('{"a": [{"b": 1}]}', ", column 'a': found an object inside, expected numbers and text, or a list of them"),
    ],
)
def test_a_malformed_json_line(ingest: Ingest, tmp_path: Path, line: str, reason: str) -> None:
    (tmp_path / "data.jsonl").write_text(f'{{"a": 1}}\n{line}\n{{"a": 2}}\n')
    with pytest.raises(BadRowError) as caught:
        ingest("data.jsonl")
    assert "data.jsonl, line 2" in str(caught.value)
    assert reason in str(caught.value)
    examples, rejected = ingest("data.jsonl", on_bad_row="set_aside")
    assert (rejected.num_rows, rows(examples)) == (1, [{"a": [1]}, {"a": [2]}])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "data.csv is empty, expected a header and rows."),
        ("a,b\n", "data.csv has a header and no rows, expected at least one row."),
        ("a,b,a\n1,2,3\n", "data.csv: the header names 'a' more than once."),
    ],
)
def test_a_file_without_good_columns(ingest: Ingest, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "data.csv").write_text(text)
    with pytest.raises(DataError) as caught:
        ingest("data.csv")
    assert message in str(caught.value)


def test_differing_headers(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b\n1,2\n")
    (tmp_path / "2.csv").write_text("a,c\n1,2\n")
    with pytest.raises(DataError) as caught:
        ingest("*.csv")
    assert f"{tmp_path}/2.csv has a different header from {tmp_path}/1.csv: it lacks 'b' and adds 'c'." in str(
        caught.value
    )


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("x", "data.split_by is 'x', expected one of the columns a, b, c."),
        ("b", "data.split_by is 'b', a column of floats, expected integers or text."),
        ("c", "data.split_by is 'c', a column of no values, expected integers or text."),
    ],
)
def test_split_by_a_column_that_cannot_be_hashed(ingest: Ingest, tmp_path: Path, column: str, message: str) -> None:
    (tmp_path / "data.csv").write_text("a,b,c\n1,2.5,\n")
    with pytest.raises(DataError) as caught:
        ingest("data.csv", split_by=column)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"path": " "}, "received an empty path, expected a file, a folder or a glob"),
        ({"path": "{SPAM}.csv"}, "received {SPAM} in '{SPAM}.csv', expected {SPAN}, {SPAN:04} or {YYYY}{MM}{DD}"),
        ({"path": "{YYYY}.csv"}, "expected {SPAN} once, or each of {YYYY}, {MM}, {DD} once"),
        ({"path": "x", "splits": {}}, "received no splits, expected at least one, such as {train: 2, eval: 1}"),
        ({"path": "x", "splits": {"a": 0}}, "received 0 hash buckets for split 'a', expected 1 or more"),
        ({"path": "x", "splits": {"a/b": 1}}, "received the split name 'a/b', expected letters, digits, `_` and `-`"),
        ({"path": "x", "delimiter": "::"}, "received '::', expected one ASCII character"),
        ({"path": "x", "encoding": "utf-9"}, "received 'utf-9', expected one of Python's encodings, such as utf-8"),
        ({"path": "x", "encoding": "base64"}, "received 'base64', which encodes no text"),
        ({"path": "x", "header": "no"}, "received 'no', expected true, false or a list of column names"),
        ({"path": "x", "header": ["a", "a"]}, "received 'a' more than once"),
        ({"path": "x", "columns": {"a": "number"}}, "Input should be 'int', 'float', 'text', 'bool', 'date', 'time'"),
        ({"path": "x", "columns": {"a": "int %d"}}, "received the format '%d' for int, expected one such as"),
        ({"path": "x", "na_values": [None]}, "received None, expected text or numbers"),
        ({"path": "x", "thousands": "."}, "received '.' as thousands and as decimal, expected two characters"),
        ({"path": "x", "pth": "y"}, "Extra inputs are not permitted"),
    ],
)
def test_settings_say_what_they_expect(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        DataSettings(**settings)
    assert message in str(caught.value)
