"""The Evaluator: TFMA's metrics, slices and thresholds, a table of the predictions, and a summary as JSON.

Without Beam where the environment names no runner and every metric is known to `columnar`; the results are the same.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tensorflow_model_analysis.constants import TF_GENERIC
from tensorflow_model_analysis.proto import config_pb2
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

from components.artifacts import split_files, split_pattern
from components.baseline import REFERENCE_PROPERTY
from components.engine import NotColumnar, is_columnar
from components.evaluation import blessing, insights, looks, recording, sample, summary, tfma_run
from components.evaluation.blessing import Decision
from components.evaluation.columnar import run as columnar
from components.evaluation.levels import LevelsBySlice
from components.evaluation.predictions import PredictionsTable
from components.evaluation.settings import (
    PREDICTIONS_FILE,
    REFERENCE_PREDICTIONS_FILE,
    EvaluatorSettings,
    MetricBar,
)
from components.progress import PROGRESS, RowProgress, counting_rows
from contracts.evaluation import INSIGHTS_FILE, SUMMARY_FILE, Summary
from contracts.file_names import SAMPLE_FILE
from contracts.model_card import read_card


class Executor(base_beam_executor.BaseBeamExecutor):
    """TFMA's evaluation, with `summary.json`, `insights.json` and the predictions behind them beside TFMA's files."""

    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:  # noqa: N802
        """Evaluates the candidate and the models that it is compared with, and writes the verdict on the candidate.

        Args:
            input_dict: `examples` and `model`, one artifact each; `baseline_model` and `reference_model`, one or none.
            output_dict: `evaluation` and `blessing`, one artifact each.
            exec_properties: See `EvaluatorSpec`, and `looks.EARLIER_LOOKS`, which is not in the cache key.
        """
        # Removed, because TFX publishes all properties that are left.
        looks_before = exec_properties.pop(looks.EARLIER_LOOKS, "[]")
        progress_path = exec_properties.pop(PROGRESS, None)
        self._log_startup(input_dict, output_dict, exec_properties)
        evaluation = artifact_utils.get_single_instance(output_dict["evaluation"])
        settings = EvaluatorSettings.model_validate_json(exec_properties["settings"])
        models = {name: _saved_model(input_dict[name]) for name in MODELS if input_dict.get(name)}
        with counting_rows(progress_path) as progress:
            table, reference, levels = self._evaluate(input_dict, models, evaluation.uri, exec_properties, progress)
        measured = summary.measure(evaluation.uri, settings, table, reference, levels)
        rows, ids = looks.rows_digest(table), _ids(input_dict)
        earlier = looks.earlier_looks(looks_before, rows, ids["model"], ids.get("baseline_model", 0))
        decision = blessing.decide(measured, settings, earlier)
        _describe(evaluation.uri, table, summary.summarize(measured, decision), models["model"])
        _bless(input_dict, artifact_utils.get_single_instance(output_dict["blessing"]), decision, rows)

    def _evaluate(
        self,
        input_dict: Artifacts,
        models: Models,
        folder: str,
        exec_properties: dict[str, Any],
        progress: RowProgress,
    ) -> tuple[PredictionsTable, PredictionsTable | None, LevelsBySlice]:
        """Evaluates the candidate and, if there are any, the baseline and the reference.

        Returns:
            The candidate's predictions beside the baseline's, the same beside the reference's, and what
            `columnar.evaluate` returns.
        """
        config = tfma_run.complete_config(_config(exec_properties), has_baseline="baseline_model" in models)
        predictions, of_reference = (str(Path(folder, name)) for name in (PREDICTIONS_FILE, REFERENCE_PREDICTIONS_FILE))
        sampled_rows, source = exec_properties["sampled_rows"], recording.Source.of(config)
        recorders = [recording.table_recorder(predictions, source)]
        if sampled_rows:
            recorders.append(sample.sample_recorder(str(Path(folder, SAMPLE_FILE)), sampled_rows, source.candidate))
        compared = {False: models["model"]} | ({True: models["baseline_model"]} if "baseline_model" in models else {})
        reference = models.get("reference_model")
        beside = recording.table_recorder(of_reference, replace(source, baseline=REFERENCE_NAME))
        also, further = ([beside], {REFERENCE_NAME: reference}) if reference else ([], {})
        files = _files(input_dict)
        levels = self._by_columns(files, compared, config, [*recorders, *also], folder, further, progress)
        if levels is None:
            with self._make_beam_pipeline() as pipeline:
                tfma_run.evaluate(pipeline, _pattern(input_dict), compared, config, recorders, folder)
            if reference:
                with self._make_beam_pipeline() as pipeline:
                    both, recorder = compared | {True: reference}, recording.table_recorder(of_reference, source)
                    tfma_run.predict(pipeline, _pattern(input_dict), both, config, [recorder])
        tables = [recording.read_table(path) for path in (predictions, *([of_reference] if reference else []))]
        return tables[0], tables[1] if reference else None, levels or {}

    def _by_columns(self, *arguments: Any) -> LevelsBySlice | None:
        """Does the work in this process; None if the environment or the configuration leaves it to Beam."""
        if not is_columnar(self._beam_pipeline_args):
            return None
        try:
            return columnar.evaluate(*arguments)
        except NotColumnar as why:
            logging.info("Evaluated by TFMA on Beam, not by columns: %s.", why)
            return None


REFERENCE_NAME = "reference"
"""The reference's name among TFMA's names of models, which are those of the candidate and the baseline."""

MODELS = ("model", "baseline_model", "reference_model")
Models = Mapping[str, str]
"""The folders of SavedModels, by the names of the Evaluator's inputs."""


