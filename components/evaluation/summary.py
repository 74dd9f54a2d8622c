"""What the Evaluator found, as plain data that can be read without TensorFlow."""

from __future__ import annotations

import math
from typing import Any

import tensorflow_model_analysis as tfma

from components.evaluation import confidence
from components.evaluation.confidence import Confidence
from components.evaluation.kept import Kept, text_of
from components.evaluation.settings import EvaluatorSettings

BASELINE_NAME = "baseline"
CANDIDATE_NAME = "candidate"
ROWS_METRIC = "example_count"

SliceKey = tuple[tuple[str, Any], ...]


def summarize(evaluation_path: str, settings: EvaluatorSettings, kept: Kept) -> dict[str, Any]:
    """Reads TFMA's output.

    Args:
        evaluation_path: Its folder.
        settings: What was measured.
        kept: The rows' labels and predictions, for the intervals.

    Returns:
        `blessed`: whether every bar was met; `rows`: rows of the evaluation split; `metrics`: for each metric its
        value, its 95 % confidence `interval` or None, its bars, the baseline's value or None, the `difference` from it
        with its interval or None, and whether it passed; `slices`: for each slice of at least `min_slice_rows` rows its
        key, rows, metrics and their `intervals`, largest first. For intervals see `intervals.Interval`.
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
    overall, *of_slices = confidence.measure(kept, list(settings.metrics), [(), *map(_texts, listed)])
    return {
        "blessed": validation.validation_ok,
        "rows": int(candidate[()][ROWS_METRIC]),
        "metrics": [
            _judged(name, candidate[()][name], baseline.get((), {}).get(name), overall)
            | {"passed": name not in failed, "bar": bar.model_dump()}
            for name, bar in settings.metrics.items()
        ],
        "slices": sorted(
            (_slice(key, candidate[key], settings, sure) for key, sure in zip(listed, of_slices, strict=True)),
            key=lambda entry: (-entry["rows"], entry["slice"]),
        ),
    }


def _judged(name: str, value: float, baseline: float | None, sure: Confidence) -> dict[str, Any]:
    return {
        "name": name,
        "value": _defined(value),
        "interval": sure.interval(name, _defined(value)),
        "baseline": _defined(baseline),
        "difference": sure.difference(name, _defined(value), _defined(baseline)),
    }


def _slice(key: SliceKey, values: dict[str, float], settings: EvaluatorSettings, sure: Confidence) -> dict[str, Any]:
    metrics = {name: _defined(values[name]) for name in settings.metrics}
    return {
        "slice": " and ".join(f"{feature}={value}" for feature, value in _texts(key)),
        "rows": int(values[ROWS_METRIC]),
        "metrics": metrics,
        "intervals": {name: sure.interval(name, value) for name, value in metrics.items()},
    }


def _texts(key: SliceKey) -> list[tuple[str, str]]:
    return [(feature, text_of(value)) for feature, value in key]


def _metrics_by_slice(evaluation_path: str) -> dict[str, dict[SliceKey, dict[str, float]]]:
    found: dict[str, dict[SliceKey, dict[str, float]]] = {}
    for record in tfma.load_metrics(evaluation_path):
        key = tuple((single.column, _value(single)) for single in record.slice_key.single_slice_keys)
        for metric in record.metric_keys_and_values:
            if metric.key.is_diff or metric.value.WhichOneof("type") != "double_value":
                continue
            of_model = found.setdefault(metric.key.model_name, {})
            of_model.setdefault(key, {})[metric.key.name] = metric.value.double_value.value
    return found


def _value(single: Any) -> Any:
    kind = single.WhichOneof("kind")
    return getattr(single, kind) if kind else None


def _defined(value: float | None) -> float | None:
    """None for NaN and infinity, which are not JSON: rows of one class only have no AUC."""
    return value if value is not None and math.isfinite(value) else None
