"""What an environments/*.yaml may contain."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.errors import SettingsError
from pipeline.plan import environment

MINIMAL = """\
metadata_store: {sqlite: a/metadata.sqlite}
pipeline_root: /elsewhere/pipelines
serving_root: a/serving
log_root: a/logs
"""
SERVER = "host: db, database: mill, user: miller"


def test_relative_paths_begin_at_the_project_and_absolute_ones_stay(project: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(MINIMAL)
    loaded = environment.load(str(file))
    assert loaded.metadata_path == project / "a" / "metadata.sqlite"
    assert loaded.pipeline_root == Path("/elsewhere/pipelines")
    assert loaded.serving_root == project / "a" / "serving"
    assert loaded.log_root == project / "a" / "logs"
    assert loaded.beam.runner == "auto"
    assert loaded.beam.options == []


def test_local_keeps_everything_under_artifacts(project: Path) -> None:
    loaded = environment.load("local")
    paths = [loaded.metadata_path, loaded.pipeline_root, loaded.serving_root, loaded.log_root]
    assert all(path.is_relative_to(project / "artifacts") for path in paths)


def test_a_server_has_its_own_port_and_no_password(project: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(MINIMAL.replace("sqlite: a/metadata.sqlite", f"postgresql: {{{SERVER}}}"))
    store = environment.load(str(file)).metadata_store
    assert store.postgresql is not None
    assert (store.postgresql.port, store.postgresql.password_env) == (5432, None)
    file.write_text(MINIMAL.replace("sqlite: a/metadata.sqlite", f"mysql: {{{SERVER}, password_env: DB_PASSWORD}}"))
    store = environment.load(str(file)).metadata_store
    assert store.mysql is not None
    assert (store.mysql.port, store.mysql.password_env, store.sqlite) == (3306, "DB_PASSWORD", None)
    with pytest.raises(SettingsError, match=r"the metadata store is a server's, not an SQLite file\."):
        _ = environment.load(str(file)).metadata_path


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "sqlite: a/metadata.sqlite",
            "",
            "{path}:1: metadata_store: received none, expected exactly one of sqlite, postgresql and mysql.",
        ),
        (
            "sqlite: a/metadata.sqlite",
            f"sqlite: a, mysql: {{{SERVER}}}",
            "{path}:1: metadata_store: received sqlite and mysql, expected exactly one of sqlite, postgresql and "
            "mysql.",
        ),
        (
            "sqlite: a/metadata.sqlite",
            f"postgresql: {{{SERVER}, password: sesame}}",
            "{path}:1: unknown key metadata_store.postgresql.password. "
            "Did you mean metadata_store.postgresql.password_env?",
        ),
        (
            "sqlite: a/metadata.sqlite",
            f"postgresql: {{{SERVER}, password_env: open sesame}}",
            "{path}:1: metadata_store.postgresql.password_env: expected the name of an environment variable (letters, "
            "digits and _), received something else; the password itself has no place in a file.",
        ),
        (
            "a/serving",
            "s3://bucket/serving",
            "{path}:3: serving_root: received 's3://bucket/serving', expected a folder of this machine or of a shared "
            "volume: what lies there is locked and renamed, which object stores cannot do; only pipeline_root may lie "
            "in one.",
        ),
    ],
)
def test_a_place_that_cannot_be(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(MINIMAL.replace(old, new))
    with pytest.raises(SettingsError) as caught:
        environment.load(str(file))
    assert str(caught.value) == message.format(path=file)


def test_an_unknown_name_lists_the_known_ones(project: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        environment.load("lokal")
    path = project / "environments" / "lokal.yaml"
    fix = "There are: flink, kubeflow, local, rehearsal."
    assert str(caught.value) == f"no environment 'lokal': {path} does not exist.\n{fix}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MINIMAL + "beam: {runer: direct}\n", "{path}:5: unknown key beam.runer. Did you mean beam.runner?"),
        (MINIMAL + "runner: direct\n", "{path}:5: unknown key runner. Did you mean beam.runner?"),
        (
            MINIMAL + "beam: {runner: spanner}\n",
            "{path}:5: beam.runner: input should be 'columnar', 'direct', 'flink', 'spark', 'dataflow' or 'auto'; "
            "received 'spanner'.",
        ),
        (MINIMAL.replace("log_root: a/logs\n", ""), "{path}: log_root is missing; every mine.yaml needs it."),
    ],
)
def test_a_mistake_is_reported_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        environment.load(str(file))
    assert str(caught.value) == message.format(path=file)
