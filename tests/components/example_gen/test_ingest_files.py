"""Which files a path matches."""

from __future__ import annotations

import gzip
import subprocess
import sys
import typing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from components.example_gen.files import InputFiles, resolve
from components.example_gen.formats import FORMATS
from components.example_gen.reading import ReadingSettings
from components.example_gen.settings import DataSettings
from components.example_gen.sources import columns_of, source_of
from contracts.errors import DataError, SettingsError


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("a\n1\n")


def resolved(folder: Path, **settings: object) -> tuple[int | None, list[str]]:
    inputs = resolve(DataSettings.model_validate(settings), folder)
    return inputs.span, [str(file.relative_to(folder)) for file in inputs.files]


@pytest.mark.parametrize(
    ("path", "span", "expected"),
    [
        ("d/span-1/a.csv", None, (None, ["d/span-1/a.csv"])),
        ("d/span-1", None, (None, ["d/span-1/a.csv", "d/span-1/b.csv"])),
        ("d/span-*/a.csv", None, (None, ["d/span-1/a.csv", "d/span-10/a.csv", "d/span-2/a.csv"])),
        ("d/span-{SPAN}/*.csv", None, (10, ["d/span-10/a.csv"])),
        ("d/span-{SPAN}", 1, (1, ["d/span-1/a.csv", "d/span-1/b.csv"])),
        ("d/span-{SPAN:2}/a.csv", None, (10, ["d/span-10/a.csv"])),
        ("t/{YYYY}-{MM}-{DD}.csv", None, (19_782, ["t/2024-02-29.csv"])),
        ("t/{YYYY}-{MM}-{DD}.csv", 0, (0, ["t/1970-01-01.csv"])),
    ],
)
def test_paths_globs_spans_and_dates(
    tmp_path: Path, path: str, span: int | None, expected: tuple[int | None, list[str]]
) -> None:
    touch(tmp_path, "d/span-1/a.csv", "d/span-1/b.csv", "d/span-2/a.csv", "d/span-10/a.csv", "d/span-1/.hidden")
    touch(tmp_path, "t/1970-01-01.csv", "t/2024-02-29.csv", "t/2024-13-01.csv")
    assert resolved(tmp_path, path=path, span=span) == expected


def test_a_missing_span_names_those_there_are(tmp_path: Path) -> None:
    touch(tmp_path, "1.csv", "3.csv")
    with pytest.raises(DataError, match=r"data.span is 2, but .*/{SPAN}.csv has only the spans 1, 3\."):
        resolved(tmp_path, path="{SPAN}.csv", span=2)


def test_a_missing_file_names_the_nearest_path(tmp_path: Path) -> None:
    touch(tmp_path, "data/trips.csv")
    with pytest.raises(DataError) as caught:
        resolved(tmp_path, path="data/tripz/x.csv")
    assert str(caught.value) == (
        f"data.path matches no file: {tmp_path}/data/tripz/x.csv\n"
        f"The nearest path that exists is {tmp_path}/data, which holds trips.csv.\n"
        "Correct data.path in the recipe, or put the data there."
    )


def test_formats_by_suffix(tmp_path: Path) -> None:
    touch(tmp_path, "a.csv", "b.csv.gz", "c.parquet", "d.jsonl.gz", "e.txt")
    formats = [resolve(DataSettings(path=p), tmp_path).format for p in ("a.csv", "b.csv.gz", "c.parquet", "d.jsonl.gz")]
    assert formats == ["csv", "csv", "parquet", "jsonl"]
    assert resolve(DataSettings(path="e.txt", format="csv"), tmp_path).format == "csv"
    with pytest.raises(
        SettingsError, match=r"The format of .*/e.txt cannot be told from its name, expected one of .csv"
    ):
        resolve(DataSettings(path="e.txt"), tmp_path)
    with pytest.raises(SettingsError, match=r"data.path matches files of several formats: .*a.csv \(csv\)"):
        resolve(DataSettings(path="[ac].*"), tmp_path)


def test_a_file_of_a_package_is_found_without_importing_it() -> None:
    code = """
import sys
from components.example_gen.files import resolve
from components.example_gen.reading import ReadingSettings
from components.example_gen.settings import DataSettings
path = "package:tfx/examples/chicago_taxi_pipeline/data/simple/data.csv"
name = resolve(DataSettings(path=path), ".").files[0].name
print(name, sorted({"tfx", "tensorflow", "apache_beam"} & set(sys.modules)))
"""
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert result.stdout == "data.csv []\n"


def test_a_package_that_is_not_installed(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"data.path names the Python package 'nosuch', which is not installed\."):
        resolve(DataSettings(path="package:nosuch/data.csv"), tmp_path)


def test_columns_of_each_format(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('\ufeffx;"y\n""z"""\n1;2\n')
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"x,y\n1,2\n"))
    pq.write_table(pa.table({"p": [1], "q": ["s"]}), tmp_path / "c.parquet")
    (tmp_path / "d.jsonl").write_text('{"k": 1}\n{"j": 2, "k": 3}\n')
    assert columns_of(InputFiles(None, (tmp_path / "a.csv",), "csv", ReadingSettings(delimiter=";"))) == ["x", 'y\n"z"']
    assert columns_of(InputFiles(None, (tmp_path / "b.csv.gz",), "csv")) == ["x", "y"]
    assert columns_of(InputFiles(None, (tmp_path / "c.parquet",), "parquet")) == ["p", "q"]
    assert columns_of(InputFiles(None, (tmp_path / "d.jsonl",), "jsonl")) == ["k", "j"]


def test_every_format_of_the_settings_is_in_the_table_and_has_a_reader() -> None:
    accepted = typing.get_args(DataSettings.model_fields["format"].annotation)
    assert sorted(accepted) == sorted(("auto", *FORMATS))
    for name in FORMATS:
        assert callable(source_of(name, ReadingSettings()).read_batches)


def test_an_unknown_format_is_refused_and_not_read_as_another() -> None:
    with pytest.raises(
        SettingsError, match=r"received the format 'avro', expected one of csv, parquet, jsonl, tfrecord"
    ):
        source_of("avro", ReadingSettings())


def test_a_bucket_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        resolve(DataSettings(path="s3://trips/2026.csv"), tmp_path)
    assert str(caught.value) == (
        "data.path is s3://trips/2026.csv, expected files of this machine: raw data are not read from buckets.\n"
        "Mount the bucket, or copy what is wanted: aws s3 cp --recursive, gcloud storage cp --recursive."
    )
