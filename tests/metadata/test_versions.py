"""Stores that were written by another version of ML Metadata: both sets' are read and continued, others are refused."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import ml_metadata as mlmd
import postgres
import pytest
from store_builder import StoreBuilder

from contracts.errors import StoreError
from metadata import connection, lineage
from metadata.queries import Queries
from metadata.records import Place
from pipeline.plan.environment import Environment
from pipeline.plan.fingerprint import Fingerprint
from pipeline.run.workplace import Workplace

DUMPS = sorted(Path(__file__).parent.joinpath("stores").glob("*.sql"))
"""What `dump` returned for the file that `write_run` had written, with each set's ML Metadata."""


def write_run(builder: StoreBuilder, run: str) -> None:
    """Adds a run of two nodes."""
    examples, model = (
        builder.artifact("Examples", f"/{run}/examples", span=3),
        builder.artifact("Model", f"/{run}/model"),
    )
    builder.run(run)
    builder.node("ExampleGen", "CACHED", outputs={"examples": examples})
    fingerprint = Fingerprint(settings={"seed": run})
    builder.node("Trainer", "COMPLETE", fingerprint, {"examples": examples}, {"model": model})


def dump(path: Path) -> str:
    """An SQLite file as SQL."""
    with closing(sqlite3.connect(path)) as file:
        return "\n".join(file.iterdump()) + "\n"


def restore(written: Path, path: Path) -> Path:
    with closing(sqlite3.connect(path)) as file:
        file.executescript(written.read_text())
    return path


def tables(sql: str) -> set[str]:
    """The statements that make tables and indexes, and the schema's version."""
    return {" ".join(each.split()) for each in re.findall(r"(?:CREATE|INSERT INTO .MLMDEnv.) [^;]*;", sql)}


def test_there_is_a_store_of_each_set() -> None:
    assert [path.stem for path in DUMPS] == ["ml_metadata_1.16.0", "ml_metadata_1.21.0"]


@pytest.mark.parametrize("written", DUMPS, ids=lambda path: path.stem)
def test_both_sets_make_the_same_tables(written: Path, tmp_path: Path) -> None:
    write_run(StoreBuilder(tmp_path / "own.sqlite", tmp_path), "first")
    assert tables(dump(tmp_path / "own.sqlite")) == tables(written.read_text())


@pytest.mark.parametrize("written", DUMPS, ids=lambda path: path.stem)
def test_the_store_of_either_set_is_read_and_continued(written: Path, tmp_path: Path) -> None:
    path = restore(written, tmp_path / "metadata.sqlite")
    write_run(StoreBuilder(path, tmp_path), "second")
    store = Queries.open_sqlite(path)
    assert store is not None
    assert {run.id: [(node.id, node.node, node.state) for node in run.nodes] for run in store.runs("small")} == {
        "second": [(3, "ExampleGen", "CACHED"), (4, "Trainer", "COMPLETE")],
        "first": [(1, "ExampleGen", "CACHED"), (2, "Trainer", "COMPLETE")],
    }
    assert [run.properties for run in store.latest("small", "Trainer")] == [
        {"fingerprint": Fingerprint(settings={"seed": run}).to_json()} for run in ("second", "first")
    ]
    [examples] = [made for made in store.artifacts("Examples") if made.artifact.uri == "/first/examples"]
    assert (examples.artifact.properties, examples.place) == ({"span": 3}, Place("small", "first", "ExampleGen"))
    traced = lineage.trace(store, examples.artifact.id, "down")
    assert traced is not None
    assert {artifact.uri for artifact in traced.artifacts.values()} == {"/first/examples", "/first/model"}


@pytest.mark.parametrize("version", [9, 11])
def test_a_store_of_another_schema_version_is_refused(
    both_places: Environment, request: pytest.FixtureRequest, version: int
) -> None:
    workplace = Workplace(both_places)
    workplace.prepare_store()
    connection.connect(workplace.connection)
    change = f"UPDATE MLMDEnv SET schema_version = {version}"  # noqa: S608 - a number
    server = both_places.metadata_store.postgresql
    if server is None:
        with closing(sqlite3.connect(both_places.metadata_path)) as file:
            file.execute(change)
            file.commit()
    else:
        where: postgres.Server = request.getfixturevalue("postgres_server")
        where.run(change, server.database)
    found = f"its tables are of schema version {version}, and ML Metadata {mlmd.__version__} expects 10."
    for opening in (workplace.open_store, workplace.open_for_writing):
        with pytest.raises(StoreError, match=re.escape(f"{workplace.described_store}: {found}")) as caught:
            opening()
        assert "Use the version of TFX that wrote it, or name another store" in str(caught.value.fix)
