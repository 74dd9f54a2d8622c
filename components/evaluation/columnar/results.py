"""TFMA's results from sums: derived metrics, differences from the baseline, validation, and the files it writes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tensorflow as tf
from tensorflow_model_analysis import constants
from tensorflow_model_analysis.evaluators import metrics_plots_and_validations_evaluator as evaluator
from tensorflow_model_analysis.evaluators import metrics_validator
from tensorflow_model_analysis.metrics import metric_specs, metric_types
from tensorflow_model_analysis.proto import config_pb2
from tensorflow_model_analysis.utils import model_util
from tensorflow_model_analysis.writers import eval_config_writer
from tensorflow_model_analysis.writers import metrics_plots_and_validations_writer as writer

from components.engine import NotColumnar
from components.evaluation.columnar.slices import SliceKey
from components.evaluation.columnar.sums import MetricsDict

KINDS: dict[str, tuple[type, Callable[..., Any], tuple[Any, ...]]] = {
    constants.METRICS_KEY: (metric_types.MetricKey, writer.convert_slice_metrics_to_proto, ([],)),
    constants.PLOTS_KEY: (metric_types.PlotKey, writer.convert_slice_plots_to_proto, ([],)),
    constants.ATTRIBUTIONS_KEY: (metric_types.AttributionsKey, writer.convert_slice_attributions_to_proto, ()),
}
"""What a slice has, by the name of its files: the type of its keys, what makes the proto, and its further arguments."""


def computations(config: config_pb2.EvalConfig) -> Any:
    """TFMA's computations for a configuration, those that need rows apart from those that need their results.

    Raises:
        NotColumnar: The configuration asks for something that is not computed here.
    """
    options = config.options
    if options.compute_confidence_intervals.value or options.min_slice_size.value > 1 or config.cross_slicing_specs:
        raise NotColumnar("the configuration has options or cross slices")
    if any(spec.query_key for spec in config.metrics_specs):
        raise NotColumnar("a metric is computed by query")
    separated = evaluator._filter_and_separate_computations(
        metric_specs.to_computations(config.metrics_specs, eval_config=config)
    )
    if separated.cross_slice_computations or separated.ci_derived_computations:
        raise NotColumnar("a metric compares slices")
    for computation in separated.non_derived_computations:
        for preprocessor in computation.preprocessors or ():
            if type(preprocessor) is not metric_types.StandardMetricInputsPreprocessor:
                raise NotColumnar(f"a metric prepares rows by {type(preprocessor).__name__}")
    return separated


def write(
    folder: str,
    config: config_pb2.EvalConfig,
    models: Mapping[str, str],
    derived: Iterable[Any],
    sliced: Iterable[tuple[SliceKey, MetricsDict]],
) -> None:
    """Writes what `tfma.ExtractEvaluateAndWriteResults` writes.

    Args:
        folder: The folder for TFMA's results.
        config: A complete configuration.
        models: The SavedModels by name, for display.
        derived: TFMA's derived computations.
        sliced: The metrics that the rows gave, by slice.
    """
    baseline = model_util.get_baseline_model_spec(config)
    results = [(key, _completed(metrics, derived, baseline.name if baseline else None)) for key, metrics in sliced]
    kinds = {}
    for name, (kind, convert, arguments) in KINDS.items():
        kinds[name] = [evaluator._filter_by_key_type(result, kind) for result in results]
        path = os.path.join(folder, f"{name}-00000-of-00001.tfrecord")
        _write_records(path, [convert(of_slice, *arguments) for of_slice in kinds[name]])
    combine = writer.CombineValidations(config)
    validation = combine.create_accumulator()
    for of_slice in kinds[constants.METRICS_KEY]:
        validation = combine.add_input(validation, metrics_validator.validate_metrics(of_slice, config))
    _write_records(os.path.join(folder, f"{constants.VALIDATIONS_KEY}.tfrecord"), [combine.extract_output(validation)])
    described = eval_config_writer._serialize_eval_run(config, "<user provided PCollection>", "<unknown>", dict(models))
    with tf.io.gfile.GFile(os.path.join(folder, "eval_config.json"), "w") as file:
        file.write(described)


def _completed(metrics: MetricsDict, derived: Iterable[Any], baseline: str | None) -> MetricsDict:
    """With derived metrics and the differences from the baseline, and without what is only needed for them."""
    for computation in derived:
        metrics |= computation.result(metrics)
    if baseline is not None:
        metrics |= {
            key.make_diff_key(): value - metrics[key.make_baseline_key(baseline)]
            for key, value in metrics.items()
            if not evaluator._is_private_metrics(key)
            and not key.is_diff
            and key.model_name != baseline
            and key.make_baseline_key(baseline) in metrics
            and evaluator._is_metric_diffable(value)
        }
    return {key: value for key, value in metrics.items() if not evaluator._is_private_metrics(key)}


def _write_records(path: str, protos: Iterable[Any]) -> None:
    with tf.io.TFRecordWriter(path) as file:
        for proto in protos:
            file.write(proto.SerializeToString())
