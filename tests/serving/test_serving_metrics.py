"""Prometheus' text format under TensorFlow Serving's names."""

from __future__ import annotations

from serving.monitoring import MAX_SERIES, Counter, Histogram, Metrics, exponential_limits, prometheus_name


def test_names_are_tensorflows_with_colons() -> None:
    assert prometheus_name("/tensorflow/serving/request_count") == ":tensorflow:serving:request_count"


def test_a_counter_has_a_line_for_each_series() -> None:
    counter = Counter("/a/count", ("model_name", "status"))
    counter.add(("taxi", "OK"))
    counter.add(("taxi", "OK"), 2)
    counter.add(('a"\\\n', "NOT_FOUND"))
    assert counter.lines() == [
        ':a:count{model_name="taxi",status="OK"} 3',
        ':a:count{model_name="a\\"\\\\\\n",status="NOT_FOUND"} 1',
    ]
    assert (counter.value(("taxi", "OK")), counter.value(("taxi", "CANCELLED")), counter.total()) == (3, 0, 4)


def test_a_histograms_buckets_are_cumulative() -> None:
    histogram = Histogram("/a/latency", ("model",), exponential_limits(10, 1.8, 3))
    for sample in (10, 11, 32, 1000.5):
        histogram.add(("m",), sample)
    assert histogram.lines() == [
        ':a:latency_bucket{model="m",le="10"} 1',
        ':a:latency_bucket{model="m",le="18"} 2',
        ':a:latency_bucket{model="m",le="32.4"} 3',
        ':a:latency_bucket{model="m",le="+Inf"} 4',
        ':a:latency_sum{model="m"} 1053.5',
        ':a:latency_count{model="m"} 4',
    ]


def test_latencies_reach_from_10_microseconds_to_20_minutes() -> None:
    limits = Metrics().request_latency.limits
    assert (limits[0], limits[1], len(limits)) == (10, 18, 33)
    assert 20 < limits[-1] / 60e6 < 30


def test_the_page_shows_what_was_recorded() -> None:
    metrics = Metrics()
    assert metrics.page() == "\n"
    metrics.request("taxi", "Predict", "REST", "OK", 25)
    metrics.request("taxi", "Predict", "REST", "NOT_FOUND", 25)
    metrics.examples("taxi", 3)
    page = metrics.page().splitlines()
    assert "# TYPE :tensorflow:serving:request_count counter" in page
    assert ':tensorflow:serving:request_count{model_name="taxi",status="NOT_FOUND"} 1' in page
    assert "# TYPE :tensorflow:serving:request_latency histogram" in page
    assert ':tensorflow:serving:request_latency_count{model_name="taxi",API="Predict",entrypoint="REST"} 1' in page
    assert ':tensorflow:serving:request_example_counts_bucket{model="taxi",le="4"} 1' in page
    assert ':tensorflow:serving:request_example_count_total{model="taxi"} 3' in page


def test_clients_cannot_make_series_without_end() -> None:
    counter = Counter("/a/count", ("model_name", "status"))
    for number in range(MAX_SERIES + 50):
        counter.add((str(number), "NOT_FOUND"))
    assert len(counter.lines()) == MAX_SERIES + 1
    assert counter.value(("other", "other")) == 50
    assert counter.total() == MAX_SERIES + 50


def test_clients_cannot_make_names_without_end() -> None:
    counter = Counter("/a/count", ("model_name", "status"))
    for end in ("a", "b"):
        counter.add(("n" * 10_000 + end, "NOT_FOUND"))
    assert counter.value(("n" * 200, "NOT_FOUND")) == 2
    assert len(counter.lines()) == 1
