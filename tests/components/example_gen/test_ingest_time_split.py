"""Splits by time: `data.split_by_time`."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from ingest_helpers import rows_by_split
from pydantic import ValidationError

from components.example_gen import blocks, shards
from components.example_gen.settings import DataSettings, TimeSplitSettings
from contracts.errors import BadRowError, DataError

Ingest = Callable[..., tuple[Any, Any]]
SPLITS = {"train": 2, "eval": 1}
DAYS = ["2024-05-31", "2024-06-01", "2023-01-01", "2024-06-02T12:00:00+02:00", "2024-05-31 23:59:59"]
OLD, NEW = [0, 2, 4], [1, 3]


def by_june(start: object = "2024-06-01") -> dict[str, Any]:
    return {"splits": SPLITS, "split_by_time": {"column": "day", "starts": {"eval": start}}}


def numbers(examples: Any) -> dict[str, list[int]]:
    return {split: sorted(row["n"][0] for row in rows) for split, rows in rows_by_split(examples).items()}


def write(folder: Path, suffix: str) -> str:
    file = folder / f"rows.{suffix}"
    if suffix == "csv":
        file.write_text("n,day\n" + "".join(f"{n},{day}\n" for n, day in enumerate(DAYS)))
    elif suffix == "jsonl":
        file.write_text("".join(f'{{"n": {n}, "day": "{day}"}}\n' for n, day in enumerate(DAYS)))
    elif suffix == "parquet":
        moments = [datetime.datetime.fromisoformat(day).replace(tzinfo=None) for day in DAYS]
        pq.write_table(pa.table({"n": list(range(len(DAYS))), "day": moments}), file)
    else:
        with tf.io.TFRecordWriter(str(file)) as writer:
            for n, day in enumerate(DAYS):
                example = tf.train.Example()
                example.features.feature["n"].int64_list.value.append(n)
                example.features.feature["day"].bytes_list.value.append(day.encode())
                writer.write(example.SerializeToString())
    return file.name


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "tfrecord"])
def test_older_rows_are_learned_from_in_every_format(ingest: Ingest, tmp_path: Path, suffix: str) -> None:
    examples, _ = ingest(write(tmp_path, suffix), **by_june())
    assert numbers(examples) == {"train": OLD, "eval": NEW}


def test_dates_written_otherwise_are_declared(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("n,day\n0,31.05.2024\n1,01.06.2024\n2,30.12.2023\n")
    examples, _ = ingest("rows.csv", columns={"day": "date %d.%m.%Y"}, **by_june())
    assert numbers(examples) == {"train": [0, 2], "eval": [1]}


@pytest.mark.parametrize(("start", "newer"), [("2024-06-01", [1]), (1717200000, [1]), (1717199999.5, [1]), (7, [0, 1])])
def test_numbers_are_seconds_or_what_the_start_is(
    ingest: Ingest, tmp_path: Path, start: object, newer: list[int]
) -> None:
    (tmp_path / "rows.csv").write_text("n,day\n0,1717199999\n1,1717200000\n2,5\n")
    examples, _ = ingest("rows.csv", **by_june(start))
    assert numbers(examples)["eval"] == newer


def test_three_splits_one_after_the_other(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("n,day\n" + "".join(f"{n},{2000 + n}\n" for n in range(10)))
    by_time = {"column": "day", "starts": {"eval": 2006, "test": 2008}}
    examples, _ = ingest("rows.csv", splits={"train": 1, "eval": 1, "test": 1}, split_by_time=by_time)
    assert numbers(examples) == {"train": [0, 1, 2, 3, 4, 5], "eval": [6, 7], "test": [8, 9]}


def test_several_files_in_many_shards_are_split_alike(
    ingest: Ingest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in range(2):
        rows = range(part * 500, part * 500 + 500)
        (tmp_path / f"{part}.csv").write_text("n,day\n" + "".join(f"{n},{2000 + n % 10}-01-01\n" for n in rows))
    for module, name in ((blocks, "SHARD_BYTES"), (blocks, "BLOCK_BYTES"), (shards, "SHARD_BYTES")):
        monkeypatch.setattr(module, name, 1_000)
    examples, _ = ingest("*.csv", **by_june("2008-01-01"))
    assert numbers(examples)["eval"] == [n for n in range(1000) if n % 10 >= 8]


@pytest.mark.parametrize(
    ("row", "found"),
    [("1,", "found nothing"), ("1,soon", "found 'soon'")],
)
def test_a_row_without_a_moment_is_malformed(ingest: Ingest, tmp_path: Path, row: str, found: str) -> None:
    (tmp_path / "rows.csv").write_text(f"n,day\n0,2024-01-01\n{row}\n2,2024-07-01\n")
    with pytest.raises(BadRowError) as caught:
        ingest("rows.csv", **by_june())
    assert str(caught.value) == (
        f"{tmp_path}/rows.csv, line 3, column 'day': {found}, expected a moment that data.split_by_time can place\n"
        "Mend the row, or set `data.on_bad_row: set_aside` to go on without such rows and have them collected."
    )
    examples, rejected = ingest("rows.csv", on_bad_row="set_aside", **by_june())
    assert (numbers(examples), rejected.num_rows) == ({"train": [0], "eval": [2]}, 1)


def test_a_boundary_that_all_rows_are_on_one_side_of_is_refused(ingest: Ingest, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        ingest(write(tmp_path, "csv"), **by_june("2025-01-01"))
    assert str(caught.value) == (
        "split 'eval' has no rows, expected some in every split; there are 5 in 'train'; data.split_by_time is by "
        "'day', from {'eval': '2025-01-01'} on.\n"
        "Move data.split_by_time.starts to where the rows' times are."
    )


def test_the_column_must_be_there_and_hold_moments(ingest: Ingest, tmp_path: Path) -> None:
    file = write(tmp_path, "csv")
    with pytest.raises(DataError, match=r"starts are numbers, \{'eval': 2024\}, and column 'day' holds text"):
        ingest(file, **by_june(2024))
    with pytest.raises(DataError, match=r"column is 'dya', which the data do not have. Did you mean day\?"):
        ingest(file, splits=SPLITS, split_by_time={"column": "dya", "starts": {"eval": 2024}})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"starts": {}}, "received {}, expected the first moment of each later split"),
        ({"starts": {"eval": "June"}}, "received 'June', expected a date such as 2024-06-01"),
        ({"starts": {"eval": True}}, "received True, expected a date"),
        ({"starts": {"a": 2024, "b": "2024-01-01"}}, "expected dates for all splits or numbers for all"),
        ({"starts": {"a": 2024, "b": 2023}}, "expected each split to start after the one before it"),
    ],
)
def test_wrong_starts(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TimeSplitSettings(column="day", **settings)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"split_by": "id"}, "received split_by_time with split_by, expected one of them"),
        ({"splits": {"train": "a*", "eval": "b*"}}, "received split_by_time with patterns in splits"),
        (
            {"splits": {"train": 1, "test": 1}},
            "received split_by_time.starts for eval, expected one for each split after 'train', in the order of "
            "splits: test",
        ),
    ],
)
def test_what_does_not_go_together(settings: dict[str, Any], message: str) -> None:
    by_time = {"column": "day", "starts": {"eval": datetime.date(2024, 6, 1)}}
    with pytest.raises(ValidationError) as caught:
        DataSettings(path="rows.csv", split_by_time=by_time, **settings)
    assert message in str(caught.value)
