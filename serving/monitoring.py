"""What is recorded about each request: counts and latencies as Prometheus text, and a line in the access log.

The names, labels, units and bucket limits are those of tensorflow_serving/servables/tensorflow/util.cc; `/` in
TensorFlow's metric names becomes `:`, as in TF Serving's exporter.
"""

from __future__ import annotations

import abc
import itertools
import logging
import re
import secrets
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from threading import Lock
from types import TracebackType
from typing import Generic, TypeVar

from serving.errors import Code, ServingError

DEFAULT_PATH = "/monitoring/prometheus/metrics"

# Label values come from clients, including unknown model names: beyond this many, the series are counted together.
MAX_SERIES = 1000
LONGEST_LABEL = 200
OTHER = "other"
# The log holds only this many characters of what a client sent.
LONGEST_TEXT = 200

_log = logging.getLogger("serving.access")
# An id is unique: its first half belongs to this process alone, its second half is a counter.
_FIRST_HALF = secrets.token_hex(8)
_numbers = itertools.count()
_GOOD_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

Labels = tuple[str, ...]
Cell = TypeVar("Cell")


def exponential_limits(scale: float, growth: float, count: int) -> tuple[float, ...]:
    """The `count` finite upper limits of TensorFlow's `Buckets::Exponential`: scale, scale * growth, …."""
    limits = [scale]
    while len(limits) < count:
        limits.append(limits[-1] * growth)
    return tuple(limits)


# 10 microseconds to about 20 minutes.
LATENCY_LIMITS = exponential_limits(10, 1.8, 33)
EXAMPLE_LIMITS = exponential_limits(1, 2, 15)


class Metric(abc.ABC, Generic[Cell]):
    """A series of values for each combination of label values; series beyond MAX_SERIES are recorded together.

    Attributes:
        kind: Prometheus' name for the type of the metric.
        name: TensorFlow's name, such as `/tensorflow/serving/request_count`.
        labels: The names of the labels.
    """

    kind: str

    def __init__(self, name: str, labels: Sequence[str]) -> None:
        self.name = name
        self.labels = tuple(labels)
        self._lock = Lock()
        self._cells: dict[Labels, Cell] = {}

    @abc.abstractmethod
    def total(self) -> int:
        """The total over all series."""

    def lines(self) -> list[str]:
        """The series in Prometheus' text format."""
        with self._lock:
            cells = list(self._cells.items())
        name = prometheus_name(self.name)
        text_lines: list[str] = []
        for values, cell in cells:
            labels = ",".join(f'{key}="{_escaped(value)}"' for key, value in zip(self.labels, values, strict=True))
            text_lines += self._samples(name, labels, cell)
        return text_lines

    @abc.abstractmethod
    def _samples(self, name: str, labels: str, cell: Cell) -> Iterator[str]:
        """The lines of one series."""

    def _bounded(self, values: Labels) -> Labels:
        """The labels under which a new series is recorded; the caller holds the lock."""
        values = tuple(value[:LONGEST_LABEL] for value in values)
        if values in self._cells or len(self._cells) < MAX_SERIES:
            return values
        return (OTHER,) * len(values)


class Counter(Metric[int]):
    """A count for each combination of label values."""

    kind = "counter"

    def add(self, values: Labels, amount: int = 1) -> None:
        """Adds to the series with these label values, in the order of `labels`."""
        with self._lock:
            count = self._cells.get(values)
            if count is None:
                values = self._bounded(values)
                count = self._cells.get(values, 0)
            self._cells[values] = count + amount

    def value(self, values: Labels) -> int:
        """The count of the series with these label values, 0 if there is none."""
        with self._lock:
            return self._cells.get(values, 0)

    def total(self) -> int:
        """The count over all series."""
        with self._lock:
            return sum(self._cells.values())

    def _samples(self, name: str, labels: str, cell: int) -> Iterator[str]:
        yield f"{name}{{{labels}}} {cell}"


class Gauge(Counter):
    """A value that goes up and down, for each combination of label values."""

    kind = "gauge"


class Histogram(Metric[list[float]]):
    """A histogram for each combination of label values: the counts of its buckets, followed by the sum of the samples.

    Attributes:
        limits: Upper limits of the finite buckets, ascending; one more bucket takes everything above.
    """

    kind = "histogram"

    def __init__(self, name: str, labels: Sequence[str], limits: Sequence[float]) -> None:
        super().__init__(name, labels)
        self.limits = tuple(limits)

    def add(self, values: Labels, sample: float) -> None:
        """Adds a sample to the series with these label values, in the order of `labels`."""
        bucket = bisect_left(self.limits, sample)
        with self._lock:
            cell = self._cells.get(values)
            if cell is None:
                cell = self._cells.setdefault(self._bounded(values), [0] * (len(self.limits) + 2))
            cell[bucket] += 1
            cell[-1] += sample

    def count(self, values: Labels) -> int:
        """The number of samples of the series with these label values, 0 if there is none."""
        with self._lock:
            return int(sum(self._cells.get(values, [0])[:-1]))

    def total(self) -> int:
        """The number of samples over all series."""
        with self._lock:
            return int(sum(sum(cell[:-1]) for cell in self._cells.values()))

    def _samples(self, name: str, labels: str, cell: list[float]) -> Iterator[str]:
        with self._lock:
            *counts, total = cell
        count: float = 0
        for limit, in_bucket in zip([*(f"{limit:.6g}" for limit in self.limits), "+Inf"], counts, strict=True):
            count += in_bucket
            yield f'{name}_bucket{{{labels},le="{limit}"}} {count}'
        yield f"{name}_sum{{{labels}}} {total:.15g}"
        yield f"{name}_count{{{labels}}} {count}"


