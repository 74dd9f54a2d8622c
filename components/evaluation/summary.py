"""What the Evaluator found, as plain data that can be read without TensorFlow."""

from __future__ import annotations

import math
from typing import Any

import tensorflow_model_analysis as tfma

from components.evaluation.settings import EvaluatorSettings, MetricBar

BASELINE_NAME = "baseline"
CANDIDATE_NAME = "candidate"
ROWS_METRIC = "example_count"


def summarize(evaluation_path: str, settings: EvaluatorSettings) -> dict[str, Any]:
    """Reads TFMA's output.

    Returns:
        `blessed`: whether every bar was met; `rows`: rows of the evaluation split; `metrics`: for each metric its
        value, its bars, the baseline's value or None, and whether it passed; `slices`: for each slice of at least
        `min_slice_rows` rows its key, rows and metrics, largest first.
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
    overall = candidate[()]
    return {
        "blessed": validation.validation_ok,
        "rows": int(overall[ROWS_METRIC]),
        "metrics": [
            _judged(name, overall[name], bar, baseline.get((), {}).get(name), name not in failed)
            for name, bar in settings.metrics.items()
        ],
        "slices": _slices(candidate, settings),
    }


def _judged(name: str, value: float, bar: MetricBar, baseline: float | None, passed: bool) -> dict[str, Any]:
    return {
        "name": name,
        "value": _defined(value),
        "baseline": _defined(baseline),
        "passed": passed,
        "bar": bar.model_dump(),
    }


def _slices(metrics: dict[tuple[Any, ...], dict[str, float]], settings: EvaluatorSettings) -> list[dict[str, Any]]:
    found = [
        {
            "slice": " and ".join(f"{feature}={_shown(value)}" for feature, value in key),
            "rows": int(values[ROWS_METRIC]),
            "metrics": {name: _defined(values[name]) for name in settings.metrics},
        }
        for key, values in metrics.items()
        if key and values[ROWS_METRIC] >= settings.min_slice_rows
    ]
    return sorted(found, key=lambda entry: (-entry["rows"], entry["slice"]))


def _metrics_by_slice(evaluation_path: str) -> dict[str, dict[tuple[Any, ...], dict[str, float]]]:
    found: dict[str, dict[tuple[Any, ...], dict[str, float]]] = {}
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


def _shown(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
