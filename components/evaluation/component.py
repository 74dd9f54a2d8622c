"""The Evaluator: TFMA's metrics, slices and thresholds, a table of the predictions, and what they say as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tensorflow_model_analysis as tfma
from tfx.components.evaluator import constants
from tfx.dsl.components.base import base_beam_executor, base_component, executor_spec
from tfx.types import (
    Artifact,
    BaseChannel,
    Channel,
    artifact_utils,
    component_spec,
    standard_artifacts,
    standard_component_specs,
)
from tfx.utils import path_utils, proto_utils
from tfx.utils.typing_utils import ArtifactMultiDict as Artifacts

from components.artifacts import split_pattern
from components.evaluation import insights, recording, summary, tfma_run
from components.evaluation.predictions import PredictionsTable
from components.evaluation.settings import PREDICTIONS_FILE, EvaluatorSettings, MetricBar
from contracts.evaluation import INSIGHTS_FILE, SUMMARY_FILE
from contracts.file_names import SAMPLE_FILE
from contracts.model_card import read_card


class Executor(base_beam_executor.BaseBeamExecutor):
    """TFMA's evaluation, with `summary.json`, `insights.json` and the predictions they are from beside TFMA's files."""

    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:  # noqa: N802
        """Evaluates the candidate and the baseline, where there is one, and writes the verdict on the candidate.

        Args:
            input_dict: `examples` and `model`, one artifact each; `baseline_model`, one or none.
            output_dict: `evaluation` and `blessing`, one artifact each.
            exec_properties: See `EvaluatorSpec`.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        evaluation = artifact_utils.get_single_instance(output_dict["evaluation"])
        # By whether it is the baseline.
        models = {name == "baseline_model": _saved_model(input_dict[name]) for name in MODELS if input_dict.get(name)}
        config = proto_utils.json_to_proto(exec_properties["eval_config"], tfma.EvalConfig())
        config = tfma_run.complete_config(config, has_baseline=True in models)
        predictions, sampled_rows = Path(evaluation.uri, PREDICTIONS_FILE), exec_properties["sampled_rows"]
        source = recording.Source.of(config)
        recorders = [recording.table_recorder(str(predictions), source)]
        if sampled_rows:
            sample = str(Path(evaluation.uri, SAMPLE_FILE))
            recorders.append(recording.sample_recorder(sample, sampled_rows, source.candidate))
        examples = split_pattern(artifact_utils.get_single_instance(input_dict["examples"]), "eval")
        with self._make_beam_pipeline() as pipeline:
            tfma_run.evaluate(pipeline, examples, models, config, recorders, evaluation.uri)
        table = recording.read_table(str(predictions))
        blessed = _describe(evaluation.uri, table, exec_properties["settings"], models[False])
        if tfma_run.has_bars(config):
            _bless(input_dict, artifact_utils.get_single_instance(output_dict["blessing"]), blessed)


MODELS = ("model", "baseline_model")


def _saved_model(models: list[Artifact]) -> str:
    model = artifact_utils.get_single_instance(models)
    return str(path_utils.serving_model_path(model.uri, path_utils.is_old_model_artifact(model)))


def _bless(input_dict: Artifacts, blessing: Artifact, blessed: bool) -> None:
    """Notes the verdict as TFX's own Evaluator does."""
    for name, prefix in zip(MODELS, ("current", "baseline"), strict=True):
        for model in input_dict.get(name, []):
            blessing.set_string_custom_property(f"{prefix}_model", model.uri)
            blessing.set_int_custom_property(f"{prefix}_model_id", model.id)
    Path(blessing.uri, constants.BLESSED_FILE_NAME if blessed else constants.NOT_BLESSED_FILE_NAME).touch()
    blessing.set_int_custom_property(constants.ARTIFACT_PROPERTY_BLESSED_KEY, int(blessed))


def _describe(evaluation: str, table: PredictionsTable, settings: str, model: str) -> bool:
    """Writes what the evaluation says as plain JSON, and returns whether every bar was reached."""
    summarized = summary.summarize(evaluation, EvaluatorSettings.model_validate_json(settings), table)
    Path(evaluation, SUMMARY_FILE).write_text(summarized.model_dump_json(indent=2), encoding="utf-8")
    # Thousands of numbers: not one a line.
    described = insights.describe(table, read_card(Path(model)).class_names)
    Path(evaluation, INSIGHTS_FILE).write_text(described.model_dump_json(), encoding="utf-8")
    return summarized.blessed


