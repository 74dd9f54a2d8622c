"""The typed contents of a recipe.yaml. A recipe is a folder under `recipes/`, found by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from components.evaluation.settings import EvaluatorSettings
from components.example_gen import files
from components.example_gen.settings import DataSettings
from components.infra_validator.settings import InfraValidatorSettings
from components.tflite.settings import TFLiteSettings
from components.trainer.settings import TrainerSettings
from contracts import yaml_settings
from contracts.errors import SettingsError
from contracts.labels import Label
from contracts.near_names import did_you_mean
from contracts.serving_settings import ServingSettings
from contracts.settings import Settings
from contracts.yaml_settings import KeyPath
from pipeline.plan import project


class GateSettings(Settings):
    """What happens when the data do not match their schema.

    Attributes:
        on_anomaly: `stop` ends the run before anything is trained; `warn` records the anomalies and goes on.
    """

    on_anomaly: Literal["stop", "warn"] = "stop"


class TransformSettings(Settings):
    """How the features are made.

    Attributes:
        params: Passed unchanged to `preprocessing_fn` as its `custom_config`, an argument that it needs only if there
            are any.
    """

    params: dict[str, Any] = Field(default_factory=dict)


class PusherSettings(Settings):
    """How models are pushed.

    Attributes:
        keep_versions: How many pushed versions stay in the serving folder; the oldest are removed first. The only
            version of one of the `keep_versions` newest models stays too, so that rollbacks, which push a model again,
            do not push others out.
    """

    keep_versions: int = Field(default=5, ge=1)


class NodeSettings(Settings):
    """A node of the recipe's own; see docs/recipe-nodes.md.

    Attributes:
        component: A TFX component in the recipe's components.py; by default the one with the node's name.
        inputs: The output that each input takes, such as `StatisticsGen.statistics`.
        outputs: The artifact type's name by output; only if components.py does not define the component itself.
        after: Nodes that it waits for without using their outputs.
        before: Nodes that wait for it; if it fails, they do not run.
        params: The component's parameters.
        packages: Installed distributions that its result depends on; it runs again when a version changes.
    """

    component: str | None = None
    inputs: dict[str, str] = Field(default_factory=dict)
    outputs: dict[str, str] | None = None
    after: list[str] = Field(default_factory=list)
    before: list[str] = Field(default_factory=list)
    params: dict[str, Any] = Field(default_factory=dict)
    packages: list[str] = Field(default_factory=list)


class RecipeSettings(Settings):
    """The contents of a recipe.yaml.

    Attributes:
        description: One sentence: what is predicted, from what.
        label: The transformed feature that is the label; for a model with several outputs a list of features, each
            learned by the output of its name, or features by output.
        nodes: The recipe's own nodes, by name.
    """

    description: str
    data: DataSettings
    label: Label
    gate: GateSettings = GateSettings()
    transform: TransformSettings = TransformSettings()
    trainer: TrainerSettings
    evaluator: EvaluatorSettings
    tflite: TFLiteSettings = TFLiteSettings()
    infra_validator: InfraValidatorSettings = InfraValidatorSettings()
    pusher: PusherSettings = PusherSettings()
    serving: ServingSettings = ServingSettings()
    nodes: dict[str, NodeSettings] = Field(default_factory=dict)

    @field_validator("label", mode="before")
    @classmethod
    def _listed_labels(cls, label: object) -> object:
        by_output: object = label
        if isinstance(label, list) and all(isinstance(name, str) and label.count(name) == 1 for name in label):
            by_output = {name: name for name in label}
        if not by_output or not isinstance(by_output, str | dict):
            raise ValueError(f"received {label!r}, expected a feature, a list of features, or features by output")
        return by_output

    @model_validator(mode="after")
    def _one_head_is_judged(self) -> RecipeSettings:
        judged = self.evaluator.prediction_key
        if isinstance(self.label, dict) and judged not in self.label:
            raise ValueError(
                f"evaluator.prediction_key is the output that is judged, by its label; received {judged}, expected one "
                f"of those in label: {', '.join(self.label)}"
            )
        return self

    @property
    def judged_label(self) -> str:
        """The transformed feature that the model is judged by."""
        return self.label if isinstance(self.label, str) else self.label[str(self.evaluator.prediction_key)]


@dataclass(frozen=True)
class Recipe:
    """One problem to solve: its settings, and where its code and schema are.

    Attributes:
        name: The folder's name; also the pipeline's and the served model's name.
        settings: The resolved settings, `--set` values included.
        origins: Where each key was given.
    """

    name: str
    settings: RecipeSettings
    origins: Mapping[KeyPath, str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def project(self) -> Path:
        """The project's folder, which paths in recipe.yaml are relative to."""
        return project.root()

    @property
    def path(self) -> Path:
        """The recipe.yaml."""
        return project.recipes_folder() / self.name / "recipe.yaml"

    def where(self, *key_path: str) -> str:
        """Where a key of recipe.yaml was given: the file's line, or a `--set`."""
        return yaml_settings.origin_of(self.origins, key_path, self.path)

    @property
    def components_path(self) -> Path:
        """The components.py, with the components of the recipe's own nodes."""
        return self.path.with_name("components.py")

    @property
    def preprocessing_fn(self) -> str:
        """Import path of the recipe's `preprocessing_fn`."""
        return f"recipes.{self.name}.features.preprocessing_fn"

    @property
    def model_module(self) -> str:
        """Import path of the module with `build_model` and `compile_arguments`."""
        return f"recipes.{self.name}.model"

    def find_inputs(self) -> files.InputFiles:
        """The files that match `data.path` now; those of the newest span if it has spans.

        Raises:
            MillraceError: There are none.
        """
        return files.resolve(self.settings.data, project.root())

    @property
    def schema_path(self) -> Path:
        """Where the reviewed schema is, or will be."""
        return project.root() / "schemas" / self.name / "schema.pbtxt"

    @property
    def curated_schema(self) -> Path | None:
        """The reviewed schema; None if the recipe has none yet, so that SchemaGen infers one."""
        return self.schema_path if self.schema_path.exists() else None


def names() -> list[str]:
    """The names of all recipes, sorted."""
    return sorted(path.parent.name for path in project.recipes_folder().glob("*/recipe.yaml"))


def check_name(name: str) -> None:
    """Checks that there is a recipe of that name.

    Raises:
        SettingsError: There is none.
    """
    known = names()
    if name not in known:
        raise SettingsError(f"no recipe named {name!r} under {project.recipes_folder()}. {did_you_mean(name, known)}")


def load(name: str, overrides: Sequence[str] = ()) -> Recipe:
    """Reads and checks `recipes/<name>/recipe.yaml`.

    Args:
        name: The recipe's folder name.
        overrides: `key.path=value` texts, as given to `--set`.

    Raises:
        SettingsError: There is no such recipe, or its settings are wrong.
    """
    check_name(name)
    path = project.recipes_folder() / name / "recipe.yaml"
    return Recipe(name, *yaml_settings.load_with_origins(RecipeSettings, path, overrides))


def own_nodes() -> set[str]:
    """The names of all recipes' own nodes, skipping recipes whose settings are wrong."""
    own: set[str] = set()
    for name in names():
        with suppress(SettingsError):
            own |= load(name).settings.nodes.keys()
    return own
