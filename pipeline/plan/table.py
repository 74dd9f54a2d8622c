"""The table of nodes: what runs, on which inputs, and what each result depends on. Importing it does not import TFX.

A new node is one entry here and a component. The DAG (dag.py), the cache keys (fingerprint.py), `--from` and `--to`,
the progress table, the report's graph and Kubeflow's tasks are derived from it (nodes.py). The entries of a recipe's
own nodes are read from its recipe.yaml and components.py (recipe_nodes.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from contracts.fingerprints import Fingerprint
from contracts.labels import label_features
from pipeline.plan.recipe import Recipe

BASELINE_NODE = "BaselineModel"
EVALUATOR_NODE = "Evaluator"
INFRA_NODE = "InfraValidator"
PUSHER_NODE = "Pusher"
TFLITE_NODE = "TFLite"
TRAINER_NODE = "Trainer"

RESERVED = ("NotGoodEnough", "CloseRun")
"""The names of the tasks that a scheduler runs besides nodes."""

NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class BuildContext:
    """What a component's arguments are derived from.

    Attributes:
        recipe: What runs.
        state_root: The environment's folder for state that processes share besides artifacts.
        serving_root: The environment's folder for pushed models.
        span: The resolved span of the input data; None where its path has none.
        fingerprint: The node's fingerprint; empty for a node without one.
    """

    recipe: Recipe
    state_root: Path
    serving_root: Path
    span: int | None
    fingerprint: Fingerprint


def _no_arguments(_context: BuildContext) -> dict[str, Any]:
    return {}


def _always(_recipe: Recipe) -> bool:
    return True


@dataclass(frozen=True)
class Node:
    """A node of the pipeline.

    Attributes:
        name: Its id.
        component: `module:name` of the callable that makes its TFX component from a channel for each input and the
            arguments.
        inputs: `Node.output` by the component's parameter. Inputs from absent nodes are left out.
        outputs: The artifact type's name by output.
        after: Nodes that it waits for without using their outputs.
        before: Nodes that wait for it.
        arguments: The component's other arguments.
        settings: What its result depends on: keys of recipe.yaml with everything below them, and `serving_root`.
        code: Modules that it depends on besides the component's; `{recipe}` stands for the recipe's name.
        packages: Distributions whose version it depends on.
        image_packages: Further ones if the raw data are images.
        files: Data from outside the project that it reads: the raw data, or the curated schema.
        depends_on_table: Whether it also depends on this table. Components know nothing of the pipeline they are in, so
            one node that is cheap to run again stands in for all of them.
        uses_beam: Whether Beam does its work, on whatever engine the environment names.
        uncached: Why it runs in every run; empty for a node that can be cached.
        looks_up: Whether it only looks up artifacts and does no work of its own; such a node has no fingerprint.
        when: Whether a recipe's pipeline has it.
        absence: Why a pipeline lacks it, and what to do; for a node that users may look for.
        own: Whether it is one of the recipe's own.
    """

    name: str
    component: str
    inputs: Mapping[str, str] = NONE
    outputs: Mapping[str, str] = NONE
    after: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    arguments: Callable[[BuildContext], dict[str, Any]] = _no_arguments
    settings: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    image_packages: tuple[str, ...] = ()
    files: Literal["", "data", "schema"] = ""
    depends_on_table: bool = False
    uses_beam: bool = False
    uncached: str = ""
    looks_up: bool = False
    when: Callable[[Recipe], bool] = _always
    absence: tuple[str, str] = ("", "")
    own: bool = False

    @property
    def upstream(self) -> tuple[str, ...]:
        """The nodes that run before it."""
        sources = (source.partition(".")[0] for source in self.inputs.values())
        return tuple(dict.fromkeys((*sources, *self.after)))

    def among(self, present: Mapping[str, Node]) -> Node:
        """This node in a pipeline: without inputs from absent nodes, and after the nodes that name it in `before`."""
        inputs = {name: source for name, source in self.inputs.items() if source.partition(".")[0] in present}
        waits = (*self.after, *(node.name for node in present.values() if self.name in node.before))
        return replace(self, inputs=inputs, after=tuple(name for name in waits if name in present))


def _trainer_arguments(context: BuildContext) -> dict[str, Any]:
    recipe, settings = context.recipe, context.recipe.settings
    # Interrupted training resumes only with the code and the settings that it began with.
    checkpoints = context.state_root / recipe.name / "checkpoints" / context.fingerprint.digest
    config = {
        "model_module": recipe.model_module,
        "label": settings.label,
        "trainer": settings.trainer.model_dump(mode="json"),
        "checkpoint_root": str(checkpoints),
    }
    return {"run_fn": "components.trainer.run.run_fn", "custom_config": config}


def _pusher_arguments(context: BuildContext) -> dict[str, Any]:
    # This imports TFX, which every caller has imported already.
    from components.pusher.component import RUN_ID

    return {
        "base_directory": str(context.serving_root / context.recipe.name),
        "keep_versions": context.recipe.settings.pusher.keep_versions,
        "run_id": RUN_ID,
    }


TABLE: tuple[Node, ...] = (
    Node(
        "ExampleGen",
        component="components.example_gen.component:ExampleGen",
        outputs={"examples": "Examples", "rejected_rows": "RejectedRows"},
        arguments=lambda context: {
            "settings": context.recipe.settings.data,
            "base_dir": str(context.recipe.project),
            "labels": label_features(context.recipe.settings.label),
            "span": context.span,
        },
        settings=("data", "label"),
        packages=("pyarrow", "tfx-bsl"),
        image_packages=("pillow",),
        files="data",
        uses_beam=True,
    ),
    Node(
        "StatisticsGen",
        component="components.statistics.component:StatisticsGen",
        inputs={"examples": "ExampleGen.examples"},
        outputs={"statistics": "ExampleStatistics"},
        packages=("tensorflow-data-validation",),
        uses_beam=True,
    ),
    Node(
        "SchemaGen",
        component="tfx.components.schema_gen.import_schema_gen.component:ImportSchemaGen",
        outputs={"schema": "Schema"},
        arguments=lambda context: {"schema_file": str(context.recipe.curated_schema)},
        packages=("tensorflow-data-validation",),
        files="schema",
        when=lambda recipe: recipe.curated_schema is not None,
    ),
    Node(
        "SchemaGen",
        component="tfx.components.schema_gen.component:SchemaGen",
        inputs={"statistics": "StatisticsGen.statistics"},
        outputs={"schema": "Schema"},
        arguments=lambda _context: {"infer_feature_shape": False},
        packages=("tensorflow-data-validation",),
        when=lambda recipe: recipe.curated_schema is None,
    ),
    Node(
        "ExampleValidator",
        component="tfx.components.example_validator.component:ExampleValidator",
        inputs={"statistics": "StatisticsGen.statistics", "schema": "SchemaGen.schema"},
        outputs={"anomalies": "ExampleAnomalies"},
        packages=("tensorflow-data-validation",),
    ),
    Node(
        "DataGate",
        component="components.data_gate:DataGate",
        inputs={
            "examples": "ExampleGen.examples",
            "schema": "SchemaGen.schema",
            "anomalies": "ExampleValidator.anomalies",
        },
        outputs={"verdict": "GateVerdict"},
        arguments=lambda context: {"on_anomaly": context.recipe.settings.gate.on_anomaly},
        settings=("gate",),
        depends_on_table=True,
    ),
    Node(
        "Transform",
        component="components.transform.component:Transform",
        inputs={"examples": "ExampleGen.examples", "schema": "SchemaGen.schema"},
        outputs={"transform_graph": "TransformGraph", "transformed_examples": "Examples"},
        after=("DataGate",),
        arguments=lambda context: {
            "preprocessing_fn": context.recipe.preprocessing_fn,
            "params": context.recipe.settings.transform.params,
        },
        settings=("transform",),
        code=("recipes.{recipe}.features",),
        packages=("tensorflow", "tensorflow-transform"),
        uses_beam=True,
    ),
    Node(
        TRAINER_NODE,
        component="components.trainer.component:Trainer",
        inputs={
            "raw_examples": "ExampleGen.examples",
            "examples": "Transform.transformed_examples",
            "transform_graph": "Transform.transform_graph",
        },
        outputs={"model": "Model", "model_run": "ModelRun"},
        arguments=_trainer_arguments,
        settings=("trainer", "label"),
        code=("components.trainer.run", "recipes.{recipe}.model"),
        packages=("tensorflow", "tf-keras"),
    ),
    Node(
        BASELINE_NODE,
        component="components.baseline:baseline_model",
        inputs={"candidate": "Trainer.model"},
        outputs={"model": "Model", "reference_model": "Model"},
        uncached="it looks up the served model to compare with",
        looks_up=True,
    ),
    Node(
        EVALUATOR_NODE,
        component="components.evaluation.component:Evaluator",
        inputs={
            "examples": "ExampleGen.examples",
            "model": "Trainer.model",
            "baseline_model": "BaselineModel.model",
            "reference_model": "BaselineModel.reference_model",
        },
        outputs={"evaluation": "ModelEvaluation", "blessing": "ModelBlessing"},
        arguments=lambda context: {
            "label": context.recipe.settings.judged_label,
            "settings": context.recipe.settings.evaluator,
            "sampled_rows": context.recipe.settings.infra_validator.rows,
        },
        # It keeps predictions for as many rows as the InfraValidator sends.
        settings=("evaluator", "label", "infra_validator.rows"),
        packages=("tensorflow", "tensorflow-model-analysis"),
        uses_beam=True,
    ),
    Node(
        TFLITE_NODE,
        component="components.tflite.component:TFLite",
        inputs={
            "transformed_examples": "Transform.transformed_examples",
            "transform_graph": "Transform.transform_graph",
            "model": "Trainer.model",
            "model_blessing": "Evaluator.blessing",
        },
        outputs={"tflite_model": "TFLiteModel"},
        arguments=lambda context: {
            "name": context.recipe.name,
            "label": context.recipe.settings.judged_label,
            "output": context.recipe.settings.evaluator.prediction_key or "",
            "settings": context.recipe.settings.tflite.model_dump_json(),
        },
        settings=("tflite", "label", "evaluator.prediction_key"),
        packages=("tensorflow", "flatbuffers"),
        when=lambda recipe: recipe.settings.tflite.quantization != "none",
        absence=("tflite.quantization is none.", "Ask for it in recipe.yaml or with `--set tflite.quantization=int8`."),
    ),
    Node(
        INFRA_NODE,
        component="components.infra_validator.component:InfraValidator",
        inputs={
            "model": "Trainer.model",
            "model_blessing": "Evaluator.blessing",
            "evaluation": "Evaluator.evaluation",
            "examples": "ExampleGen.examples",
            "transformed_examples": "Transform.transformed_examples",
            "transform_graph": "Transform.transform_graph",
            "tflite_model": "TFLite.tflite_model",
        },
        outputs={"blessing": "InfraBlessing"},
        arguments=lambda context: {
            "name": context.recipe.name,
            "settings": context.recipe.settings.infra_validator.model_dump_json(),
        },
        settings=("infra_validator",),
        packages=("tensorflow", "tensorflow-serving-api"),
    ),
    Node(
        PUSHER_NODE,
        component="components.pusher.component:Pusher",
        inputs={
            "model": "Trainer.model",
            "model_blessing": "Evaluator.blessing",
            "tflite_model": "TFLite.tflite_model",
            "infra_blessing": "InfraValidator.blessing",
        },
        outputs={"pushed_model": "PushedModel"},
        arguments=_pusher_arguments,
        # A recipe that no longer wants a TF Lite model has one node fewer and must be pushed again.
        settings=("pusher", "serving_root", "tflite.quantization"),
        uncached="what it has to do depends on what is served already",
    ),
)
"""All of Millrace's nodes, in the order of the data flow; of entries with the same name a pipeline has only one."""
