"""Files that are damaged, or something else than expected: a sentence that names the file, and what to do."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ingest_helpers import rejected_rows, rows

from components.example_gen.files import resolve
from components.example_gen.settings import DataSettings
from contracts.errors import BadRowError, DataError

Ingest = Callable[..., tuple[Any, Any]]
GOOD = gzip.compress(b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(5_000)))


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.csv.gz", b"a,b\n1,2\n", "a.csv.gz ends in .gz and is not gzip.\nCopy it again; or if it is not compressed"),
        ("a.csv.gz", GOOD[:3_000], "a.csv.gz ends in the middle of its gzip data.\nCopy it, or download it, again."),
        ("a.jsonl.gz", GOOD[:3_000], "a.jsonl.gz ends in the middle of its gzip data."),
        ("a.csv", GOOD, "a.csv is gzip, expected text.\nLet its name end in .gz."),
        ("a.csv", b"PAR1abc", "a.csv is Parquet, expected text.\nSet data.format: parquet."),
        ("a.csv", b"\xd0\xcf\x11\xe0abc", "a.csv is an old Excel workbook, expected text.\nSave the sheet as CSV."),
        ("a.csv", b"id;x;name;y\n1;2;a;3\n", "a.csv has 1 column, 'id;x;name;y': is the delimiter ';'?"),
        ("a.csv", b"id\tx\n1\t2\n", "a.csv has 1 column, 'id\\tx': is the delimiter 'tab'?\nSet data.delimiter: 'tab'"),
        ("a.tsv", b"id,x\n1,2\n", "a.tsv has 1 column, 'id,x': is the delimiter ','?"),
        ("a.csv", "né,x\n1,2\n".encode("latin-1"), "a.csv: the header cannot be read: 'utf-8' codec can't decode"),
        ("a.tfrecord", b"", "a.tfrecord holds no records, expected tf.train.Examples."),
        (
            "a.tfrecord",
            b"hello hello hello",
            "a.tfrecord, record 1: found no TFRecord, expected its length and checksum.",
        ),
        ("a.tfrecord", b"hello", "a.tfrecord ends in the middle of record 1."),
        ("a.py", b"x = 1\n", "a.py has no function rows()."),
        ("a.py", b"def rows():\n    return iter([])\n", "rows() in {folder}/a.py yields nothing, expected rows."),
        ("a.py", b"def rows():\n    yield 5\n", "yields a number as row 1, expected a dict of values by column."),
    ],
)
def test_files_that_are_something_else(ingest: Ingest, tmp_path: Path, name: str, data: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError) as caught:
        ingest(name)
    assert message.format(folder=tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (["trips.csv"], "a.csv is a zip archive that holds trips.csv, expected text.\nUnpack it, or compress the file"),
        (
            ["[Content_Types].xml", "xl/workbook.xml"],
            "a.csv is an Excel workbook, expected text.\nSave the sheet as CSV",
        ),
    ],
)
def test_zip_archives(ingest: Ingest, tmp_path: Path, members: list[str], message: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.csv", "w") as archive:
        for member in members:
            archive.writestr(member, "a,b\n1,2\n")
    with pytest.raises(DataError) as caught:
        ingest("a.csv")
    assert message in str(caught.value)


def test_text_in_another_encoding_than_the_one_that_is_named(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"a\n\xff\n")
    with pytest.raises(BadRowError, match=r"found the byte 0xff, expected UTF-8 or what data.encoding names"):
        ingest("a.csv")
    with pytest.raises(DataError, match=r"a.csv is not shift_jis: .*\nSet data.encoding"):
        ingest("a.csv", encoding="shift_jis")


@pytest.mark.parametrize("path", ["links/*.csv", "links", "links/b.csv"])
def test_a_link_to_nothing(tmp_path: Path, path: str) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links/a.csv").write_text("n\n1\n")
    (tmp_path / "links/b.csv").symlink_to("gone.csv")
    with pytest.raises(DataError, match=r"links/b.csv is a link to gone.csv, which does not exist.\nMend or remove"):
        resolve(DataSettings(path=path), tmp_path)


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("n\n1\n")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(DataError, match=r"a.csv may not be read by this user.\nMend its permissions: chmod u\+r"):
        resolve(DataSettings(path="a.csv"), tmp_path)


def test_brackets_are_part_of_a_name_that_exists(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "brackets[1].csv").write_text("n\n1\n")
    (tmp_path / "brackets1.csv").write_text("n\n2\n")
    assert rows(ingest("brackets[1].csv")[0]) == [{"n": [1]}]
    assert rows(ingest("brackets?.csv")[0]) == [{"n": [2]}]


def test_records_that_are_no_examples(ingest: Ingest, tmp_path: Path) -> None:
    import tensorflow as tf

    feature = {"n": tf.train.Feature(int64_list=tf.train.Int64List(value=[1, 2]))}
    with tf.io.TFRecordWriter(str(tmp_path / "a.tfrecord.gz"), "GZIP") as writer:
        writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
        writer.write(b"\xff\xff")
        writer.write(tf.train.Example().SerializeToString())
    with pytest.raises(BadRowError, match=r"a.tfrecord.gz, row 2: found a record that is no tf.train.Example"):
        ingest("a.tfrecord.gz")
    examples, rejected = ingest("a.tfrecord.gz", on_bad_row="set_aside")
    assert rows(examples) == [{"n": [1, 2]}, {"n": []}]
    assert [entry["line"] for entry in rejected_rows(rejected)] == [2]
    packed = (tmp_path / "a.tfrecord.gz").read_bytes()
    (tmp_path / "a.tfrecord.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match=r"a.tfrecord.gz"):
        ingest("a.tfrecord.gz")
