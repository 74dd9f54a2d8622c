"""`millrace check`: what can be reached, and how to mend what cannot."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import postgres
import pytest
from click.testing import CliRunner
from store_builder import StoreBuilder

from pipeline import cli
from pipeline.commands import reach
from pipeline.plan.environment import Environment, MetadataStoreSettings
from pipeline.run.workplace import Workplace


@pytest.fixture(autouse=True)
def space(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Makes the disk have 7 GB free."""
    disk = SimpleNamespace(free=7_000_000_000)
    monkeypatch.setattr(reach.shutil, "disk_usage", lambda _path: disk)
    return disk


def check(places: Environment, folder: Path) -> tuple[int, list[str]]:
    path = folder / "places.yaml"
    path.write_text(places.model_dump_json())
    result = CliRunner().invoke(cli.main, ["check", "--env", str(path)])
    return result.exit_code, result.output.splitlines()


def folder_lines(folder: Path, free: int = 7) -> list[str]:
    names = {"pipeline_root": "pipelines", "serving_root": "serving", "log_root": "logs"}
    return [f"{name:<16} fine   {folder / last}: will be made, {free} GB free" for name, last in names.items()]


def test_before_the_first_run_all_is_fine(sqlite_places: Environment, tmp_path: Path) -> None:
    store = f"SQLite {tmp_path / 'metadata.sqlite'}: the first run makes it; {tmp_path}: 7 GB free"
    assert check(sqlite_places, tmp_path) == (0, [f"metadata_store   fine   {store}", *folder_lines(tmp_path)])
    assert not (tmp_path / "metadata.sqlite").exists()
    assert not (tmp_path / "pipelines").exists()


def test_a_store_is_read_and_written(both_places: Environment, tmp_path: Path) -> None:
    StoreBuilder(Workplace(both_places).connection, tmp_path).run("one")
    for _ in range(2):
        code, lines = check(both_places, tmp_path)
        assert (code, lines[0]) == (
            0,
            f"metadata_store   fine   {Workplace(both_places).described_store}: can be read and written; runs: 1",
        )
    store = Workplace(both_places).open_for_writing()
    assert len(store.get_contexts_by_type(reach.CHECK_CONTEXT)) == 1


def test_a_user_who_may_only_read_is_reported(
    postgres_places: Environment, postgres_server: postgres.Server, tmp_path: Path
) -> None:
    StoreBuilder(Workplace(postgres_places).connection, tmp_path).run("one")
    settings = postgres_places.metadata_store.postgresql
    assert settings is not None
    postgres_server.make_user("reader", postgres.PASSWORD)
    postgres_server.run("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader", settings.database)
    postgres_server.run("GRANT ALL ON SCHEMA public TO reader", settings.database)
    store = MetadataStoreSettings(postgresql=settings.model_copy(update={"user": "reader"}))
    code, lines = check(postgres_places.model_copy(update={"metadata_store": store}), tmp_path)
    assert code == 1
    assert "permission denied for" in lines[0]
    assert lines[1].strip().startswith("Let the user ")


def test_what_fails_does_not_hide_the_rest(
    postgres_places: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(postgres.PASSWORD_ENV, "wrong")
    code, lines = check(postgres_places, tmp_path)
    assert code == 1
    message = f'{Workplace(postgres_places).described_store}: FATAL: password authentication failed for user "owner".'
    assert lines == [
        f"metadata_store   fails  the metadata store cannot be used: {message}",
        f"{'':<24}Check the user, and the password in the variable {postgres.PASSWORD_ENV}.",
        *folder_lines(tmp_path),
    ]


def test_a_folder_that_cannot_be_written_to(sqlite_places: Environment, tmp_path: Path) -> None:
    places = sqlite_places.model_copy(update={"log_root": Path("/proc/logs")})
    code, lines = check(places, tmp_path)
    assert code == 1
    assert lines[-2].startswith("log_root         fails  /proc cannot be written to: ")
    assert lines[-1].strip() == "Make it a folder that this user may write to."


def test_a_disk_that_is_nearly_full(sqlite_places: Environment, tmp_path: Path, space: SimpleNamespace) -> None:
    space.free = 400_000_000
    code, lines = check(sqlite_places, tmp_path)
    assert code == 1
    assert f"pipeline_root    fails  {tmp_path} has 0.4 GB free, expected at least 1." in lines
    assert f"{'':<24}Make room in it." in lines
