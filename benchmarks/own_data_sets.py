"""The data sets of `benchmarks.own_data`, written as the files that a user would have."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import extra_packages, millrace

LABEL = "target"
BUNDLED = ("breast_cancer", "wine", "diabetes", "digits", "iris")
NAMED_CLASSES = ("breast_cancer", "wine", "iris")


@dataclass(frozen=True)
class DataSet:
    """A file to be made.

    Attributes:
        name: The recipe's.
        write: Writes the CSV.
        limit_seconds: From the first command to the pushed model.
    """

    name: str
    write: Callable[[Path], None]
    limit_seconds: float = 60.0


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)


def _bundled(name: str) -> DataSet:
    def write(path: Path) -> None:
        from sklearn import datasets

        options = {"scaled": False} if name == "diabetes" else {}
        loaded = getattr(datasets, f"load_{name}")(**options)
        targets = [loaded.target_names[y] if name in NAMED_CLASSES else y for y in loaded.target]
        rows = ([*map(float, row), target] for row, target in zip(loaded.data, targets, strict=True))
        _write(path, [*loaded.feature_names, LABEL], rows)

    return DataSet(name, write)


def _survey(name: str, label: str) -> DataSet:
    """A survey that statsmodels brings; an amount is to be predicted."""

    def write(path: Path) -> None:
        package = extra_packages.install(path.parent / "packages", "statsmodels==0.15.0")
        with (package / "statsmodels" / "datasets" / name / f"{name}.csv").open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        shutil.rmtree(package)
        _write(path, [LABEL if column == label else column for column in header], rows)

    return DataSet(name, write)


def _made(name: str, limit_seconds: float, **options: Any) -> DataSet:
    def write(path: Path) -> None:
        from sklearn.datasets import make_classification

        values, targets = make_classification(**options)
        columns = [*(f"x{number:03d}" for number in range(values.shape[1])), LABEL]
        _write(path, columns, ([*row, target] for row, target in zip(values.round(4), targets, strict=True)))

    return DataSet(name, write, limit_seconds)


def _write_taxi(path: Path) -> None:
    """Taxi trips as they come, but for the tip: whether it was more than a fifth of the fare is the label."""
    raw = path.with_suffix(".raw")
    millrace.write_taxi_rows(raw, 1)
    with raw.open(newline="", encoding="utf-8") as file:
        header, *trips = csv.reader(file)
    raw.unlink()
    fare, tips = header.index("fare"), header.index("tips")

    def row(trip: list[str]) -> list[str]:
        is_big = float(trip[tips] or 0) > 0.2 * float(trip[fare] or 0) > 0
        return [cell for place, cell in enumerate(trip) if place != tips] + [str(int(is_big))]

    _write(path, [name for name in header if name != "tips"] + [LABEL], map(row, trips))


SETS = {
    dataset.name: dataset
    for dataset in (
        *map(_bundled, BUNDLED),
        DataSet("taxi", _write_taxi),
        _survey("fair", "affairs"),
        _survey("randhie", "mdvis"),
        _made("wide", 120.0, n_samples=1797, n_features=500, n_informative=20, n_redundant=30, random_state=3),
        _made("rare", 60.0, n_samples=20_000, n_informative=8, weights=[0.99], flip_y=0.002, random_state=4),
    )
}
"""All of them, by name: 500 columns are `wide`; 1 % of the rows of `rare` are positive."""
