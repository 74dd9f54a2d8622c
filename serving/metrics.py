"""Counts and latencies, as Prometheus text under TF Serving's names.

The names, labels, units and bucket limits are those of tensorflow_serving/servables/tensorflow/util.cc; `/` of
TensorFlow's metric names becomes `:` as in TF Serving's exporter.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

DEFAULT_PATH = "/monitoring/prometheus/metrics"

# Label values come from clients, unknown model names included: beyond so many, the series are counted together.
MAX_SERIES = 1000
LONGEST_LABEL = 200
OTHER = "other"


def exponential_limits(scale: float, growth: float, count: int) -> tuple[float, ...]:
    """The `count` finite upper limits of TensorFlow's `Buckets::Exponential`: scale, scale * growth, …"""
    limits = [scale]
    while len(limits) < count:
        limits.append(limits[-1] * growth)
    return tuple(limits)


# 10 microseconds to about 20 minutes.
LATENCY_LIMITS = exponential_limits(10, 1.8, 33)
EXAMPLE_LIMITS = exponential_limits(1, 2, 15)


class Counter:
    """A count for each combination of label values.

    Attributes:
        name: TensorFlow's name, such as `/tensorflow/serving/request_count`.
        labels: The names of the labels.
    """

    kind = "counter"

    def __init__(self, name: str, labels: Sequence[str]) -> None:
        self.name = name
        self.labels = tuple(labels)
        self._lock = Lock()
        self._values: dict[tuple[str, ...], int] = {}

    def add(self, values: tuple[str, ...], amount: int = 1) -> None:
        """Adds to the series with these label values, in the order of `labels`."""
        with self._lock:
            count = self._values.get(values)
            if count is None:
                values = _bounded(self._values, values)
                count = self._values.get(values, 0)
            self._values[values] = count + amount

    def value(self, values: tuple[str, ...]) -> int:
        """The count of the series with these label values, 0 if there is none."""
        with self._lock:
            return self._values.get(values, 0)

    def total(self) -> int:
        """The count over all series."""
        with self._lock:
            return sum(self._values.values())

    def lines(self) -> list[str]:
        """The series in Prometheus' text format."""
        with self._lock:
            values = dict(self._values)
        name = prometheus_name(self.name)
        return [f"{name}{{{_labels(self.labels, series)}}} {count}" for series, count in values.items()]


class Gauge(Counter):
    """A value that goes up and down, for each combination of label values."""

    kind = "gauge"


@dataclass
class _Cell:
    counts: list[int]
    sum: float = 0.0


class Sampler:
    """A histogram for each combination of label values.

    Attributes:
        name: TensorFlow's name, such as `/tensorflow/serving/request_latency`.
        labels: The names of the labels.
        limits: Upper limits of the finite buckets, ascending; one more bucket takes what is above.
    """

    kind = "histogram"

    def __init__(self, name: str, labels: Sequence[str], limits: Sequence[float]) -> None:
        self.name = name
        self.labels = tuple(labels)
        self.limits = tuple(limits)
        self._lock = Lock()
        self._cells: dict[tuple[str, ...], _Cell] = {}

    def add(self, values: tuple[str, ...], sample: float) -> None:
        """Adds a sample to the series with these label values, in the order of `labels`."""
        bucket = bisect_left(self.limits, sample)
        with self._lock:
            cell = self._cells.get(values)
            if cell is None:
                empty = _Cell([0] * (len(self.limits) + 1))
                cell = self._cells.setdefault(_bounded(self._cells, values), empty)
            cell.counts[bucket] += 1
            cell.sum += sample

    def count(self, values: tuple[str, ...]) -> int:
        """The number of samples of the series with these label values, 0 if there is none."""
        with self._lock:
            cell = self._cells.get(values)
            return sum(cell.counts) if cell else 0

    def total(self) -> int:
        """The number of samples over all series."""
        with self._lock:
            return sum(sum(cell.counts) for cell in self._cells.values())

    def lines(self) -> list[str]:
        """The series in Prometheus' text format: cumulative buckets, then the sum and the count."""
        with self._lock:
            cells = [(series, list(cell.counts), cell.sum) for series, cell in self._cells.items()]
        name = prometheus_name(self.name)
        found = []
        for series, counts, total in cells:
            labels = _labels(self.labels, series)
            cumulative = 0
            for limit, count in zip([*(f"{limit:.6g}" for limit in self.limits), "+Inf"], counts, strict=True):
                cumulative += count
                found.append(f'{name}_bucket{{{labels},le="{limit}"}} {cumulative}')
            found += [f"{name}_sum{{{labels}}} {total:.15g}", f"{name}_count{{{labels}}} {cumulative}"]
        return found


