"""Splits by pattern, for tables; for images see test_ingest_images and test_ingest_cifar10."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ingest_helpers import rows_by_split, run_executor
from pydantic import ValidationError

from components.example_gen import blocks, component, shards
from components.example_gen.files import resolve
from components.example_gen.settings import DataSettings
from contracts.errors import BadRowError, DataError

Ingest = Callable[..., tuple[Any, Any]]
SPLITS = {"train": "train*", "eval": "eval*"}


def write(file: Path, numbers: range) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".csv":
        file.write_text("n\n" + "".join(f"{n}\n" for n in numbers))
    elif file.suffix == ".jsonl":
        file.write_text("".join(f'{{"n": {n}}}\n' for n in numbers))
    else:
        pq.write_table(pa.table({"n": list(numbers)}), file)


def numbers(examples: Any) -> dict[str, list[int]]:
    return {split: sorted(row["n"][0] for row in rows) for split, rows in rows_by_split(examples).items()}


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_whole_files_go_to_the_split_of_their_pattern(ingest: Ingest, tmp_path: Path, suffix: str) -> None:
    write(tmp_path / f"data/train-1.{suffix}", range(5))
    write(tmp_path / f"data/train-2.{suffix}", range(5, 8))
    write(tmp_path / f"data/eval.{suffix}", range(8, 10))
    examples, _ = ingest("data", splits=SPLITS)
    assert numbers(examples) == {"train": list(range(8)), "eval": [8, 9]}
    assert examples.split_names == '["train", "eval"]'


def test_many_shards_keep_the_splits_apart(ingest: Ingest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "train.csv", range(1_000))
    write(tmp_path / "eval.csv", range(1_000, 1_500))
    for module, name in ((blocks, "SHARD_BYTES"), (blocks, "BLOCK_BYTES"), (shards, "SHARD_BYTES")):
        monkeypatch.setattr(module, name, 1_000)
    examples, _ = ingest("*.csv", splits=SPLITS)
    assert len(list(Path(examples.uri, "Split-train").iterdir())) > 3
    assert numbers(examples) == {"train": list(range(1_000)), "eval": list(range(1_000, 1_500))}


def test_each_engine_writes_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "train.csv", range(1_000))
    for module, name in ((blocks, "SHARD_BYTES"), (blocks, "BLOCK_BYTES"), (shards, "SHARD_BYTES")):
        monkeypatch.setattr(module, name, 1_000)
    settings = {"path": "train.csv", "splits": {"train": 2, "eval": 1}}
    by_columns, _ = run_executor(settings, tmp_path)
    monkeypatch.setattr(component, "PROCESS_BYTES", 0)
    in_processes, _ = run_executor(settings, tmp_path)
    on_beam, _ = run_executor(settings, tmp_path, beam_pipeline_args=["--runner=DirectRunner"])
    expected = files_of(on_beam)
    assert len(expected) == 3 * 2 + 1
    assert files_of(by_columns) == expected
    assert files_of(in_processes) == expected
    (tmp_path / "train.csv").write_text("n,m\n" + "1,2\n" * 1_000 + "3\n")
    for arguments in ([], ["--runner=DirectRunner"]):
        with pytest.raises(BadRowError) as caught:
            run_executor(settings, tmp_path, beam_pipeline_args=arguments)
        assert "line 1002" in str(caught.value)


def files_of(examples: Any) -> dict[str, bytes]:
    """The files of an artifact by their paths in it."""
    return {str(file.relative_to(examples.uri)): file.read_bytes() for file in Path(examples.uri).rglob("*.*")}


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("data", "a.csv"),
        ("data/*.csv", "a.csv"),
        ("dat*/a.csv", "data/a.csv"),
        ("dat*/a.csv", "*a.csv"),
        ("**/data/a.csv", "data/[a-c].csv"),
        ("days/{SPAN}/*.csv", "a.csv"),
        ("days/{SPAN}", "?.csv"),
        ("data/a.csv", "a.csv"),
    ],
)
def test_what_a_pattern_is_matched_against(tmp_path: Path, path: str, pattern: str) -> None:
    write(tmp_path / "data/a.csv", range(1))
    write(tmp_path / "days/7/a.csv", range(1))
    inputs = resolve(DataSettings(path=path, splits={"all": pattern}), tmp_path)
    assert set(inputs.splits.values()) == {"all"}


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        (
            {"train": "train*", "eval": "test*"},
            "data.splits: the pattern 'test*' of split 'eval' matches no file, expected at least one of eval.csv, "
            "extra.csv, train.csv.\n",
        ),
        (
            {"train": "train*", "eval": "eval*"},
            "data.splits: extra.csv matches none of the patterns train: 'train*', eval: 'eval*'.\n",
        ),
        (
            {"train": "*", "eval": "eval*"},
            "data.splits: eval.csv matches the patterns of train ('*') and eval ('eval*'), "
            "expected those of only one split.",
        ),
        ({"train": "TRAIN*", "eval": "e*"}, "the pattern 'TRAIN*' of split 'train' matches no file"),
    ],
)
def test_patterns_that_do_not_divide_the_files(tmp_path: Path, splits: dict[str, str], message: str) -> None:
    for name in ("train", "eval", "extra"):
        write(tmp_path / f"{name}.csv", range(1))
    with pytest.raises(DataError) as caught:
        resolve(DataSettings(path="*.csv", splits=splits), tmp_path)
    assert message in str(caught.value)


def test_a_message_names_a_few_of_many_files(tmp_path: Path) -> None:
    for i in range(9):
        write(tmp_path / f"{i}.csv", range(1))
    with pytest.raises(DataError, match=r"data.splits: 1.csv, 2.csv, 3.csv, 4.csv, 5.csv and 3 more matches none of"):
        resolve(DataSettings(path="*.csv", splits={"train": "0*"}), tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"splits": {"train": "a*", "eval": 1}},
            "received {'train': 'a*', 'eval': 1}, expected hash buckets for every split or a pattern for every split",
        ),
        ({"splits": {"train": " "}}, "received an empty pattern for split 'train', expected one such as 'train/*'"),
        ({"splits": {"train": 0.7}}, "received 0.7 for split 'train', expected a whole number of hash buckets or a"),
        (
            {"splits": {"train": "a*"}, "split_by": "n"},
            "received split_by 'n' with the patterns {'train': 'a*'}, expected either: patterns put whole files into",
        ),
    ],
)
def test_settings_say_what_they_expect(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        DataSettings(path="x", **settings)
    assert message in str(caught.value)
