"""The Evaluator component: TFMA's configuration, made from a recipe's settings."""

from __future__ import annotations

import json

import tensorflow_model_analysis as tfma
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import BaseChannel, Channel, component_spec, standard_artifacts, standard_component_specs

from components.evaluation.executor import Executor
from components.evaluation.settings import EvaluatorSettings, MetricBar


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
    metrics = [tfma.MetricConfig(class_name="ExampleCount")]
    metrics += [
        tfma.MetricConfig(class_name=name, config=json.dumps({"name": name}), per_slice_thresholds=_thresholds(bar))
        for name, bar in settings.metrics.items()
    ]
    return tfma.EvalConfig(
        model_specs=[
            tfma.ModelSpec(
                signature_name="serving_default",
                label_key=label,
                prediction_key=settings.prediction_key,
                # Only the label: transformed features would hide the raw values that the slices are cut by.
                preprocessing_function_names=["transform_label"],
            )
        ],
        slicing_specs=[tfma.SlicingSpec(), *(tfma.SlicingSpec(feature_keys=keys) for keys in settings.slices)],
        metrics_specs=[tfma.MetricsSpec(metrics=metrics)],
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
