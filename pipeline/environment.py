"""The typed contents of an environments/*.yaml: where a pipeline runs and where its things are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from components.errors import SettingsError
from components.settings import Settings
from pipeline import yaml_settings
from pipeline.recipe import PROJECT_ROOT


class MetadataStoreSettings(Settings):
    """The ML Metadata store.

    Attributes:
      sqlite: Path of an SQLite file.
    """

    sqlite: Path


class BeamSettings(Settings):
    """Beam's runner.

    Attributes:
      runner: `direct` runs in this process (see docs/adr/0004-beam-in-memory.md).
      options: Further pipeline options, such as `--direct_num_workers=2`.
    """

    runner: Literal["direct"] = "direct"
    options: list[str] = Field(default_factory=list)


class Environment(Settings):
    """Where a pipeline runs; all paths are absolute once loaded.

    Attributes:
      pipeline_root: Holds the artifacts, a folder a pipeline, node, output and execution.
      serving_root: Holds the pushed models, a folder a model and version.
      log_root: Holds the logs, a folder a run and a file a node.
    """

    metadata_store: MetadataStoreSettings
    pipeline_root: Path
    serving_root: Path
    log_root: Path
    beam: BeamSettings = BeamSettings()

    @property
    def metadata_path(self) -> Path:
        """The SQLite file of the metadata store."""
        return self.metadata_store.sqlite


def load(name_or_path: str) -> Environment:
    """Reads an environment by name (`local` is environments/local.yaml) or by the path of its file.

    Raises:
      SettingsError: There is no such environment, or its settings are wrong.
    """
    path = Path(name_or_path)
    if path.suffix not in {".yaml", ".yml"}:
        path = PROJECT_ROOT / "environments" / f"{name_or_path}.yaml"
    if not path.exists():
        known = ", ".join(sorted(found.stem for found in (PROJECT_ROOT / "environments").glob("*.yaml")))
        raise SettingsError(f"no environment {name_or_path!r}: {path} does not exist.", f"There are: {known}.")
    loaded = yaml_settings.load(Environment, path)
    return loaded.model_copy(
        update={
            "metadata_store": MetadataStoreSettings(sqlite=PROJECT_ROOT / loaded.metadata_path),
            "pipeline_root": PROJECT_ROOT / loaded.pipeline_root,
            "serving_root": PROJECT_ROOT / loaded.serving_root,
            "log_root": PROJECT_ROOT / loaded.log_root,
        }
    )
