"""Where `millrace new` splits by time."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

from pipeline.commands.new.baseline import measure
from pipeline.commands.new.columns import Found
from pipeline.commands.new.table import Cells
from pipeline.commands.new.task import Task
from pipeline.commands.new.time_split import Boundary, boundary, moments_of

SEEN = Found("seen", "date", "dates")


def column(*cells: object) -> Cells:
    """A column of these cells."""
    held = np.full(len(cells), None)
    held[:] = cells
    return held


def days(count: int, per_day: int = 1) -> Cells:
    """Days from 2024-01-01 on, each in some rows, in no order."""
    first = datetime.date(2024, 1, 1)
    dates = [str(first + datetime.timedelta(row // per_day)) for row in range(count)]
    return column(*np.random.default_rng(0).permutation(dates).tolist())


def of(cells: Cells, labels: list[object] | None = None, found: Found = SEEN) -> Boundary | None:
    labels = labels or ["a", "b"] * (len(cells) // 2)
    return boundary([found], {found.name: cells}.__getitem__, labels, True)


def test_about_the_newest_fifth_is_judged_on() -> None:
    assert of(days(200)) == Boundary("seen", datetime.date(2024, 6, 9), 40)


def test_rows_without_label_do_not_count() -> None:
    cells = column(*sorted(days(400)))
    found = of(cells, ["a", "b"] * 100 + [None] * 200)
    assert found == Boundary("seen", datetime.date(2024, 6, 9), 40)


def test_seconds_of_declared_dates() -> None:
    seconds = column(*(1704067200 + 86400 * row for row in range(200)))
    assert of(seconds) == Boundary("seen", datetime.date(2024, 6, 9), 40)


def test_within_a_day_the_moment_is_given() -> None:
    seconds = column(*(1704067200 + 60 * row for row in range(200)))
    assert of(seconds) == Boundary("seen", "2024-01-01T02:40:00", 40)


@pytest.mark.parametrize(
    ("cells", "labels", "found"),
    [
        (days(200), None, Found("date_of_birth", "date", "dates")),
        (days(200), None, Found("seen", "date", "dates", missing=3)),
        (days(200, per_day=100), None, SEEN),
        (days(40), None, SEEN),
        (column(*sorted(days(200))), ["a"] * 100 + ["b"] * 100, SEEN),
        (column(*sorted(days(200))), ["a", "b"] * 80 + ["a", "c"] * 20, SEEN),
        (days(200), None, Found("seen", "left out", "dates")),
    ],
)
def test_where_time_is_no_way_to_split(cells: Cells, labels: list[object] | None, found: Found) -> None:
    assert of(cells, labels, found) is None


def test_moments_of_what_ingest_reads() -> None:
    assert moments_of(column("1970-01-02", None)).tolist()[0] == 86400
    assert np.isnan(moments_of(column(5, None))[1])


def test_the_baseline_is_judged_on_rows_newer_than_those_it_learned_from() -> None:
    # y turns round half-way: what was learned of older rows is wrong for newer ones.
    x = np.arange(600) % 2
    y = np.where(np.arange(600) < 300, x, 1 - x)
    cells = {"x": column(*x.tolist()), "y": column(*map(str, y))}
    task = Task("y", ("0", "1"), (300, 300))
    columns = [Found("x", "number", "flags", distinct=2)]
    drawn = measure(columns, cells, task)[1].value
    by_time = measure(columns, cells, task, np.arange(600.0))[1]
    assert abs(drawn - 0.5) < 0.1
    # The first third of the judged rows is judged by a model that has seen no other kind.
    assert (by_time.rows, by_time.value < 0.4) == (300, True)