class Metrics:
    """Everything that one server counts.

    Attributes:
        request_count: Requests by model and status name, such as `INVALID_ARGUMENT`.
        request_latency: Microseconds of answered requests by model, API (`Predict`) and entry point (`REST`, `GRPC`).
        runtime_latency: Microseconds in TensorFlow by model, API and runtime (`TF1`: a Session).
        example_counts: tf.Examples in each classify, regress or multi-inference request, by model.
        example_count_total: tf.Examples in all of them, by model.
        in_flight: Requests that are being answered, by entry point; ours alone, TF Serving has no such metric.
    """

    def __init__(self) -> None:
        self.request_count = Counter("/tensorflow/serving/request_count", ("model_name", "status"))
        self.request_latency = Sampler(
            "/tensorflow/serving/request_latency", ("model_name", "API", "entrypoint"), LATENCY_LIMITS
        )
        self.runtime_latency = Sampler(
            "/tensorflow/serving/runtime_latency", ("model_name", "API", "runtime"), LATENCY_LIMITS
        )
        self.example_counts = Sampler("/tensorflow/serving/request_example_counts", ("model",), EXAMPLE_LIMITS)
        self.example_count_total = Counter("/tensorflow/serving/request_example_count_total", ("model",))
        self.in_flight = Gauge("/millrace/serving/requests_in_flight", ("entrypoint",))

    def _all(self) -> list[Counter | Sampler]:
        found = [metric for metric in vars(self).values() if isinstance(metric, (Counter, Sampler))]
        return sorted(found, key=lambda metric: metric.name)

    def request(self, model: str, api: str, entrypoint: str, status: str, microseconds: float) -> None:
        """Records one request; as in TF Serving only answered ones (`OK`) have a latency."""
        self.request_count.add((model, status))
        if status == "OK":
            self.request_latency.add((model, api, entrypoint), microseconds)

    def examples(self, model: str, count: int) -> None:
        """Records the number of tf.Examples in a request."""
        self.example_counts.add((model,), count)
        self.example_count_total.add((model,), count)

    def value(self, name: str) -> int:
        """The sum over all series of the metric with TensorFlow's name `name`, 0 if there is none."""
        return next((metric.total() for metric in self._all() if metric.name == name), 0)

    def page(self) -> str:
        """All metrics that have a value, in Prometheus' text format."""
        found = []
        for metric in self._all():
            if lines := metric.lines():
                found += [f"# TYPE {prometheus_name(metric.name)} {metric.kind}", *lines]
        return "\n".join(found) + "\n"


def prometheus_name(name: str) -> str:
    """TensorFlow's metric name as Prometheus takes it: `/tensorflow/x` is `:tensorflow:x`."""
    return re.sub("[^a-zA-Z0-9_]", ":", name)


def _labels(names: Sequence[str], values: Sequence[str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _bounded(series: Mapping[tuple[str, ...], object], values: tuple[str, ...]) -> tuple[str, ...]:
    if values in series:
        return values
    values = tuple(value[:LONGEST_LABEL] for value in values)
    if values in series or len(series) < MAX_SERIES:
        return values
    return (OTHER,) * len(values)
