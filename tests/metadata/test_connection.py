"""Connections to servers: what cannot be opened and why, lost connections, and odd texts."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import ml_metadata as mlmd
import postgres
import pytest
from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2

from metadata import connection, probe
from metadata.queries import Queries
from pipeline.plan.environment import PostgresqlSettings

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def database(postgres_server: postgres.Server) -> PostgresqlSettings:
    """An empty database."""
    return postgres_server.new_database()


def to(settings: PostgresqlSettings, password: str = postgres.PASSWORD) -> mlmd_pb2.ConnectionConfig:
    return connection.postgresql(settings.host, settings.port, settings.database, settings.user, password)


def why_not(config: mlmd_pb2.ConnectionConfig) -> str:
    with pytest.raises(connection.UnreachableError) as caught:
        connection.connect(config)
    return str(caught.value)


def test_the_reason_is_the_servers_own(database: PostgresqlSettings) -> None:
    assert why_not(to(database, "wrong")) == 'FATAL: password authentication failed for user "owner"'
    unknown = database.model_copy(update={"database": "nowhere"})
    assert why_not(to(unknown)) == 'FATAL: database "nowhere" does not exist'


def test_a_database_is_never_made_by_asking_for_it(
    postgres_server: postgres.Server, database: PostgresqlSettings
) -> None:
    why_not(to(database.model_copy(update={"database": "nowhere"})))
    assert "nowhere" not in postgres_server.run("SELECT datname FROM pg_database").split()


def test_an_unreachable_host_is_reported_in_the_systems_words(tmp_path: Path) -> None:
    nobody = connection.postgresql("127.0.0.1", 1, "db", "me", "x")
    assert why_not(nobody) == "could not connect to server: Connection refused"
    nothing = connection.postgresql(str(tmp_path), 5432, "db", "me", "x")
    assert why_not(nothing) == "could not connect to server: No such file or directory"
    assert why_not(connection.mysql("127.0.0.1", 1, "db", "me", "x")) == (
        "could not connect to server 127.0.0.1:1: Connection refused"
    )


def test_a_user_who_may_not_make_tables(postgres_server: postgres.Server, database: PostgresqlSettings) -> None:
    postgres_server.make_user("guest", "guest")
    guest = database.model_copy(update={"user": "guest"})
    assert why_not(to(guest, "guest")).startswith("ERROR: permission denied for schema public")


def test_no_part_of_a_password_is_shown(database: PostgresqlSettings) -> None:
    # Unquoted, libpq would take it for settings and name those it does not know.
    assert "secret" not in why_not(to(database, "x host=secret 'secret\\ secret=1"))


LOG = "E1121 11:52:06.284 136 postgresql.cc:2] "


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ("I1121 11:52:06.284 136 postgresql.cc:2] Connecting.\nRuntimeError: \n", "no reason given"),
        (f"{LOG}PostgreSQL error: timeout expired\n{LOG}Execution failed: \n", "timeout expired"),
        (f"{LOG}Execution failed: ERROR:  EXISTS\nLINE 1: x\nTraceback (most\n", "ERROR: EXISTS LINE 1: x"),
        ("Traceback (most recent call last):\n  File\nRuntimeError: schema version 6.\n", "schema version 6"),
    ],
)
def test_the_reason_is_found_in_ml_metadatas_log(log: str, reason: str) -> None:
    assert probe.first_reason(log) == reason


TEXTS = ["plain", "it's", "C:\\x", '{"a": "b\\n\\"c\\""}', "\\", "\\'", "'\\", "a\nb\t", "%s _ $1", "züß €"]


def test_every_text_comes_back_as_it_went(database: PostgresqlSettings) -> None:
    store = connection.connect(to(database))
    [type_id] = [store.put_artifact_type(mlmd_pb2.ArtifactType(name="Odd"))]
    artifacts = [mlmd_pb2.Artifact(type_id=type_id, uri=f"/{text}") for text in TEXTS]
    for artifact, text in zip(artifacts, TEXTS, strict=True):
        artifact.custom_properties["text"].string_value = text
    ids = store.put_artifacts(artifacts)
    entries = Queries(to(database)).artifacts_by_id(ids)
    assert [entry.artifact.properties["text"] for entry in entries] == TEXTS
    for number, text in zip(ids, TEXTS, strict=True):
        assert [entry.artifact.id for entry in Queries(to(database)).artifacts_at(f"/{text}")] == [number]
    # The artifacts that were sent are left unchanged.
    assert [artifact.uri for artifact in artifacts] == [f"/{text}" for text in TEXTS]


def test_backslashes_are_hidden_in_every_text_of_a_message() -> None:
    event = mlmd_pb2.Event()
    event.path.steps.add().key = "a\\b"
    event.path.steps.add().index = 2
    hidden = connection.hide_backslashes(event)
    assert hidden.path.steps[0].key == f"a{connection.STAND_IN}b"
    assert event.path.steps[0].key == "a\\b"
    connection.show_backslashes(hidden)
    assert hidden == event
    plain = mlmd_pb2.Artifact(uri="/plain")
    assert connection.hide_backslashes(plain) is plain


def test_a_lost_connection_is_reopened(postgres_server: postgres.Server, database: PostgresqlSettings) -> None:
    writer, reader = connection.connect(to(database)), Queries(to(database))
    writer.put_artifact_type(mlmd_pb2.ArtifactType(name="Before"))
    postgres_server.end_connections()
    assert reader.artifact_types() == ["Before"]
    writer.put_artifact_type(mlmd_pb2.ArtifactType(name="After"))
    assert reader.artifact_types() == ["After", "Before"]


def test_a_mistake_stays_a_mistake(database: PostgresqlSettings) -> None:
    store = connection.connect(to(database))
    artifact = mlmd_pb2.Artifact(type_id=store.put_artifact_type(mlmd_pb2.ArtifactType(name="Odd")))
    artifact.custom_properties["number"].int_value = 2**40
    with pytest.raises(mlmd.errors.InternalError, match="integer out of range"):
        store.put_artifacts([artifact])
    assert store.get_artifacts() == []


def test_the_patient_wait_for_a_server_that_is_away(
    postgres_server: postgres.Server, database: PostgresqlSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    def start(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            postgres_server.start()

    monkeypatch.setattr(mlmd, "MetadataStore", mlmd.MetadataStore)
    monkeypatch.setattr(connection, "time", SimpleNamespace(sleep=start, monotonic=time.monotonic))
    connection.be_patient(to(database))
    store = mlmd.MetadataStore(to(database))
    postgres_server.stop()
    assert store.get_artifact_types() == []
    assert waited == [connection.PAUSE_SECONDS] * 2


def test_files_are_left_to_the_stock_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stock = mlmd.MetadataStore
    monkeypatch.setattr(mlmd, "MetadataStore", stock)
    connection.be_patient(connection.sqlite(tmp_path / "metadata.sqlite"))
    assert mlmd.MetadataStore is stock


def test_connecting_writes_nothing_to_the_terminal(database: PostgresqlSettings) -> None:
    script = (
        "import pipeline.run.workplace, sys\nfrom metadata import connection\n"
        f"connection.connect(connection.postgresql({database.host!r}, {database.port}, {database.database!r}, "
        f"{database.user!r}, {postgres.PASSWORD!r}))\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "GLOG_minloglevel"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
