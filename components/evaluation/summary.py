"""What the Evaluator found, and how sure it is, as plain data that can be read without TensorFlow."""

from __future__ import annotations

import math
from typing import Any

import tensorflow_model_analysis as tfma

from components.evaluation.confidence import Confidence, measure_confidence
from components.evaluation.predictions import PredictionsTable, text_of
from components.evaluation.settings import EvaluatorSettings, MetricBar
from contracts.evaluation import Bar, Metric, Slice, Summary

BASELINE_NAME = "baseline"
CANDIDATE_NAME = "candidate"
ROWS_METRIC = "example_count"

ValuedSliceKey = tuple[tuple[str, Any], ...]


def summarize(evaluation_path: str, settings: EvaluatorSettings, table: PredictionsTable) -> Summary:
    """Reads TFMA's output.

    Args:
        evaluation_path: Its folder.
        settings: What was measured.
        table: The rows' labels and predictions, for exact areas under curves, which the bars then judge, and intervals.

    Returns:
        The summary; of slices those of at least `min_slice_rows` rows.
    """
    validation = tfma.load_validation_result(evaluation_path)
    failed = {
        failure.metric_key.name
        for slice_result in validation.metric_validations_per_slice
        if not slice_result.slice_key.single_slice_keys
        for failure in slice_result.failures
    }
    by_model = _metrics_by_slice(evaluation_path)
    candidate = by_model.get(CANDIDATE_NAME) or by_model[""]
    baseline = by_model.get(BASELINE_NAME, {})
    listed = [key for key, values in candidate.items() if key and values[ROWS_METRIC] >= settings.min_slice_rows]
    overall, *of_slices = measure_confidence(table, list(settings.metrics), [(), *map(_texts, listed)])
    slices = [_slice(key, candidate[key], settings, sure) for key, sure in zip(listed, of_slices, strict=True)]
    metrics = [
        _metric(
            name, candidate[()][name], baseline.get((), {}).get(name), overall, bar=bar, passed_tfma=name not in failed
        )
        for name, bar in settings.metrics.items()
    ]
    # TFMA can refuse a model for more than values, such as for rows that are not there.
    for_values_alone = validation.validation_ok or bool(failed)
    return Summary(
        blessed=for_values_alone and all(metric.passed for metric in metrics),
        rows=int(candidate[()][ROWS_METRIC]),
        metrics=metrics,
        slices=sorted(slices, key=lambda part: (-part.rows, part.slice)),
    )


def _metric(
    name: str, value: float, baseline: float | None, sure: Confidence, *, bar: MetricBar, passed_tfma: bool
) -> Metric:
    theirs, theirs_baseline = _finite(value), _finite(baseline)
    shown, shown_baseline = sure.value(name, theirs), sure.value(name, theirs_baseline, of_baseline=True)
    same = (shown, shown_baseline) == (theirs, theirs_baseline)
    return Metric(
        name=name,
        value=shown,
        interval=sure.interval(name, shown),
        baseline=shown_baseline,
        difference=sure.difference(name, shown, shown_baseline),
        no_interval=sure.no_interval(name, shown),
        passed=passed_tfma if same or shown is None else _reaches(bar, shown, shown_baseline),
        bar=Bar(**bar.model_dump()),
    )


def _reaches(bar: MetricBar, value: float, baseline: float | None) -> bool:
    """Whether a value reaches its bar, as TFMA judges its own."""
    if bar.lower_bound is not None and value < bar.lower_bound:
        return False
    if bar.upper_bound is not None and value > bar.upper_bound:
        return False
    if bar.max_loss is None or baseline is None:
        return True
    loss = baseline - value if bar.direction == "higher_is_better" else value - baseline
    return loss <= bar.max_loss


def _slice(key: ValuedSliceKey, values: dict[str, float], settings: EvaluatorSettings, sure: Confidence) -> Slice:
    metrics = {name: sure.value(name, _finite(values[name])) for name in settings.metrics}
    return Slice(
        slice=" and ".join(f"{feature}={value}" for feature, value in _texts(key)),
        rows=int(values[ROWS_METRIC]),
        metrics=metrics,
        intervals={name: sure.interval(name, value) for name, value in metrics.items()},
        no_intervals={name: why for name, value in metrics.items() if (why := sure.no_interval(name, value))},
    )


def _texts(key: ValuedSliceKey) -> list[tuple[str, str]]:
    return [(feature, text_of(value)) for feature, value in key]


def _metrics_by_slice(evaluation_path: str) -> dict[str, dict[ValuedSliceKey, dict[str, float]]]:
    by_model: dict[str, dict[ValuedSliceKey, dict[str, float]]] = {}
    for record in tfma.load_metrics(evaluation_path):
        key = tuple((single.column, _value(single)) for single in record.slice_key.single_slice_keys)
        for metric in record.metric_keys_and_values:
            if metric.key.is_diff or metric.value.WhichOneof("type") != "double_value":
                continue
            of_model = by_model.setdefault(metric.key.model_name, {})
            of_model.setdefault(key, {})[metric.key.name] = metric.value.double_value.value
    return by_model


def _value(single: Any) -> Any:
    kind = single.WhichOneof("kind")
    return getattr(single, kind) if kind else None


def _finite(value: float | None) -> float | None:
    """None for NaN and infinity, which are not JSON: rows of one class only have no AUC."""
    return value if value is not None and math.isfinite(value) else None