def _saved_model(models: list[Artifact]) -> str:
    model = artifact_utils.get_single_instance(models)
    return str(path_utils.serving_model_path(model.uri, path_utils.is_old_model_artifact(model)))


def _files(input_dict: Artifacts) -> list[str]:
    return split_files(artifact_utils.get_single_instance(input_dict["examples"]), "eval")


def _pattern(input_dict: Artifacts) -> str:
    return split_pattern(artifact_utils.get_single_instance(input_dict["examples"]), "eval")


def _config(exec_properties: dict[str, Any]) -> config_pb2.EvalConfig:
    return proto_utils.json_to_proto(exec_properties["eval_config"], config_pb2.EvalConfig())


def _ids(input_dict: Artifacts) -> dict[str, int]:
    return {name: input_dict[name][0].id for name in MODELS if input_dict.get(name)}


def _bless(input_dict: Artifacts, verdict: Artifact, decision: Decision, rows: str) -> None:
    """Records the verdict as TFX's own Evaluator does, and what later candidates are judged by."""
    ids = _ids(input_dict)
    for name, prefix in zip(MODELS, ("current", "baseline"), strict=False):
        for model in input_dict.get(name, []):
            verdict.set_string_custom_property(f"{prefix}_model", model.uri)
            verdict.set_int_custom_property(f"{prefix}_model_id", model.id)
    best_before = ids.get("reference_model") or ids.get("baseline_model")
    best = ids["model"] if decision.shown_better or best_before is None else best_before
    verdict.set_int_custom_property(REFERENCE_PROPERTY, best)
    verdict.set_string_custom_property(looks.ROWS_PROPERTY, rows)
    verdict.set_int_custom_property(looks.NOT_WORSE_PROPERTY, int(decision.shown_not_worse))
    Path(verdict.uri, constants.BLESSED_FILE_NAME if decision.blessed else constants.NOT_BLESSED_FILE_NAME).touch()
    verdict.set_int_custom_property(constants.ARTIFACT_PROPERTY_BLESSED_KEY, int(decision.blessed))


def _describe(evaluation: str, table: PredictionsTable, summarized: Summary, model: str) -> None:
    """Writes the results of the evaluation as plain JSON."""
    described = insights.describe(table, read_card(Path(model)).class_names)
    if unseen := insights.unseen_classes(described):
        sentence = f"Not judged, because the evaluation split has no row of them: class {', '.join(unseen)}."
        summarized = summarized.model_copy(update={"not_judged": [*summarized.not_judged, sentence]})
    Path(evaluation, SUMMARY_FILE).write_text(summarized.model_dump_json(indent=2), encoding="utf-8")
    # Not indented: there are thousands of numbers.
    Path(evaluation, INSIGHTS_FILE).write_text(described.model_dump_json(), encoding="utf-8")