class Metrics:
    """Everything that one server counts.

    Attributes:
        request_count: Requests by model and status name, such as `INVALID_ARGUMENT`.
        request_latency: Microseconds per answered request, by model, API (`Predict`) and entry point (`REST`, `GRPC`).
        runtime_latency: Microseconds in TensorFlow by model, API and runtime (`TF1`: a Session).
        example_counts: tf.Examples in each classify, regress or multi-inference request, by model.
        example_count_total: tf.Examples in all of those requests, by model.
        in_flight: Requests being answered, by entry point; TF Serving has no such metric.
    """

    def __init__(self) -> None:
        self.request_count = Counter("/tensorflow/serving/request_count", ("model_name", "status"))
        self.request_latency = Histogram(
            "/tensorflow/serving/request_latency", ("model_name", "API", "entrypoint"), LATENCY_LIMITS
        )
        self.runtime_latency = Histogram(
            "/tensorflow/serving/runtime_latency", ("model_name", "API", "runtime"), LATENCY_LIMITS
        )
        self.example_counts = Histogram("/tensorflow/serving/request_example_counts", ("model",), EXAMPLE_LIMITS)
        self.example_count_total = Counter("/tensorflow/serving/request_example_count_total", ("model",))
        self.in_flight = Gauge("/millrace/serving/requests_in_flight", ("entrypoint",))

    def _all(self) -> list[Metric[int] | Metric[list[float]]]:
        return sorted(vars(self).values(), key=lambda metric: str(metric.name))

    def request(self, model: str, api: str, entrypoint: str, status: str, microseconds: float) -> None:
        """Records one request; as in TF Serving, only answered ones (`OK`) have a latency."""
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
        page_lines = []
        for metric in self._all():
            if lines := metric.lines():
                page_lines += [f"# TYPE {prometheus_name(metric.name)} {metric.kind}", *lines]
        return "\n".join(page_lines) + "\n"


class Exchange:
    """One request at a port: in flight while it is answered, then in the metrics and the access log.

    The port sets `model`, `api` and `error` as soon as it knows them. A ServingError ends the `with` block and is
    stored in `error`; for any other exception that leaves the block nothing is recorded, unless `error` is set.

    Args:
        metrics: Where requests are counted.
        entrypoint: `REST` or `GRPC`.
        client_id: The request's id as the client gave it, or None.
        api: The API that is called, such as `Predict`.
        counted: Whether TensorFlow Serving's metrics count the request.

    Attributes:
        identity: The request's id.
        model: The model's name as the client wrote it.
        api: The API that is called.
        error: Why the request was refused, or None if it was answered.
    """

    def __init__(
        self, metrics: Metrics, entrypoint: str, client_id: str | None, api: str = "", counted: bool = True
    ) -> None:
        self.identity = request_id(client_id)
        self.model = ""
        self.api = api
        self.error: ServingError | None = None
        self._metrics = metrics
        self._entrypoint = entrypoint
        self._counted = counted

    def __enter__(self) -> Exchange:
        self._started = time.perf_counter_ns()
        self._metrics.in_flight.add((self._entrypoint,))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        self._metrics.in_flight.add((self._entrypoint,), -1)
        if isinstance(error, ServingError):
            self.error = error
        if error is None or self.error is not None:
            microseconds = (time.perf_counter_ns() - self._started) / 1000
            status = self.error.code if self.error else Code.OK
            if self._counted:
                self._metrics.request(self.model, self.api, self._entrypoint, status.name, microseconds)
            log_request(self.identity, self._entrypoint, self.api, self.model, microseconds / 1000, self.error)
        return isinstance(error, ServingError)


def prometheus_name(name: str) -> str:
    """Converts TensorFlow's metric name to Prometheus' form: `/tensorflow/x` is `:tensorflow:x`."""
    return re.sub("[^a-zA-Z0-9_]", ":", name)


def request_id(client_id: str | None) -> str:
    """The id that the client gave the request, unless it could forge log lines; otherwise a new id."""
    if client_id is not None and _GOOD_ID.fullmatch(client_id):
        return client_id
    return f"{_FIRST_HALF}{next(_numbers):016x}"


def log_request(
    identity: str, entrypoint: str, api: str, model: str, milliseconds: float, error: ServingError | None
) -> None:
    """Writes a request's line in the access log: at level WARNING if it was refused, INFO if it was answered.

    Args:
        identity: The request's id.
        entrypoint: `REST` or `GRPC`.
        api: The API that was called, such as `Predict`.
        model: The model's name as the client wrote it.
        milliseconds: How long it took.
        error: Why it was refused, or None if it was answered.
    """
    level = logging.WARNING if error else logging.INFO
    if _log.isEnabledFor(level):
        status = f"{error.code.name} {error.message[:LONGEST_TEXT]!r}" if error else "OK"
        _log.log(level, "%s %s %s %r %.2f ms %s", identity, entrypoint, api, model[:LONGEST_TEXT], milliseconds, status)


def log_answered(enabled: bool) -> None:
    """Sets whether answered requests get a line too; refused ones always do."""
    _log.setLevel(logging.INFO if enabled else logging.WARNING)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
