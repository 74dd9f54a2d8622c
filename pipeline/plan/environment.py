"""The typed contents of an environments/*.yaml: where a pipeline runs and where its files are kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ModelWrapValidatorHandler, PrivateAttr, model_validator
from typing_extensions import Self

from contracts import yaml_settings
from contracts.errors import SettingsError
from contracts.settings import Settings
from pipeline.plan import project
from pipeline.plan.beam_settings import BeamSettings
from pipeline.plan.kubeflow_settings import KubeflowSettings
from pipeline.plan.object_store_settings import URI, ObjectRoot, ObjectStoreSettings

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

STATE_FOLDER = ".state"
"""In `log_root`, beside the runs' folders, whose names begin with a letter or a digit."""


def _variable_name(value: Any) -> Any:
    if isinstance(value, str) and not VARIABLE.fullmatch(value):
        # The value received may be a password.
        raise ValueError(
            "expected the name of an environment variable (letters, digits and _), received something else; "
            "the password itself has no place in a file"
        )
    return value


def _folder(value: Any) -> Any:
    if isinstance(value, str) and URI.match(value):
        raise ValueError(
            f"received {value!r}, expected a folder of this machine or of a shared volume: what lies there is locked "
            "and renamed, which object stores cannot do; only pipeline_root may lie in one"
        )
    return value


def _root(value: Any) -> Any:
    if isinstance(value, str) and URI.match(value):
        ObjectRoot.parse(value)
    return value


Folder = Annotated[Path, BeforeValidator(_folder)]
Root = Annotated[Path, BeforeValidator(_root)]


class ServerSettings(Settings):
    """A database on a server.

    Attributes:
        host: Its name or address; for PostgreSQL also the folder of its Unix socket.
        port: Its TCP port.
        database: The database's name; it must exist.
        user: The user to connect as.
        password_env: The name of the environment variable that holds the password; None for a user without one.
    """

    host: str = Field(min_length=1)
    port: int = Field(ge=1, le=65535)
    database: str = Field(min_length=1)
    user: str = Field(min_length=1)
    password_env: Annotated[str | None, BeforeValidator(_variable_name)] = None


class PostgresqlSettings(ServerSettings):
    """A PostgreSQL database."""

    port: int = Field(default=5432, ge=1, le=65535)


class MysqlSettings(ServerSettings):
    """A MySQL database."""

    port: int = Field(default=3306, ge=1, le=65535)


class MetadataStoreSettings(Settings):
    """The ML Metadata store; exactly one of these must be given.

    Attributes:
        sqlite: Path of an SQLite file.
        postgresql: A PostgreSQL database.
        mysql: A MySQL database.
    """

    sqlite: Folder | None = None
    postgresql: PostgresqlSettings | None = None
    mysql: MysqlSettings | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        names = [name for name in MetadataStoreSettings.model_fields if getattr(self, name) is not None]
        if len(names) != 1:
            received = " and ".join(names) or "none"
            raise ValueError(f"received {received}, expected exactly one of sqlite, postgresql and mysql")
        return self


class Environment(Settings):
    """Where a pipeline runs; once loaded, all paths are absolute.

    Attributes:
        metadata_store: Where runs are recorded.
        pipeline_root: Holds the artifacts, with a folder for each pipeline, node, output and execution. If they are in
            an object store, this is the local folder in which they are processed; see `object_root`.
        serving_root: Holds the pushed models, with a folder for each model and version.
        log_root: Holds the logs, with a folder for each run and a file for each node.
        beam: Where the data work runs.
        object_store: How to reach the object store of the pipeline_root, if it is in one.
        kubeflow: The cluster that schedules the pipeline, if there is one.
        standby_minutes: How long a process that has imported TensorFlow and TFX stays after a run on this machine, for
            the next one; 0: none does. By default 10 where the run was started at a terminal, otherwise 0.
    """

    metadata_store: MetadataStoreSettings
    pipeline_root: Root
    serving_root: Folder
    log_root: Folder
    beam: BeamSettings = BeamSettings()
    object_store: ObjectStoreSettings | None = None
    kubeflow: KubeflowSettings | None = None
    standby_minutes: float | None = Field(default=None, ge=0, le=1440)

    _object_root: ObjectRoot | None = PrivateAttr(default=None)

    @model_validator(mode="wrap")
    @classmethod
    def _objects(cls, values: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        environment = handler(values)
        text = values.get("pipeline_root") if isinstance(values, Mapping) else None
        root = ObjectRoot.parse(text) if isinstance(text, str) and URI.match(text) else None
        if root is None:
            if environment.object_store is not None and environment._object_root is None:
                raise ValueError(
                    f"received a section object_store and pipeline_root {environment.pipeline_root}, expected "
                    "s3://bucket/prefix or gs://bucket/prefix as pipeline_root, or no such section"
                )
            return environment
        store = environment.object_store or ObjectStoreSettings()
        _check_objects(root, store, environment.beam)
        resolved = environment.model_copy(update={"object_store": store, "pipeline_root": store.cache / root.path})
        resolved._object_root = root
        return resolved

    @property
    def object_root(self) -> ObjectRoot | None:
        """Where the artifacts are in an object store; None if they are in folders."""
        return self._object_root

    @property
    def state_root(self) -> Path:
        """Holds what processes share besides artifacts: locks, checkpoints, digests of files read earlier."""
        return self.pipeline_root if self.object_root is None else self.log_root / STATE_FOLDER

    @property
    def metadata_path(self) -> Path:
        """The SQLite file of the metadata store.

        Raises:
            SettingsError: The metadata store is on a server.
        """
        if self.metadata_store.sqlite is None:
            raise SettingsError("the metadata store is a server's, not an SQLite file.")
        return self.metadata_store.sqlite


def _check_objects(root: ObjectRoot, store: ObjectStoreSettings, beam: BeamSettings) -> None:
    if root.scheme == "gs" and store.region is not None:
        raise ValueError(f"received object_store.region {store.region} with {root}, expected it with s3:// alone")
    if engine := beam.engine_elsewhere:
        raise ValueError(
            f"received pipeline_root {root} and beam.runner {beam.runner}, whose workers on {engine} may be other "
            "machines: they would look for the artifacts in a folder of this one. Mount the bucket on all of them "
            "(Mountpoint for Amazon S3, Cloud Storage FUSE) and name the mounted folder, or take runner direct"
        )


def load(name_or_path: str) -> Environment:
    """Reads an environment by name (`local` is environments/local.yaml) or by its file's path.

    Raises:
        SettingsError: There is no such environment, or its settings are wrong.
    """
    path = Path(name_or_path)
    if path.suffix not in {".yaml", ".yml"}:
        path = project.environment_files().get(name_or_path, project.root() / "environments" / f"{name_or_path}.yaml")
    if not path.exists():
        known = ", ".join(sorted(project.environment_files()))
        raise SettingsError(f"no environment {name_or_path!r}: {path} does not exist.", f"There are: {known}.")
    loaded = yaml_settings.load(Environment, path)
    root, sqlite = project.root(), loaded.metadata_store.sqlite
    store = MetadataStoreSettings(sqlite=root / sqlite) if sqlite else loaded.metadata_store
    objects = loaded.object_store
    return loaded.model_copy(
        update={
            "metadata_store": store,
            "object_store": objects and objects.model_copy(update={"cache": root / objects.cache}),
            "pipeline_root": root / loaded.pipeline_root,
            "serving_root": root / loaded.serving_root,
            "log_root": root / loaded.log_root,
        }
    )
