"""Tables whose cells are paths of image files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ingest_helpers import read_splits, rejected_rows
from test_ingest_images import encoded, put

from components.example_gen import image_paths
from components.example_gen.contract import Batch
from components.example_gen.encoding import Column
from components.example_gen.files import resolve
from components.example_gen.kinds import Kind
from components.example_gen.settings import DataSettings
from components.example_gen.sources import all_files
from contracts.errors import BadRowError

Ingest = Callable[..., tuple[Any, Any]]
PHOTO = {"photo": "image"}


def rows_of(examples: Any) -> list[tuple[int, list[bytes]]]:
    """The column `n` of each row, and its images."""
    import tensorflow as tf

    found = []
    for record in read_splits(examples)["all"]:
        feature = tf.train.Example.FromString(record).features.feature
        found.append((feature["n"].int64_list.value[0], list(feature["photo"].bytes_list.value)))
    return sorted(found)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_path_becomes_the_files_bytes(ingest: Ingest, tmp_path: Path, kind: str) -> None:
    put(tmp_path / "data", {"a.png": encoded(1), "more/é b.JPG": encoded(2, "JPEG")})
    rows = [{"photo": "a.png", "n": 1}, {"photo": "more/é b.JPG", "n": 2}, {"photo": None, "n": 3}]
    file = tmp_path / "data" / f"rows.{kind}"
    if kind == "csv":
        file.write_text("photo,n\na.png,1\nmore/é b.JPG,2\n,3\n", encoding="utf-8")
    elif kind == "jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        pq.write_table(pa.Table.from_pylist(rows), file)
    examples, _ = ingest(f"data/rows.{kind}", columns=PHOTO)
    assert rows_of(examples) == [(1, [encoded(1)]), (2, [encoded(2, "JPEG")]), (3, [])]


def test_what_is_no_image_is_told_with_its_line_or_set_aside(ingest: Ingest, tmp_path: Path) -> None:
    put(tmp_path, {"a.png": encoded(1), "text.png": b"no image"})
    (tmp_path / "rows.csv").write_text("n,photo\n1,a.png\n2,none.png\n3,text.png\n", encoding="utf-8")
    with pytest.raises(BadRowError) as error:
        ingest("rows.csv", columns=PHOTO)
    assert error.value.what == (
        f"{tmp_path}/rows.csv, line 3, column 'photo': found 'none.png', which cannot be read (No such file or "
        "directory), expected the path of an image file"
    )
    examples, rejected = ingest("rows.csv", columns=PHOTO, on_bad_row="set_aside")
    assert rows_of(examples) == [(1, [encoded(1)])]
    assert [(row["line"], row["column"], row["reason"]) for row in rejected_rows(rejected)] == [
        (3, "photo", "found 'none.png', which cannot be read (No such file or directory), expected the path of an "
         "image file"),
        (4, "photo", "'text.png': found no image, expected PNG, JPEG, GIF or BMP"),
    ]  # fmt: skip


def test_batches_hold_no_more_than_a_few_megabytes_of_images(
    ingest: Ingest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, {f"{n}.png": encoded(n) for n in range(9)})
    (tmp_path / "rows.csv").write_text("n,photo\n" + "".join(f"{n},{n}.png\n" for n in range(9)), encoding="utf-8")
    monkeypatch.setattr(image_paths, "BATCH_BYTES", 2 * len(encoded(0)))
    cuts: list[int] = []
    sliced = image_paths.sliced
    monkeypatch.setattr(image_paths, "sliced", lambda *args: cuts.append(args[2] - args[1]) or sliced(*args))
    examples, _ = ingest("rows.csv", columns=PHOTO)
    assert rows_of(examples) == [(n, [encoded(n)]) for n in range(9)]
    assert sum(cuts) == 9
    assert max(cuts) <= 2


def test_a_part_of_a_batch_keeps_its_marks_and_places() -> None:
    offsets = np.array([0, 1, 1, 3, 4])
    column = Column("x", Kind.INT, pa.array([5, 6, 7, 8]), offsets, {2: "wrong"}, {}, {0: "05"})
    batch = Batch([column], 4, [], lambda position: (10 + position, None))
    part = image_paths.sliced(batch, 1, 3)
    assert part.num_rows == 2
    assert part.columns[0].values.to_pylist() == [6, 7]
    assert part.columns[0].offsets.tolist() == [0, 0, 2]
    assert (part.columns[0].wrong, part.columns[0].padded) == ({1: "wrong"}, {})
    assert part.place(1) == (12, None)


def test_the_images_belong_to_the_input(ingest: Ingest, tmp_path: Path) -> None:
    put(tmp_path, {"a.png": encoded(1), "b.png": encoded(2)})
    (tmp_path / "rows.csv").write_text("n,photo\n1,a.png\n2,b.png\n", encoding="utf-8")
    inputs = resolve(DataSettings(path="rows.csv", columns=PHOTO), tmp_path)
    assert [path.name for path in all_files(inputs)] == ["rows.csv", "a.png", "b.png"]
    before, _ = ingest("rows.csv", columns=PHOTO)
    (tmp_path / "b.png").write_bytes(encoded(3))
    after, _ = ingest("rows.csv", columns=PHOTO)
    assert before.get_string_custom_property("input_digest") != after.get_string_custom_property("input_digest")
