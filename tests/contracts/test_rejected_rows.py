"""Rejected rows are read back as they were written, byte for byte."""

import json
from pathlib import Path

import pytest

from contracts.rejected_rows import RejectedRow, read_rejected_rows, rejected_rows_file


@pytest.mark.parametrize("raw", [b"1,2", b"1,\xff", None])
def test_a_row_is_read_as_it_was_written(tmp_path: Path, raw: bytes | None) -> None:
    row = RejectedRow("a.csv", 3, "fare", "no number", raw)
    (tmp_path / rejected_rows_file(0, 2)).write_text(row.to_json() + "\n")
    assert list(read_rejected_rows(tmp_path)) == [row]


def test_the_line_is_what_earlier_versions_wrote() -> None:
    row = RejectedRow("a.csv", 3, None, "too few columns", b"1,\xff")
    entry = {"file": "a.csv", "line": 3, "column": None, "reason": "too few columns", "raw": "1,\udcff"}
    assert row.to_json() == json.dumps(entry)
    assert rejected_rows_file(1, 12) == "rejected-00001-of-00012.jsonl"
