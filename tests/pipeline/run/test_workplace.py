"""An environment's metadata store: how it is reached, and what is reported if it cannot be."""

from __future__ import annotations

from types import SimpleNamespace

import postgres
import pytest

from contracts.errors import SettingsError, StoreError
from metadata import connection
from pipeline.plan.environment import Environment, MetadataStoreSettings, MysqlSettings, PostgresqlSettings
from pipeline.run import workplace
from pipeline.run.workplace import Workplace

SERVER = {"host": "db.example", "port": 7000, "database": "mill", "user": "miller", "password_env": "MILL_PASSWORD"}
PASSWORD = "it's \\ secret"  # noqa: S105 - no one's


@pytest.fixture
def remote_places(sqlite_places: Environment, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """An environment with a PostgreSQL server that does not exist."""
    monkeypatch.setenv("MILL_PASSWORD", PASSWORD)
    store = MetadataStoreSettings(postgresql=PostgresqlSettings.model_validate(SERVER))
    return sqlite_places.model_copy(update={"metadata_store": store})


def test_postgresql_gets_every_value_quoted(remote_places: Environment) -> None:
    settings = Workplace(remote_places).connection.postgresql
    assert (settings.host, settings.port, settings.dbname) == ("'db.example'", "7000", "'mill'")
    assert (settings.user, settings.password) == ("'miller'", "'it\\'s \\\\ secret'")
    assert settings.skip_db_creation


def test_mysql_gets_every_value_as_it_is(remote_places: Environment) -> None:
    store = MetadataStoreSettings(mysql=MysqlSettings.model_validate(SERVER))
    settings = Workplace(remote_places.model_copy(update={"metadata_store": store})).connection.mysql
    assert (settings.host, settings.port, settings.database) == ("db.example", 7000, "mill")
    assert (settings.user, settings.password, settings.skip_db_creation) == ("miller", PASSWORD, True)


def test_without_its_variable_nothing_is_tried(remote_places: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MILL_PASSWORD")
    with pytest.raises(SettingsError) as caught:
        Workplace(remote_places).open_store()
    assert str(caught.value) == (
        "the environment variable MILL_PASSWORD is not set; the metadata store takes the password of miller from it.\n"
        "Set it: export MILL_PASSWORD=…"
    )


@pytest.mark.parametrize(
    ("reply", "fix"),
    [
        (
            'FATAL: password authentication failed for user "miller"',
            "Check the user, and the password in the variable MILL_PASSWORD.",
        ),
        (
            'could not translate host name "db.example" to address: Name or service not known',
            "Check `host`: no such name is known here.",
        ),
        ('FATAL: database "mill" does not exist', "Make the database, or check its name; it is not made for you."),
        (
            "could not connect to server: Connection refused",
            "Start the server, or check host, port and firewall.",
        ),
        (
            "ERROR: permission denied for schema public",
            "Let the user make and write tables in it: GRANT ALL, on its schema too.",
        ),
        ("something new", "See the server's log."),
    ],
)
def test_what_a_server_says_comes_with_what_can_be_done(
    remote_places: Environment, monkeypatch: pytest.MonkeyPatch, reply: str, fix: str
) -> None:
    def refuse(_connection: object) -> None:
        raise connection.UnreachableError(reply)

    monkeypatch.setattr(connection, "connect", refuse)
    for use in (Workplace(remote_places).open_store, Workplace(remote_places).open_for_writing):
        with pytest.raises(StoreError) as caught:
            use()
        assert str(caught.value) == (
            f"the metadata store cannot be used: PostgreSQL mill on db.example:7000: {reply}.\n{fix}"
        )
        assert PASSWORD not in str(caught.value)


def test_an_answer_is_waited_for(remote_places: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0)

    def sleep(seconds: float) -> None:
        clock.now += seconds

    monkeypatch.setattr(workplace, "time", SimpleNamespace(monotonic=lambda: clock.now, sleep=sleep))

    def back_after(seconds: float) -> str:
        if clock.now < seconds:
            raise StoreError("away")
        return "here"

    assert Workplace(remote_places).patiently(lambda: back_after(30)) == "here"
    assert clock.now == 30
    with pytest.raises(StoreError):
        Workplace(remote_places).patiently(lambda: back_after(1000))
    assert clock.now == 30 + connection.PATIENCE_SECONDS


def test_a_file_is_not_waited_for(sqlite_places: Environment) -> None:
    def fail() -> None:
        raise StoreError("broken")

    with pytest.raises(StoreError):
        Workplace(sqlite_places).patiently(fail)


def test_an_empty_database_is_no_store_yet(postgres_places: Environment) -> None:
    assert Workplace(postgres_places).open_store() is None
    assert Workplace(postgres_places).has_store
    Workplace(postgres_places).prepare_store()
    assert Workplace(postgres_places).described_store.startswith("PostgreSQL tests_")
    assert postgres.PASSWORD not in Workplace(postgres_places).described_store