class EvaluatorSpec(standard_component_specs.EvaluatorSpec):
    """TFX's inputs and outputs, with the recipe's settings as a parameter."""

    PARAMETERS = {  # noqa: RUF012 (TFX reads a plain dict)
        standard_component_specs.EVAL_CONFIG_KEY: component_spec.ExecutionParameter(type=config_pb2.EvalConfig),
        standard_component_specs.EXAMPLE_SPLITS_KEY: component_spec.ExecutionParameter(type=str),
        "settings": component_spec.ExecutionParameter(type=str),
        "sampled_rows": component_spec.ExecutionParameter(type=int),
    }
    INPUTS = {  # noqa: RUF012 (TFX reads a plain dict)
        **standard_component_specs.EvaluatorSpec.INPUTS,
        "reference_model": component_spec.ChannelParameter(type=standard_artifacts.Model, optional=True),
    }


class Evaluator(base_component.BaseComponent):
    """Evaluates the candidate on the raw `eval` split, against its bars and against the baseline model.

    Args:
        examples: Raw Examples with an `eval` split.
        model: The candidate.
        baseline_model: The served model; may resolve to none.
        reference_model: The best model served so far, if that is a different one; may resolve to none.
        label: The transformed feature that is the label.
        settings: Metrics, bars and slices.
        sampled_rows: The number of rows whose predictions by the candidate are kept with the evaluation.
    """

    SPEC_CLASS = EvaluatorSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)

    def __init__(
        self,
        examples: BaseChannel,
        model: BaseChannel,
        baseline_model: BaseChannel,
        reference_model: BaseChannel,
        label: str,
        settings: EvaluatorSettings,
        sampled_rows: int,
    ) -> None:
        super().__init__(
            EvaluatorSpec(
                examples=examples,
                model=model,
                baseline_model=baseline_model,
                reference_model=reference_model,
                eval_config=eval_config(label, settings),
                example_splits=json.dumps(["eval"]),
                settings=settings.model_dump_json(),
                sampled_rows=sampled_rows,
                evaluation=Channel(type=standard_artifacts.ModelEvaluation),
                blessing=Channel(type=standard_artifacts.ModelBlessing),
            )
        )


def eval_config(label: str, settings: EvaluatorSettings) -> config_pb2.EvalConfig:
    """TFMA's configuration: each metric under its class name, the overall slice always first."""
    metrics = [
        config_pb2.MetricConfig(
            class_name=name, config=json.dumps({"name": name}), per_slice_thresholds=_thresholds(bar)
        )
        for name, bar in settings.metrics.items()
    ]
    return config_pb2.EvalConfig(
        model_specs=[
            config_pb2.ModelSpec(
                # Not as a Keras model, which this is, too: its outputs would be those before `serving_outputs`.
                model_type=TF_GENERIC,
                signature_name="serving_default",
                label_key=label,
                prediction_key=settings.prediction_key,
                example_weight_key=settings.example_weight,
                # Only the label: transformed features would hide the raw values by which slices are formed.
                preprocessing_function_names=["transform_label"],
            )
        ],
        slicing_specs=[
            config_pb2.SlicingSpec(),
            *(config_pb2.SlicingSpec(feature_keys=keys) for keys in settings.slices),
        ],
        metrics_specs=[
            # Rows are counted regardless of their weights.
            config_pb2.MetricsSpec(
                metrics=[config_pb2.MetricConfig(class_name="ExampleCount")],
                example_weights=config_pb2.ExampleWeightOptions(unweighted=True),
            ),
            config_pb2.MetricsSpec(metrics=metrics),
        ],
    )


def _thresholds(bar: MetricBar) -> list[config_pb2.PerSliceMetricThreshold]:
    """The bar on all rows, for readers of TFMA's own verdict; ours is made by `blessing.decide`."""
    if not bar.gates:
        return []
    overall = config_pb2.PerSliceMetricThreshold(slicing_specs=[config_pb2.SlicingSpec()])
    threshold = overall.threshold
    if bar.lower_bound is not None:
        threshold.value_threshold.lower_bound.value = bar.lower_bound
    if bar.upper_bound is not None:
        threshold.value_threshold.upper_bound.value = bar.upper_bound
    if bar.max_loss is not None:
        higher = bar.direction == "higher_is_better"
        threshold.change_threshold.direction = (
            config_pb2.MetricDirection.HIGHER_IS_BETTER if higher else config_pb2.MetricDirection.LOWER_IS_BETTER
        )
        threshold.change_threshold.absolute.value = -bar.max_loss if higher else bar.max_loss
    return [overall]
