"""What TFMA measured, and how certain it is, as plain data."""

from __future__ import annotations

import math
from typing import Any

import tensorflow_model_analysis as tfma

from components.evaluation.blessing import Decision, Measured
from components.evaluation.confidence import Confidence, measure_confidence
from components.evaluation.levels import LevelsBySlice
from components.evaluation.predictions import PredictionsTable, SliceKey, text_of
from components.evaluation.settings import EvaluatorSettings, MetricBar
from contracts.evaluation import Bar, Difference, Metric, Slice, Summary

BASELINE_NAME = "baseline"
CANDIDATE_NAME = "candidate"
ROWS_METRIC = "example_count"

ValuedSliceKey = tuple[tuple[str, Any], ...]


def measure(
    evaluation_path: str,
    settings: EvaluatorSettings,
    table: PredictionsTable,
    reference: PredictionsTable | None = None,
    levels: LevelsBySlice | None = None,
) -> Measured:
    """Reads TFMA's output.

    Args:
        evaluation_path: The folder of TFMA's output.
        settings: The metrics, bars and slices.
        table: The rows' labels and predictions, for intervals and for exact areas under curves, which are then judged.
        reference: The same rows with the best model served so far as the baseline, if that is a different model.
        levels: The scores of all rows, for exact areas where the table holds only a part of them.

    Returns:
        The measurements to judge, with the largest slices first.
    """
    by_model = _metrics_by_slice(evaluation_path)
    candidate = by_model.get(CANDIDATE_NAME) or by_model[""]
    baseline = by_model.get(BASELINE_NAME, {})
    largest_first = sorted(filter(None, candidate), key=lambda key: (-candidate[key][ROWS_METRIC], _name(key)))
    judged = [key for key in largest_first if candidate[key][ROWS_METRIC] >= settings.min_slice_rows]
    keys: list[SliceKey] = [(), *map(_texts, judged)]
    overall, *of_slices = measure_confidence(table, list(settings.metrics), keys, levels)
    from_reference = _differences(reference, list(settings.metrics)) if reference else {}
    return Measured(
        rows=int(candidate[()][ROWS_METRIC]),
        metrics=[
            _metric(name, bar, candidate[()][name], baseline.get((), {}).get(name), overall).model_copy(
                update={"reference_difference": from_reference.get(name)}
            )
            for name, bar in settings.metrics.items()
        ],
        slices=[
            _slice(key, candidate[key], baseline.get(key, {}), settings, confidence)
            for key, confidence in zip(judged, of_slices, strict=True)
        ],
        small_slices=[(_name(key), int(candidate[key][ROWS_METRIC])) for key in largest_first[len(judged) :]],
        fault=_fault(evaluation_path),
    )


def _differences(table: PredictionsTable, names: list[str]) -> dict[str, Difference]:
    """The differences between the table's two models, by metric, if they can be computed."""
    [confidence] = measure_confidence(table, names, [()])
    return {
        name: Difference(value=estimate.value, **dict(interval))
        for name, estimate in confidence.differences.items()
        if (interval := estimate.interval(estimate.value, confidence.sampling))
    }


def summarize(measured: Measured, decision: Decision) -> Summary:
    """What was measured and decided, as `summary.json` holds it."""
    return Summary(
        blessed=decision.blessed,
        rows=measured.rows,
        metrics=decision.metrics,
        slices=decision.slices,
        undecided=decision.outcome == "undecided",
        reason=decision.reason,
        not_judged=decision.not_judged,
    )


def _fault(evaluation_path: str) -> str:
    """Why TFMA refuses a model other than for its values; missing bars are not a fault."""
    missing = tfma.load_validation_result(evaluation_path).missing_slices
    return "TFMA found no rows to hold the metrics against their bars" if missing else ""


def _metric(name: str, bar: MetricBar, value: float, baseline: float | None, confidence: Confidence) -> Metric:
    shown = confidence.value(name, _finite(value))
    shown_baseline = confidence.value(name, _finite(baseline), of_baseline=True)
    return Metric(
        name=name,
        value=shown,
        interval=confidence.interval(name, shown),
        baseline=shown_baseline,
        difference=confidence.difference(name, shown, shown_baseline),
        no_interval=confidence.no_interval(name, shown),
        bar=Bar(**bar.model_dump(exclude={"slices"})),
    )


def _slice(
    key: ValuedSliceKey,
    values: dict[str, float],
    baseline: dict[str, float],
    settings: EvaluatorSettings,
    confidence: Confidence,
) -> Slice:
    metrics = {name: confidence.value(name, _finite(values[name])) for name in settings.metrics}
    of_baseline = {
        name: confidence.value(name, _finite(baseline.get(name)), of_baseline=True) for name in settings.metrics
    }
    return Slice(
        slice=_name(key),
        rows=int(values[ROWS_METRIC]),
        features=[feature for feature, _ in key],
        metrics=metrics,
        intervals={name: confidence.interval(name, value) for name, value in metrics.items()},
        no_intervals={name: why for name, value in metrics.items() if (why := confidence.no_interval(name, value))},
        differences={name: confidence.difference(name, value, of_baseline[name]) for name, value in metrics.items()},
    )


def _name(key: ValuedSliceKey) -> str:
    return " and ".join(f"{feature}={value}" for feature, value in _texts(key))


def _texts(key: ValuedSliceKey) -> tuple[tuple[str, str], ...]:
    return tuple((feature, text_of(value)) for feature, value in key)


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
    """None for NaN and infinity, which are not JSON; for example, rows of a single class have no AUC."""
    return value if value is not None and math.isfinite(value) else None
