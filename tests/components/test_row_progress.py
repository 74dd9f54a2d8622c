"""The rows that a node has worked through, as it tells the live view of a run."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from components import progress
from components.progress import RowProgress, count_at, counting_rows


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the clock shows, in a list of one."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_it_is_written_at_begin_and_end_and_once_a_second(tmp_path: Path, clock: list[float]) -> None:
    path = tmp_path / "StatisticsGen.progress.json"
    with counting_rows(str(path), 200) as counted:
        assert read(path) == {"rows": 0, "total": 200, "share": 0.0, "seconds": 0.0}
        clock[0] += 0.9
        counted.add(50)
        assert read(path)["rows"] == 0
        clock[0] += 0.2
        counted.add(20)
        assert read(path) == {"rows": 70, "total": 200, "share": 0.35, "seconds": pytest.approx(1.1)}
        counted.add(100)
        assert read(path)["rows"] == 70
    assert read(path)["rows"] == 170
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_where_the_number_of_rows_is_unknown_bytes_tell_the_share(tmp_path: Path, clock: list[float]) -> None:
    path = tmp_path / "ExampleGen.progress.json"
    with counting_rows(str(path), total_bytes=4000):
        count_at(str(path), 10)
        count_at(str(path), 0, 1000)
    assert read(path) == {"rows": 10, "total": None, "share": 0.25, "seconds": 0.0}


def test_a_worker_elsewhere_counts_nothing(tmp_path: Path) -> None:
    count_at(str(tmp_path / "progress.json"), 10)
    count_at(None, 10)
    assert list(tmp_path.iterdir()) == []


def test_without_a_file_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with counting_rows(None) as counted:
        counted.add(10)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(RowProgress(None))
