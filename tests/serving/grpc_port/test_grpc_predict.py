"""Predict over gRPC, against a real server on loopback: values, codes and messages."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
import tensorflow as tf
from grpc_scene import MISSING_MODEL_SPEC, StatusCode, predict_request
from server_helpers import refusal
from tensorflow_serving.apis import (
    predict_pb2,
)


def test_predict_answers_in_typed_fields_and_fills_the_spec_in(predictions: Any) -> None:
    response = predictions.Predict(predict_request(1.0, 2.0))
    assert list(response.outputs["y"].float_val) == [5.0, 8.0]
    assert list(response.outputs["negative"].float_val) == [-1.0, -2.0]
    assert response.outputs["y"].tensor_content == b""
    assert response.outputs["y"].dtype == tf.float32.as_datatype_enum
    assert [dimension.size for dimension in response.outputs["y"].tensor_shape.dim] == [2]
    spec = response.model_spec
    assert (spec.name, spec.version.value, spec.signature_name) == ("arithmetic", 2, "serving_default")


def test_predict_takes_a_version_and_a_label(predictions: Any) -> None:
    for spec in ({"version": {"value": 1}}, {"version_label": "stable"}):
        response = predictions.Predict(predict_request(2.0, **spec))
        assert list(response.outputs["y"].float_val) == [3.0]
        assert response.model_spec.version.value == 1


def test_predict_answers_only_the_outputs_asked_for(predictions: Any) -> None:
    request = predict_request(1.0)
    request.output_filter.append("negative")
    assert list(predictions.Predict(request).outputs) == ["negative"]


def test_predict_takes_and_gives_strings(predictions: Any) -> None:
    request = predict_pb2.PredictRequest(model_spec={"name": "arithmetic", "signature_name": "upper"})
    request.inputs["words"].CopyFrom(tf.make_tensor_proto([b"a\xff", b"b"]))
    assert list(predictions.Predict(request).outputs["upper"].string_val) == [b"A\xff", b"B"]


def test_a_scalar_string_goes_and_comes(predictions: Any) -> None:
    request = predict_pb2.PredictRequest(model_spec={"name": "arithmetic", "signature_name": "upper"})
    request.inputs["words"].CopyFrom(tf.make_tensor_proto(b"a\x00"))
    output = predictions.Predict(request).outputs["upper"]
    assert list(output.string_val) == [b"A\x00"]
    assert not output.tensor_shape.dim


def test_an_error_that_quotes_bytes_which_are_no_text_is_the_clients_fault(predictions: Any) -> None:
    request = predict_pb2.PredictRequest(model_spec={"name": "arithmetic", "signature_name": "number"})
    request.inputs["words"].CopyFrom(tf.make_tensor_proto([b"\xea"]))
    code, text = refusal(predictions.Predict, request)
    assert (code, text) == (StatusCode.INVALID_ARGUMENT, "StringToNumberOp could not correctly convert string: \ufffd")


def test_predict_refuses_what_tensorflow_serving_refuses(predictions: Any) -> None:
    call = predictions.Predict
    assert refusal(call, predict_pb2.PredictRequest()) == MISSING_MODEL_SPEC
    nameless = predict_pb2.PredictRequest(model_spec={"signature_name": "x"})
    assert refusal(call, nameless) == (StatusCode.INVALID_ARGUMENT, "ModelSpec has no name specified.")
    assert refusal(call, predict_request(1.0, name="other")) == (
        StatusCode.NOT_FOUND,
        "Servable not found for request: Latest(other)",
    )
    assert refusal(call, predict_request(1.0, version={"value": 7})) == (
        StatusCode.NOT_FOUND,
        "Servable not found for request: Specific(arithmetic, 7)",
    )
    assert refusal(call, predict_request(1.0, version_label="canary")) == (
        StatusCode.INVALID_ARGUMENT,
        "Unrecognized servable version label: canary",
    )
    assert refusal(call, predict_request(1.0, signature_name="none")) == (
        StatusCode.FAILED_PRECONDITION,
        'Serving signature key "none" not found.',
    )


def test_predict_refuses_inputs_that_do_not_fit(predictions: Any) -> None:
    without = predict_pb2.PredictRequest(model_spec={"name": "arithmetic"})
    assert refusal(predictions.Predict, without) == (
        StatusCode.INVALID_ARGUMENT,
        "input size does not match signature: 0!=1 len({}) != len({x}). Sent extra: {}. Missing but required: {x}.",
    )
    integers = predict_request()
    integers.inputs["x"].CopyFrom(tf.make_tensor_proto([1], tf.int64))
    code, text = refusal(predictions.Predict, integers)
    assert code is StatusCode.INVALID_ARGUMENT
    assert "int64" in text
    assert "float" in text
    broken = predict_request()
    broken.inputs["x"].CopyFrom(tf.make_tensor_proto([1.0, 2.0]))
    broken.inputs["x"].tensor_content = b"123"
    assert refusal(predictions.Predict, broken) == (StatusCode.INVALID_ARGUMENT, "tensor parsing error: x")


def test_predict_refuses_outputs_that_are_not_there_or_twice(predictions: Any) -> None:
    request = predict_request(1.0)
    request.output_filter.append("z")
    assert refusal(predictions.Predict, request) == (
        StatusCode.INVALID_ARGUMENT,
        "output tensor alias not found in signature: z Outputs expected to be in the set {negative,y}.",
    )
    request.output_filter[:] = ["y", "y"]
    assert refusal(predictions.Predict, request) == (
        StatusCode.INVALID_ARGUMENT,
        "duplicate output tensor alias: y",
    )


def test_a_few_bytes_cannot_ask_for_a_tensor_of_any_size(predictions: Any) -> None:
    request = predict_request()
    del request.inputs["x"].tensor_shape.dim[:]
    request.inputs["x"].tensor_shape.dim.add(size=1 << 40)
    assert refusal(predictions.Predict, request) == (
        StatusCode.RESOURCE_EXHAUSTED,
        "tensor x of shape [1099511627776] takes 4398046511104 bytes, expected at most 100000",
    )


def test_tensors_that_no_input_asks_for_are_not_even_read(predictions: Any) -> None:
    request = predict_request(1.0)
    request.inputs["more"].dtype = -1
    assert refusal(predictions.Predict, request) == (
        StatusCode.INVALID_ARGUMENT,
        "input size does not match signature: 2!=1 len({more,x}) != len({x}). Sent extra: {more}. "
        "Missing but required: {}.",
    )


def test_a_message_above_the_limit_is_refused(predictions: Any) -> None:
    code, _ = refusal(predictions.Predict, predict_request(*[1.0] * 30_000))
    assert code is StatusCode.RESOURCE_EXHAUSTED


def test_details_end_at_1024_characters(predictions: Any) -> None:
    code, text = refusal(predictions.Predict, predict_request(1.0, name="n" * 2000))
    assert code is StatusCode.NOT_FOUND
    start = "Servable not found for request: Latest("
    assert text == start + "n" * (1024 - len(start)) + "...TRUNCATED"


@pytest.mark.filterwarnings("ignore:Unexpected end-group tag:RuntimeWarning")
def test_bytes_that_are_no_request_are_the_clients_fault(channel: grpc.Channel) -> None:
    call = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
    for data in (b"\xff\xff", predict_request(1.0).SerializeToString() + b"\x0c\x0a\x00"):
        assert refusal(call, data) == (
            StatusCode.INVALID_ARGUMENT,
            "the request is not a tensorflow.serving.PredictRequest",
        )


def test_a_request_keeps_its_id(predictions: Any) -> None:
    _, call = predictions.Predict.with_call(predict_request(1.0), metadata=(("x-request-id", "mine-1"),))
    assert dict(call.trailing_metadata())["x-request-id"] == "mine-1"
    _, call = predictions.Predict.with_call(predict_request(1.0), metadata=(("x-request-id", "forged line"),))
    assert len(dict(call.trailing_metadata())["x-request-id"]) == 32
