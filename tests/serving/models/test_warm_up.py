"""A version that warms up is served; one whose recorded requests fail is not."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tiny_models
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from serving.errors import Code, ServingError
from serving.models.servable import load
from serving.models.warm_up import replay

GOOD = tiny_models.predict_log(x=np.array([1.0], np.float32)).SerializeToString()


@pytest.fixture
def version(saved_models: Path, tmp_path: Path) -> Callable[..., Path]:
    """Makes a version with these warm-up records: `version(record, ..., saved_model="tf1")`."""

    def make(*records: bytes, saved_model: str = "half_plus_1") -> Path:
        path = shutil.copytree(saved_models / saved_model, tmp_path / "1")
        tiny_models.write_warm_up(path, list(records))
        return path

    return make


class Recorder:
    """Stands in for a version and records its requests."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any], list[str]]] = []

    def run(self, signature: str, inputs: dict[str, np.ndarray[Any, Any]], outputs: Any = ()) -> None:
        self.asked.append((signature, {name: value.tolist() for name, value in inputs.items()}, list(outputs)))


def refusal(path: Path) -> tuple[Code, str]:
    with pytest.raises(ServingError) as caught:
        load("m", 1, path)
    return caught.value.code, caught.value.message


def test_replays_every_record(version: Callable[..., Path]) -> None:
    filtered = tiny_models.predict_log("", x=np.array([2.0], np.float32))
    filtered.predict_log.request.output_filter.append("y")
    recorder = Recorder()
    assert replay(recorder.run, version(GOOD, filtered.SerializeToString())) == 2
    assert recorder.asked == [("serving_default", {"x": [1.0]}, []), ("serving_default", {"x": [2.0]}, ["y"])]


def test_replays_classify_regress_and_multi_inference(version: Callable[..., Path]) -> None:
    classify, regress, several = PredictionLog(), PredictionLog(), PredictionLog()
    plum = tf.train.Example.FromString(tiny_models.example(word="plum"))
    classify.classify_log.request.input.example_list.examples.append(plum)
    regress.regress_log.request.model_spec.signature_name = "regress"
    with_context = regress.regress_log.request.input.example_list_with_context
    with_context.context.CopyFrom(plum)
    with_context.examples.add()
    several.multi_inference_log.request.tasks.add().model_spec.signature_name = "regress"
    several.multi_inference_log.request.tasks.add()
    several.multi_inference_log.request.input.example_list.examples.append(plum)
    path = version(*(log.SerializeToString() for log in (classify, regress, several)), saved_model="tf1")
    recorder = Recorder()
    assert replay(recorder.run, path) == 3
    assert [signature for signature, _, _ in recorder.asked] == [
        "serving_default",
        "regress",
        "regress",
        "serving_default",
    ]
    assert all(inputs == {"inputs": [plum.SerializeToString()]} for _, inputs, _ in recorder.asked)
    load("m", 1, path).close()


def test_nothing_recorded_is_nothing_to_do(saved_models: Path) -> None:
    assert replay(Recorder().run, saved_models / "half_plus_1") == 0


def test_a_failing_record_fails_the_load(version: Callable[..., Path]) -> None:
    path = version(GOOD, tiny_models.predict_log("other", x=[1.0]).SerializeToString())
    file = path / "assets.extra" / "tf_serving_warmup_requests"
    expected = f'Warmup record 2 from {file} failed: Serving signature key "other" not found.'
    assert refusal(path) == (Code.FAILED_PRECONDITION, expected)
    load("m", 1, path, warm_up=False).close()


def test_a_record_that_is_no_log_fails_the_load(version: Callable[..., Path]) -> None:
    code, message = refusal(version(b"malformed_record"))
    assert code is Code.INVALID_ARGUMENT
    assert message.startswith("Failed to parse warmup record 1 from ")


def test_an_empty_log_fails_the_load(version: Callable[..., Path]) -> None:
    code, message = refusal(version(b""))
    assert code is Code.UNIMPLEMENTED
    assert message.endswith("failed: Unsupported log_type for warmup: None")


def test_a_tensor_that_cannot_be_read_fails_the_load(version: Callable[..., Path]) -> None:
    log = PredictionLog()
    log.predict_log.request.inputs["x"].dtype = tf.float32.as_datatype_enum
    log.predict_log.request.inputs["x"].tensor_content = b"123"
    code, message = refusal(version(log.SerializeToString()))
    assert code is Code.INVALID_ARGUMENT
    assert "failed: tensor parsing error: " in message


def test_a_truncated_file_fails_the_load(version: Callable[..., Path]) -> None:
    path = version(GOOD)
    file = path / "assets.extra" / "tf_serving_warmup_requests"
    file.write_bytes(file.read_bytes()[:-5])
    code, message = refusal(path)
    assert code is Code.DATA_LOSS
    assert message.startswith(f"Failed to read warmup records from {file}: ")


def test_too_many_records_fail_the_load(version: Callable[..., Path]) -> None:
    code, message = refusal(version(*[GOOD] * 1001))
    assert code is Code.INVALID_ARGUMENT
    assert message.startswith("Number of warmup records exceeds the maximum (1000) at ")
