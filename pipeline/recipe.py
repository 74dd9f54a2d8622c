"""The typed contents of a recipe.yaml. A recipe is a folder under `recipes/`; it is found by its name."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from components.errors import SettingsError
from components.evaluation.settings import EvaluatorSettings
from components.example_gen import files
from components.example_gen.settings import DataSettings
from components.infra_validator.settings import InfraValidatorSettings
from components.settings import Settings
from components.tflite.settings import TFLiteSettings
from components.trainer.settings import TrainerSettings
from pipeline import yaml_settings
from pipeline.serving_settings import ServingSettings

PROJECT_ROOT = Path(__file__).resolve().parent.parent


class GateSettings(Settings):
    """What happens when the data do not look like their schema.

    Attributes:
      on_anomaly: `stop` ends the run before anything is trained; `warn` notes the anomalies and goes on.
    """

    on_anomaly: Literal["stop", "warn"] = "stop"


class TransformSettings(Settings):
    """How the features are made.

    Attributes:
      params: Passed to `preprocessing_fn` as its `custom_config`, as they stand; needs no such argument where empty.
    """

    params: dict[str, Any] = Field(default_factory=dict)


class PusherSettings(Settings):
    """How models are pushed.

    Attributes:
      keep_versions: How many pushed versions stay in the serving folder; the oldest are removed first. A version that
        alone holds one of as many newest models stays too, so that rollbacks use up nothing.
    """

    keep_versions: int = Field(default=5, ge=1)


class RecipeSettings(Settings):
    """The whole of a recipe.yaml.

    Attributes:
      description: One sentence: what is predicted, from what.
      label: The transformed feature that is the label.
    """

    description: str
    data: DataSettings
    label: str
    gate: GateSettings = GateSettings()
    transform: TransformSettings = TransformSettings()
    trainer: TrainerSettings
    evaluator: EvaluatorSettings
    tflite: TFLiteSettings = TFLiteSettings()
    infra_validator: InfraValidatorSettings = InfraValidatorSettings()
    pusher: PusherSettings = PusherSettings()
    serving: ServingSettings = ServingSettings()


@dataclass(frozen=True)
class Recipe:
    """One problem: its settings and where its code and schema are.

    Attributes:
      name: The folder's name; also the pipeline's and the served model's name.
      settings: The resolved settings, `--set` values included.
    """

    name: str
    settings: RecipeSettings

    @property
    def path(self) -> Path:
        """The recipe.yaml."""
        return recipes_folder() / self.name / "recipe.yaml"

    @property
    def preprocessing_fn(self) -> str:
        """Import path of the recipe's `preprocessing_fn`."""
        return f"recipes.{self.name}.features.preprocessing_fn"

    @property
    def model_module(self) -> str:
        """Import path of the module with `build_model` and `compile_arguments`."""
        return f"recipes.{self.name}.model"

    def find_inputs(self) -> files.InputFiles:
        """The files that `data.path` names today, the newest span's where it has one.

        Raises:
            MillraceError: There are none.
        """
        return files.resolve(self.settings.data, PROJECT_ROOT)

    @property
    def schema_path(self) -> Path:
        """Where the reviewed schema is, or will be."""
        return PROJECT_ROOT / "schemas" / self.name / "schema.pbtxt"

    @property
    def curated_schema(self) -> Path | None:
        """The reviewed schema, or None where the recipe has none yet and SchemaGen infers one."""
        return self.schema_path if self.schema_path.exists() else None


def project_relative(path: Path) -> str:
    """A path as the project's people know it: relative where it is below the project's folder."""
    return str(path.relative_to(PROJECT_ROOT)) if path.is_relative_to(PROJECT_ROOT) else str(path)


def recipes_folder() -> Path:
    """The folder that holds one folder a recipe."""
    return PROJECT_ROOT / "recipes"


def names() -> list[str]:
    """The names of all recipes, sorted."""
    return sorted(path.parent.name for path in recipes_folder().glob("*/recipe.yaml"))


def check_name(name: str) -> None:
    """Checks that there is a recipe of that name.

    Raises:
      SettingsError: There is none.
    """
    known = names()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(known)}."
        raise SettingsError(f"no recipe named {name!r} under {recipes_folder()}. {hint}")


def load(name: str, overrides: Sequence[str] = ()) -> Recipe:
    """Reads and checks `recipes/<name>/recipe.yaml`.

    Args:
      name: The recipe's folder name.
      overrides: `key.path=value` texts, as given to `--set`.

    Raises:
      SettingsError: There is no such recipe, or its settings are wrong.
    """
    check_name(name)
    path = recipes_folder() / name / "recipe.yaml"
    return Recipe(name, yaml_settings.load(RecipeSettings, path, overrides))
