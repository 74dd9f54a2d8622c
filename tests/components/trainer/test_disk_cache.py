"""The cache on disk: read instead of the files, removed afterwards, and never the last of the disk."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from test_fitting import job
from test_resume import fit as fit_job
from test_resume import new_job
from tiny_artifacts import Tiny
from trained import history

from components.trainer import disk_cache, inputs, train
from components.trainer.settings import InputSettings
from contracts.errors import TrainingError

DISK = InputSettings(cache="disk")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_a_training_reads_it_and_removes_it(
    tiny: Tiny, tmp_path: Path, temporary: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    original = inputs._records
    monkeypatch.setattr(inputs, "_records", lambda files: read.append(1) or original(files))  # type: ignore[func-returns-value]
    task = job(tiny, tmp_path, epochs=3, input={"cache": "disk"})
    train.train(task)
    # Once a split, to fill the cache.
    assert len(read) == 2
    shown = capsys.readouterr().out
    assert f"Rows: kept on disk (0.00 GB in {temporary}/millrace-cache-" in shown
    assert "Rows: 120 to train on, kept parsed on disk; 30 to validate with" in shown
    assert list(temporary.glob("millrace-*")) == []
    assert len(history(task)) == 3


def test_a_training_that_fails_removes_it(temporary: Path) -> None:
    def fail() -> None:
        with disk_cache.cache_folder(DISK) as folder:
            assert folder is not None
            assert folder.parent == temporary
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fail()
    assert list(temporary.iterdir()) == []


def test_what_a_killed_training_left_is_removed_and_what_another_uses_is_not(temporary: Path) -> None:
    for name in ("killed", "running"):
        folder = temporary / f"millrace-cache-{name}"
        folder.mkdir()
        (folder / "lock").touch()
    with (temporary / "millrace-cache-running" / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with disk_cache.cache_folder(DISK) as own:
            assert own is not None
            assert {path.name for path in temporary.iterdir()} == {"millrace-cache-running", own.name}


def test_the_disk_is_not_filled(tiny: Tiny, tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=5_000_000))
    with pytest.raises(TrainingError) as caught:
        train.train(job(tiny, tmp_path, epochs=1, input={"cache": "disk"}))
    assert str(caught.value) == (
        f"trainer.input.cache is disk, but 0.01 GB are free in {temporary} after 120 rows (0.00 GB), expected at least "
        "1.07 GB.\n"
        "Let TMPDIR name a folder on a larger disk, or set trainer.input.cache to none."
    )
    assert list(temporary.glob("millrace-*")) == []


def test_a_file_that_is_renamed_meanwhile_has_no_size(temporary: Path) -> None:
    (temporary / "written").write_bytes(b"1234")
    (temporary / "gone").symlink_to(temporary / "renamed")
    assert disk_cache.size(temporary) == 4


def test_resumed_it_goes_on_with_the_same_batches(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = iter(tmp_path / f"cache-{number}" for number in range(3))

    def open_data(*arguments: object) -> object:
        folder = next(folders)
        folder.mkdir()
        return original(*arguments, folder)  # type: ignore[arg-type]

    original = train.open_data
    monkeypatch.setattr(train, "open_data", open_data)
    done, memory = tmp_path / "done", tmp_path / "interrupted"
    done.touch()
    asked = {"input": {"cache": "disk", "shuffle_rows": 50}}
    whole_job = new_job(tiny, tmp_path, "whole", 4, done, **asked)
    whole, _ = fit_job(tiny, whole_job)
    with pytest.raises(InterruptedError):
        fit_job(tiny, new_job(tiny, tmp_path, "first", 4, memory, **asked))
    resumed_job = new_job(tiny, tmp_path, "second", 4, memory, **asked)
    resumed, _ = fit_job(tiny, resumed_job)
    for found, expected in zip(resumed.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert history(resumed_job) == history(whole_job)
