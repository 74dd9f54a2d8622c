"""Byte ranges, gzip, Parquet, JSON lines and Beam give the same rows, however these are stored and cut."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ingest_helpers import read_splits, rows

from components.example_gen import blocks, shards
from contracts.errors import BadRowError, DataError

Ingest = Callable[..., tuple[Any, Any]]
TEXT = "n,t\r\n" + "".join(f'{i},"line ""{i}""\n,of {i % 7}"\r\n' for i in range(500))


@pytest.fixture
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "SHARD_BYTES", 2_000)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 700)
    monkeypatch.setattr(shards, "SHARD_BYTES", 2_000)


def test_byte_ranges_through_beam_give_the_rows_of_one_range(
    ingest: Ingest, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    (tmp_path / "data.csv").write_text(TEXT, newline="")
    splits = {"train": 2, "eval": 1}
    one_shard, _ = ingest("data.csv", splits=splits)
    request.getfixturevalue("_small_shards")
    cut, _ = ingest("data.csv", splits=splits)
    assert read_splits(cut) == read_splits(one_shard)
    assert cut.get_int_custom_property("num_rows") == 500
    names = sorted(path.name for path in Path(cut.uri, "Split-train").iterdir())
    assert names == [f"data_tfrecord-{i:05d}-of-{len(names):05d}.gz" for i in range(len(names))]
    assert len(names) == 7
    assert sorted(path.name for path in Path(cut.uri).iterdir()) == ["Split-eval", "Split-train", "columns.json"]
    kinds = [json.loads(Path(examples.uri, "columns.json").read_text()) for examples in (cut, one_shard)]
    assert kinds == [{"n": "INT", "t": "BYTES"}] * 2


@pytest.mark.usefixtures("_small_shards")
def test_an_error_comes_through_beam_as_itself(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text(TEXT + "1,2,3\r\n", newline="")
    with pytest.raises(BadRowError, match=r"data.csv, line 1002: found 3 cells, expected 2 as in the header"):
        ingest("data.csv")


@pytest.mark.usefixtures("_small_shards")
@pytest.mark.parametrize("block_bytes", [1, 5, 17, 64, 1000])
def test_blocks_end_where_records_end(tmp_path: Path, block_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", block_bytes)
    file = tmp_path / "data.csv"
    file.write_text(TEXT, newline="")
    whole_file = blocks.Piece(str(file), 0, None, file.stat().st_size, 1)
    pieces = blocks.cut_file(whole_file, ",")
    blocks_read = [block for piece in pieces for block in blocks.read_blocks(piece, ",")]
    assert b"".join(block.data for block in blocks_read) == TEXT.encode()
    assert all(block.data.count(b'"') % 2 == 0 and block.data.endswith(b"\r\n") for block in blocks_read)
    starts = [1 + TEXT[: sum(len(b.data) for b in blocks_read[:i])].count("\n") for i in range(len(blocks_read))]
    assert [block.first_line for block in blocks_read] == starts


def test_gzip_and_a_byte_order_mark_change_nothing(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "plain.csv").write_text("a,b\n1,é\n2,\n")
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress("\ufeffa,b\n1,é\n2,\n".encode()))
    plain, packed = ingest("plain.csv")[0], ingest("packed.csv.gz")[0]
    assert rows(packed) == rows(plain) == [{"a": [1], "b": ["é".encode()]}, {"a": [2], "b": []}]


def test_parquet_types(ingest: Ingest, tmp_path: Path) -> None:
    table = {
        "i": pa.array([0, None, -5], pa.int32()),
        "f": pa.array([0.1, 2.0, None], pa.float64()),
        "s": pa.array(["x", "", None]).dictionary_encode(),
        "b": pa.array([True, False, None]),
        "l": pa.array([[1, 2], [], None]),
        "d": pa.array([0, 1, None], pa.date32()),
        "z": pa.nulls(3),
    }
    pq.write_table(pa.table(table), tmp_path / "data.parquet", row_group_size=2)
    assert rows(ingest("data.parquet")[0]) == [
        {"b": [0], "d": [b"1970-01-02"], "f": [2.0], "i": [], "l": [], "s": [b""]},
        {"b": [1], "d": [b"1970-01-01"], "f": [0.10000000149011612], "i": [0], "l": [1, 2], "s": [b"x"]},
        {"b": [], "d": [], "f": [], "i": [-5], "l": [], "s": []},
    ]


def test_what_is_in_a_struct_is_a_column_of_its_own(ingest: Ingest, tmp_path: Path) -> None:
    held = [{"n": 1, "p": {"x": 1, "q": {"y": "a"}}}, {"n": 2, "p": None}, {"n": 3, "p": {"x": 3, "q": None}}]
    pq.write_table(pa.Table.from_pylist(held), tmp_path / "data.parquet")
    examples, _ = ingest("data.parquet")
    of_parquet = rows(examples)
    assert of_parquet == [
        {"n": [1], "p.x": [1], "p.q.y": [b"a"]},
        {"n": [2], "p.x": [], "p.q.y": []},
        {"n": [3], "p.x": [3], "p.q.y": []},
    ]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in held[:1]))
    examples, _ = ingest("data.jsonl")
    assert rows(examples) == of_parquet[:1]


def test_a_column_may_not_be_a_key_with_a_dot_too(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text('{"a.b": 1, "a": {"b": 2}}\n')
    with pytest.raises(BadRowError, match=r"column 'a\.b': found it twice: as a key with a dot, and as"):
        ingest("data.jsonl")


def test_parquet_refuses_maps(ingest: Ingest, tmp_path: Path) -> None:
    column = pa.array([[("x", 1)]], pa.map_(pa.string(), pa.int64()))
    pq.write_table(pa.table({"p": column}), tmp_path / "data.parquet")
    with pytest.raises(DataError, match=r"column 'p': found the type map<.*>, expected numbers, text, dates"):
        ingest("data.parquet")


def test_json_lines_types(ingest: Ingest, tmp_path: Path) -> None:
    lines = [
        {"i": 1, "f": 1, "s": "2020-01-01", "m": 7, "l": [1, 2], "n": None},
        {"i": True, "f": 0.5, "s": "5", "m": "x", "l": 3, "big": 2**63},
    ]
    (tmp_path / "data.jsonl").write_text("\n\n".join(map(json.dumps, lines)))
    assert rows(ingest("data.jsonl")[0]) == [
        {"big": [], "f": [1.0], "i": [1], "l": [1, 2], "m": [b"7"], "s": [b"2020-01-01"]},
        {"big": [b"9223372036854775808"], "f": [0.5], "i": [1], "l": [3], "m": [b"x"], "s": [b"5"]},
    ]


def test_split_by_keeps_equal_values_together(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("who,n\n" + "".join(f"p{i % 20},{i}\n" for i in range(200)))
    examples, _ = ingest("data.csv", split_by="who", splits={"a": 1, "b": 1})
    splits = {s: {r.split(b"who\x12")[1] for r in records} for s, records in read_splits(examples).items()}
    assert len(splits["a"]) + len(splits["b"]) == 20
    assert splits["a"].isdisjoint(splits["b"])
    # The key is the serialized Feature, as in TFX: BytesList { value: "p0" } inside Feature.
    expected = int(hashlib.sha256(b"\x0a\x04\x0a\x02p0").hexdigest(), 16) % 2
    assert any(b"p0" in key for key in splits["ab"[expected]])


def test_properties_say_what_was_read(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "day-07.csv").write_text("a\n1\n")
    examples, rejected = ingest("day-{SPAN:02}.csv", span=7)
    digest = hashlib.sha256(b"a\n1\n").hexdigest()
    expected = hashlib.sha256(f"{digest}  day-07.csv\n".encode()).hexdigest()
    assert examples.get_string_custom_property("input_digest") == expected
    assert examples.get_string_custom_property("payload_format") == "FORMAT_TF_EXAMPLE"
    assert examples.get_string_custom_property("file_format") == "tfrecords_gzip"
    assert examples.get_int_custom_property("span") == examples.span == 7
    assert examples.split_names == '["all"]'
    assert rejected.num_rows == 0
