"""The whole pipeline, in the order of the data flow."""

from __future__ import annotations

from collections.abc import Mapping

from tfx.components.example_validator.component import ExampleValidator
from tfx.components.schema_gen.component import SchemaGen
from tfx.components.schema_gen.import_schema_gen.component import ImportSchemaGen
from tfx.dsl.components.base.base_node import BaseNode
from tfx.dsl.components.common.resolver import Resolver
from tfx.orchestration import pipeline as tfx_pipeline
from tfx.types import BaseChannel, Channel
from tfx.types.standard_artifacts import Model, ModelBlessing, PushedModel

from components.baseline import LatestOtherBlessedModelStrategy
from components.data_gate import DataGate
from components.evaluation.component import Evaluator
from components.example_gen.component import ExampleGen
from components.infra_validator.component import InfraValidator
from components.pusher.component import Pusher
from components.statistics_gen import StatisticsGen
from components.tflite.component import TFLite
from components.trainer.component import Trainer
from components.transform import Transform
from pipeline import beam, fingerprint, stores
from pipeline.environment import Environment
from pipeline.recipe import PROJECT_ROOT, Recipe


def build(
    recipe: Recipe,
    environment: Environment,
    fingerprints: Mapping[str, fingerprint.Fingerprint],
    span: int | None,
    enable_cache: bool = True,
) -> tfx_pipeline.Pipeline:
    """The TFX pipeline of a recipe.

    Args:
        recipe: What to run.
        environment: Where to run it.
        fingerprints: By node name; each becomes a part of its node's cache key.
        span: The span of the input data that was resolved, if its path has one.
        enable_cache: Whether nodes may take their results from earlier runs.
    """
    settings = recipe.settings
    example_gen = ExampleGen(
        settings=settings.data,
        base_dir=str(PROJECT_ROOT),
        span=span,
        fingerprint=fingerprints["ExampleGen"].to_json(),
    )
    examples = example_gen.outputs["examples"]

    statistics_gen = StatisticsGen(examples=examples)
    statistics = statistics_gen.outputs["statistics"]

    schema_gen = _schema(recipe, statistics)
    schema = schema_gen.outputs["schema"]

    example_validator = ExampleValidator(statistics=statistics, schema=schema)
    data_gate = DataGate(
        anomalies=example_validator.outputs["anomalies"],
        examples=examples,
        schema=schema,
        on_anomaly=settings.gate.on_anomaly,
    )

    transform = Transform(
        examples=examples,
        schema=schema,
        preprocessing_fn=recipe.preprocessing_fn,
        params=settings.transform.params,
    )
    transform.add_upstream_node(data_gate)

    checkpoint_root = environment.state_root / recipe.name / "checkpoints" / fingerprints["Trainer"].digest
    trainer = _trainer(recipe, transform, examples, str(checkpoint_root))
    model = trainer.outputs["model"]

    baseline = Resolver(
        strategy_class=LatestOtherBlessedModelStrategy,
        candidate=model,
        model=Channel(type=Model),
        model_blessing=Channel(type=ModelBlessing),
        pushed_model=Channel(type=PushedModel),
    ).with_id("BaselineModel")
    evaluator = Evaluator(
        examples=examples,
        model=model,
        baseline_model=baseline.outputs["model"],
        label=settings.label,
        settings=settings.evaluator,
        sampled_rows=settings.infra_validator.requests,
    )

    tflite = _tflite(recipe, trainer, evaluator, transform)
    infra_validator = InfraValidator(
        model=model,
        model_blessing=evaluator.outputs["blessing"],
        evaluation=evaluator.outputs["evaluation"],
        name=recipe.name,
        settings=settings.infra_validator,
    )
    pusher = Pusher(
        model=model,
        model_blessing=evaluator.outputs["blessing"],
        infra_blessing=infra_validator.outputs["blessing"],
        tflite_model=tflite[0].outputs["tflite_model"] if tflite else None,
        base_directory=str(environment.serving_root / recipe.name),
        keep_versions=settings.pusher.keep_versions,
    )

    data = [example_gen, statistics_gen, schema_gen, example_validator, data_gate, transform]
    nodes = [*data, trainer, baseline, evaluator, *tflite, infra_validator, pusher]
    return _pipeline(recipe, environment, nodes, fingerprints, enable_cache)


def _schema(recipe: Recipe, statistics: BaseChannel) -> BaseNode:
    curated = recipe.curated_schema
    node = ImportSchemaGen(str(curated)) if curated else SchemaGen(statistics=statistics, infer_feature_shape=False)
    return node.with_id("SchemaGen")


def _trainer(recipe: Recipe, transform: Transform, examples: BaseChannel, checkpoint_root: str) -> Trainer:
    return Trainer(
        run_fn="components.trainer.run.run_fn",
        examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        raw_examples=examples,
        custom_config={
            "model_module": recipe.model_module,
            "label": recipe.settings.label,
            "trainer": recipe.settings.trainer.model_dump(mode="json"),
            # An interrupted training goes on only with the code and the settings that it began with.
            "checkpoint_root": checkpoint_root,
        },
    )


def _tflite(recipe: Recipe, trainer: Trainer, evaluator: Evaluator, transform: Transform) -> list[TFLite]:
    """The TF Lite node, or nothing where the recipe does not ask for it."""
    if recipe.settings.tflite.quantization == "none":
        return []
    return [
        TFLite(
            model=trainer.outputs["model"],
            model_blessing=evaluator.outputs["blessing"],
            transformed_examples=transform.outputs["transformed_examples"],
            transform_graph=transform.outputs["transform_graph"],
            name=recipe.name,
            label=recipe.settings.label,
            settings=recipe.settings.tflite,
        )
    ]


def _pipeline(
    recipe: Recipe,
    environment: Environment,
    nodes: list[BaseNode],
    fingerprints: Mapping[str, fingerprint.Fingerprint],
    enable_cache: bool,
) -> tfx_pipeline.Pipeline:
    for node in nodes:
        if node.id in fingerprints:
            node.exec_properties[fingerprint.PROPERTY] = fingerprints[node.id].to_json()
    return tfx_pipeline.Pipeline(
        pipeline_name=recipe.name,
        pipeline_root=str(environment.pipeline_root / recipe.name),
        components=nodes,
        enable_cache=enable_cache,
        metadata_connection_config=stores.connection(environment),
        beam_pipeline_args=beam.options(environment.beam),
    )
