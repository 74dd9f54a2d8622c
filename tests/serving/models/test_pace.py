"""Which runs are known to be quick, and so need neither a timeout nor a thread of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from serving.errors import Code, ServingError
from serving.models.servable import Servable
from serving.models.signatures import REMEMBERED, Pace, is_steady

Load = Callable[..., Servable]
X = {"x": np.array([4], np.float32)}


def test_the_least_of_the_latest_counts() -> None:
    pace = Pace()
    assert pace.expected("a", 1) == float("inf")
    pace.add("a", 1, 0.5)
    pace.add("a", 1, 0.25)
    assert (pace.expected("a", 1), pace.expected("b", 1)) == (0.25, float("inf"))
    for _ in range(REMEMBERED):
        pace.add("a", 1, 1.0)
    assert pace.expected("a", 1) == 1.0


def test_larger_inputs_need_more_time() -> None:
    pace = Pace()
    pace.add("a", 10, 0.5)
    assert [pace.expected("a", size) for size in (1, 10, 40)] == [0.5, 0.5, 2.0]
    pace.add("a", 40, 1.0)
    assert [pace.expected("a", size) for size in (10, 40)] == [0.5, 1.0]


@pytest.mark.parametrize(("name", "steady"), [("half_plus_1", True), ("echo", True), ("slow", False)])
def test_a_graph_that_loops_is_not_steady(saved_models: Path, name: str, steady: bool) -> None:
    saved_model = SavedModel.FromString((saved_models / name / "saved_model.pb").read_bytes())
    assert is_steady(saved_model.meta_graphs[0].graph_def) is steady


def test_a_graph_that_waits_is_not_steady() -> None:
    with tf.Graph().as_default() as graph:
        tf.queue.FIFOQueue(1, [tf.float32]).dequeue()
    assert not is_steady(graph.as_graph_def())


def test_a_steady_model_becomes_quick(loaded: Load) -> None:
    servable = loaded("half_plus_1")
    assert not servable.is_quick("serving_default", X)
    for _ in range(REMEMBERED):
        servable.run("serving_default", X)
    assert servable.is_quick("serving_default", X)
    assert not servable.is_quick("serving_default", {"x": np.zeros(10**9, np.bool_)})


def test_a_model_that_loops_never_becomes_quick_and_its_time_is_kept(loaded: Load) -> None:
    servable = loaded("slow")
    for _ in range(REMEMBERED):
        servable.run("serving_default", {"n": np.int64(1)[...]}, None, 30.0)
    assert not servable.is_quick("serving_default", {"n": np.int64(1)[...]})
    with pytest.raises(ServingError) as caught:
        servable.run("serving_default", {"n": np.array(2**60)}, None, 0.05)
    assert caught.value.code is Code.DEADLINE_EXCEEDED


def test_a_quick_run_that_took_too_long_after_all_is_refused(loaded: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    servable = loaded("half_plus_1")
    for _ in range(REMEMBERED):
        servable.run("serving_default", X)
    times = iter([0.0, 31.0])
    monkeypatch.setattr("serving.models.servable.time.perf_counter", lambda: next(times))
    with pytest.raises(ServingError, match="took longer than the request's deadline") as caught:
        servable.run("serving_default", X, None, 30.0)
    assert caught.value.code is Code.DEADLINE_EXCEEDED
