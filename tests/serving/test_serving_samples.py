"""The sample request that the server prints when it starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from serving import greeting
from serving.models import servable
from serving.models.warm_up import REQUESTS
from serving.settings import ModelConfig

FEATURES = {"fare": tf.io.FixedLenFeature([], tf.float32), "company": tf.io.FixedLenFeature([], tf.string, "")}


class Taxi(tf.Module):
    """Takes serialized examples or columns."""

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.float32, "fare"), tf.TensorSpec([None], tf.string, "company")]
    )
    def columns(self, fare: Any, company: Any) -> dict[str, Any]:
        return {"tip": fare * 0.1 + tf.cast(tf.strings.length(company), tf.float32)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "examples")])
    def serialized(self, examples: Any) -> dict[str, Any]:
        parsed = tf.io.parse_example(examples, FEATURES)
        return self.columns(parsed["fare"], parsed["company"])


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., ModelConfig]:
    """Saves the model with the named signatures, and a recorded request with these bytes."""

    def save_model(*names: str, recorded: bytes | None = None) -> ModelConfig:
        module, path = Taxi(), tmp_path / "taxi" / "1"
        methods = {"columns": module.columns, "serving_default": module.serialized}
        tf.saved_model.save(module, str(path), signatures={name: methods[name] for name in names})
        if recorded is not None:
            request = PredictRequest()
            request.inputs["examples"].CopyFrom(tf.make_tensor_proto([recorded]))
            log = PredictionLog(predict_log={"request": request})
            (path / REQUESTS).parent.mkdir()
            with tf.io.TFRecordWriter(str(path / REQUESTS)) as writer:
                writer.write(log.SerializeToString())
        return ModelConfig("taxi", tmp_path / "taxi")

    return save_model


def request(config: ModelConfig) -> dict[str, Any]:
    loaded = servable.load("taxi", 1, config.base_path / "1", warm_up=False)
    try:
        return greeting.sample_request(loaded, config)
    finally:
        loaded.close()


def example(**features: Any) -> bytes:
    proto = tf.train.Example()
    proto.features.feature["company"].bytes_list.value.extend(features.get("company", []))
    proto.features.feature["fare"].float_list.value.extend(features.get("fare", []))
    return bytes(proto.SerializeToString())


def test_a_recorded_example_is_shown_as_columns_where_a_signature_takes_them(save: Callable[..., ModelConfig]) -> None:
    config = save("serving_default", "columns", recorded=example(company=[b"Yellow"], fare=[12.5]))
    assert request(config) == {"signature_name": "columns", "instances": [{"company": "Yellow", "fare": 12.5}]}


def test_a_missing_feature_is_shown_as_zero(save: Callable[..., ModelConfig]) -> None:
    config = save("serving_default", "columns", recorded=example(fare=[12.5]))
    assert request(config) == {"signature_name": "columns", "instances": [{"company": "", "fare": 12.5}]}


def test_a_recorded_example_is_shown_as_it_is_where_no_signature_takes_columns(
    save: Callable[..., ModelConfig],
) -> None:
    config = save("serving_default", recorded=b"\n\x00\xff")
    assert request(config) == {"instances": [{"b64": "CgD/"}]}


def test_without_a_record_zeros_are_shown(save: Callable[..., ModelConfig]) -> None:
    assert request(save("columns")) == {"signature_name": "columns", "instances": [{"company": "", "fare": 0.0}]}