class EvaluatorSpec(standard_component_specs.EvaluatorSpec):
    """Stock's inputs and outputs, with the recipe's settings as a parameter."""

    PARAMETERS = {  # noqa: RUF012 (TFX reads a plain dict)
        standard_component_specs.EVAL_CONFIG_KEY: component_spec.ExecutionParameter(type=tfma.EvalConfig),
        standard_component_specs.EXAMPLE_SPLITS_KEY: component_spec.ExecutionParameter(type=str),
        "settings": component_spec.ExecutionParameter(type=str),
        "sampled_rows": component_spec.ExecutionParameter(type=int),
    }


class Evaluator(base_component.BaseComponent):
    """Evaluates the candidate on the raw `eval` split, against its bars and against the baseline model.

    Args:
        examples: Raw Examples with an `eval` split.
        model: The candidate.
        baseline_model: The model it must not fall behind; may resolve to none.
        label: The transformed feature that is the label.
        settings: Metrics, bars and slices.
        sampled_rows: Of how many rows the candidate's predictions are kept with the evaluation.
    """

    SPEC_CLASS = EvaluatorSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)

    def __init__(
        self,
        examples: BaseChannel,
        model: BaseChannel,
        baseline_model: BaseChannel,
        label: str,
        settings: EvaluatorSettings,
        sampled_rows: int,
    ) -> None:
        super().__init__(
            EvaluatorSpec(
                examples=examples,
                model=model,
                baseline_model=baseline_model,
                eval_config=eval_config(label, settings),
                example_splits=json.dumps(["eval"]),
                settings=settings.model_dump_json(),
                sampled_rows=sampled_rows,
                evaluation=Channel(type=standard_artifacts.ModelEvaluation),
                blessing=Channel(type=standard_artifacts.ModelBlessing),
            )
        )


def eval_config(label: str, settings: EvaluatorSettings) -> tfma.EvalConfig:
    """TFMA's configuration: each metric under its class name, the overall slice always first."""
    metrics = [
        tfma.MetricConfig(class_name=name, config=json.dumps({"name": name}), per_slice_thresholds=_thresholds(bar))
        for name, bar in settings.metrics.items()
    ]
    return tfma.EvalConfig(
        model_specs=[
            tfma.ModelSpec(
                signature_name="serving_default",
                label_key=label,
                prediction_key=settings.prediction_key,
                example_weight_key=settings.example_weight,
                # Only the label: transformed features would hide the raw values that the slices are cut by.
                preprocessing_function_names=["transform_label"],
            )
        ],
        slicing_specs=[tfma.SlicingSpec(), *(tfma.SlicingSpec(feature_keys=keys) for keys in settings.slices)],
        metrics_specs=[
            # Rows are counted, whatever they weigh.
            tfma.MetricsSpec(
                metrics=[tfma.MetricConfig(class_name="ExampleCount")],
                example_weights=tfma.ExampleWeightOptions(unweighted=True),
            ),
            tfma.MetricsSpec(metrics=metrics),
        ],
    )


def _thresholds(bar: MetricBar) -> list[tfma.PerSliceMetricThreshold]:
    """The bar on the overall slice; slices of their own have too few rows to be held to it."""
    if not bar.gates:
        return []
    overall = tfma.PerSliceMetricThreshold(slicing_specs=[tfma.SlicingSpec()])
    threshold = overall.threshold
    if bar.lower_bound is not None:
        threshold.value_threshold.lower_bound.value = bar.lower_bound
    if bar.upper_bound is not None:
        threshold.value_threshold.upper_bound.value = bar.upper_bound
    if bar.max_loss is not None:
        higher = bar.direction == "higher_is_better"
        threshold.change_threshold.direction = (
            tfma.MetricDirection.HIGHER_IS_BETTER if higher else tfma.MetricDirection.LOWER_IS_BETTER
        )
        threshold.change_threshold.absolute.value = -bar.max_loss if higher else bar.max_loss
    return [overall]
