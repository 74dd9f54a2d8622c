"""A damaged store is named, and its copy is gone back to."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from store_builder import StoreBuilder

from contracts.errors import BrokenStoreError
from metadata import sqlite_file
from pipeline.plan.environment import Environment
from pipeline.run.workplace import Workplace


@pytest.fixture
def store(sqlite_places: Environment) -> Path:
    """A store of one run, with its copy."""
    path = sqlite_places.metadata_path
    builder = StoreBuilder(path, sqlite_places.pipeline_root)
    builder.run("one")
    builder.node("Trainer")
    Workplace(sqlite_places).keep_copy()
    return path


def cut(path: Path) -> None:
    """Overwrites the store's tables, and leaves its first page as it is."""
    content = path.read_bytes()
    path.write_bytes(content[:4096] + bytes(len(content) - 4096))


def overwrite(path: Path) -> None:
    path.write_bytes(b"x" * 5000)


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    ("damage", "wrong"), [(empty, "it is empty"), (overwrite, "it is not an SQLite file"), (cut, "")]
)
def test_a_damaged_store_is_named_and_its_copy_works(
    store: Path, sqlite_places: Environment, damage: object, wrong: str
) -> None:
    assert callable(damage)
    damage(store)
    with pytest.raises(BrokenStoreError) as caught:
        Workplace(sqlite_places).check_file(whole=True)
    assert caught.value.what.startswith(f"the metadata store {store} is damaged: {wrong}")
    assert caught.value.fix is not None
    start, command = caught.value.fix.split(":  ")
    assert start == "Go back to what it was at the end of the last run"
    Path(f"{store}-journal").write_text("of the damaged file")
    subprocess.run(["sh", "-c", command], check=True)
    opened = Workplace(sqlite_places).open_store()
    assert opened is not None
    assert opened.run_ids("small") == ["one"]


def test_opening_a_store_looks_at_its_beginning(store: Path, sqlite_places: Environment) -> None:
    overwrite(store)
    with pytest.raises(BrokenStoreError):
        Workplace(sqlite_places).open_store()
    with pytest.raises(BrokenStoreError):
        Workplace(sqlite_places).open_for_writing()


def test_without_a_copy_a_damaged_store_can_be_moved_away(sqlite_places: Environment) -> None:
    path = sqlite_places.metadata_path
    path.parent.mkdir(parents=True, exist_ok=True)
    empty(path)
    assert Workplace(sqlite_places).open_store() is None
    overwrite(path)
    with pytest.raises(BrokenStoreError, match=f"There is no copy of it.*mv {path} {path}.damaged"):
        Workplace(sqlite_places).open_store()


def test_a_damaged_store_does_not_replace_the_copy(store: Path, sqlite_places: Environment) -> None:
    before = sqlite_file.copy_of(store).read_bytes()
    cut(store)
    with pytest.raises(BrokenStoreError):
        Workplace(sqlite_places).keep_copy()
    assert sqlite_file.copy_of(store).read_bytes() == before


def test_a_copy_that_cannot_be_made_leaves_the_earlier_one(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: Path, _target: Path) -> None:
        raise OSError(28, "No space left on device")

    before = sqlite_file.copy_of(store).read_bytes()
    monkeypatch.setattr(Path, "replace", refuse)
    sqlite_file.keep_copy(store)
    assert sqlite_file.copy_of(store).read_bytes() == before


def test_an_empty_store_gets_no_copy_and_is_not_damaged(sqlite_places: Environment) -> None:
    path = sqlite_places.metadata_path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    Workplace(sqlite_places).keep_copy()
    assert not sqlite_file.copy_of(path).exists()
    Workplace(sqlite_places).check_file(whole=True)
