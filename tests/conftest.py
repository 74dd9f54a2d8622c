"""Fixtures that tests of several rooms share."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import postgres
import pytest
from store_builder import StoreBuilder

from pipeline.plan import environment
from pipeline.plan import project as projects
from pipeline.plan.environment import Environment
from pipeline.run.workplace import Workplace

if TYPE_CHECKING:
    from browser import Reader
    from object_server import ObjectServer
    from playwright.sync_api import Browser

PROJECT = Path(__file__).resolve().parent.parent

BUCKETS = itertools.count(1)

DATA = "fare,tips,company\n1.0,0.5,Blue\n2.0,,Red\n"
RECIPE = """\
description: is it big?
data:
  path: data.csv
label: big
trainer:
  epochs: 1
  batch_size: 2
evaluator:
  metrics:
    AUC: {lower_bound: 0.5}
"""
SCHEMA = """\
feature { name: "fare" type: FLOAT presence { min_fraction: 1.0 min_count: 1 } }
feature { name: "tips" type: FLOAT }
"""
FEATURES = "def preprocessing_fn(inputs):\n    return inputs\n"
MODEL = """\
from components.trainer import features


def build_model(inputs, params):
    # A comment.
    return inputs


def compile_arguments(params):
    return {}
"""


@pytest.fixture(autouse=True)
def stays_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undoes what commands change to find the project's modules, which would affect all later tests."""
    monkeypatch.setattr(projects, "enter", lambda: None)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A separate project: our components, and the two recipes `small` and `other` over a few rows of data.csv."""
    root = tmp_path / "project"
    shutil.copytree(PROJECT / "components", root / "components", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(PROJECT / "contracts", root / "contracts", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(PROJECT / "environments", root / "environments")
    (root / "data.csv").write_text(DATA)
    (root / "recipes").mkdir()
    for name in ("small", "other"):
        folder, schema = root / "recipes" / name, root / "schemas" / name / "schema.pbtxt"
        folder.mkdir()
        schema.parent.mkdir(parents=True)
        schema.write_text(SCHEMA)
        for file, text in (("recipe.yaml", RECIPE), ("features.py", FEATURES), ("model.py", MODEL)):
            (folder / file).write_text(text)
    monkeypatch.setattr(projects, "root", lambda: root)
    # A copy, whose sources tests may edit.
    monkeypatch.setattr(projects, "ENGINE", root)
    return root


@pytest.fixture
def places(sqlite_places: Environment) -> Environment:
    """An environment whose paths are all in the test's own folder; test files override it with another store."""
    return sqlite_places


@pytest.fixture
def sqlite_places(tmp_path: Path) -> Environment:
    """An environment whose paths are all in the test's own folder."""
    return Environment(
        metadata_store={"sqlite": tmp_path / "metadata.sqlite"},
        pipeline_root=tmp_path / "pipelines",
        serving_root=tmp_path / "serving",
        log_root=tmp_path / "logs",
    )


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.Server]:
    """A PostgreSQL for all tests of this process."""
    server = postgres.Server()
    yield server
    server.remove()


@pytest.fixture
def postgres_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets the environment variable in which `postgres.Server.settings` expects the password."""
    monkeypatch.setenv(postgres.PASSWORD_ENV, postgres.PASSWORD)


@pytest.fixture
def postgres_places(
    sqlite_places: Environment, postgres_server: postgres.Server, postgres_password: None
) -> Environment:
    """`sqlite_places` with an empty PostgreSQL database as the metadata store."""
    store = environment.MetadataStoreSettings(postgresql=postgres_server.new_database())
    return sqlite_places.model_copy(update={"metadata_store": store})


@pytest.fixture(params=["sqlite", "postgres"])
def both_places(request: pytest.FixtureRequest) -> Environment:
    """Both environments, one after the other."""
    chosen: Environment = request.getfixturevalue(f"{request.param}_places")
    return chosen


@pytest.fixture(scope="session")
def object_server_of_session() -> Iterator[ObjectServer]:
    """An object store for all tests of this process."""
    # Imported only here: it takes a second.
    from object_server import ObjectServer

    server = ObjectServer()
    yield server
    server.stop()


@pytest.fixture
def object_server(object_server_of_session: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> ObjectServer:
    """An object store, with its keys in environment variables."""
    from object_server import CREDENTIALS

    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    return object_server_of_session


@pytest.fixture
def object_environment(object_server: ObjectServer, tmp_path: Path) -> Callable[..., str]:
    """Writes environment files with a new bucket as root; `object_environment("a")` uses the cache `a`."""
    from object_server import REGION

    bucket = f"bucket-{next(BUCKETS)}"
    object_server.make_bucket(bucket)

    def write(cache: str = "cache", **settings: object) -> str:
        path = tmp_path / f"{cache}.yaml"
        document = {
            "metadata_store": {"sqlite": str(tmp_path / "metadata.sqlite")},
            "pipeline_root": f"s3://{bucket}/team/pipelines",
            "serving_root": str(tmp_path / "serving"),
            "log_root": str(tmp_path / "logs"),
            "object_store": {
                "endpoint": object_server.endpoint,
                "region": REGION,
                "cache": str(tmp_path / cache),
            },
        }
        path.write_text(json.dumps(document | settings))
        return str(path)

    return write


@pytest.fixture
def builder(places: Environment) -> StoreBuilder:
    """Writes runs into the metadata store of `places`."""
    return StoreBuilder(Workplace(places).connection, places.pipeline_root)


@pytest.fixture
def edit(project: Path) -> Callable[[str, str, str], None]:
    """Replaces text in a file of `project`: `edit(path, old, new)`."""

    def replace(path: str, old: str, new: str) -> None:
        text = (project / path).read_text()
        assert old in text
        (project / path).write_text(text.replace(old, new))

    return replace


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A headless browser per module, since Playwright's event loop would get in the way of later asyncio tests."""
    from browser import started

    with started() as browser:
        yield browser


@pytest.fixture
def reader(chromium: Browser) -> Iterator[Reader]:
    """Opens pages, `reader.open(url, width=400, dark=True)`, and fails if any of them had a problem."""
    from browser import Reader

    opened = Reader(chromium)
    yield opened
    opened.close()
    assert opened.problems == []
