"""The gRPC services against a real server on loopback: values, codes and texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import arithmetic_model
import grpc
import pytest
import tensorflow as tf
from google.protobuf import text_format
from server_helpers import HOST, refusal, settings
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

from serving import protos
from serving.server import Server

StatusCode = grpc.StatusCode
MISSING_MODEL_SPEC = (StatusCode.INVALID_ARGUMENT, "Missing ModelSpec")


@pytest.fixture(scope="module")
def base_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "arithmetic"
    for version in (1, 2):
        arithmetic_model.save(path, version)
    return path


@pytest.fixture(scope="module")
def server(base_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    config = tmp_path_factory.mktemp("config") / "models.config"
    config.write_text(models_config(base_path, 'version_labels { key: "stable" value: 1 }'))
    made = Server(
        settings(
            base_path,
            model_config_file=config,
            allow_version_labels_for_unavailable_models=True,
            max_request_bytes=100_000,
        )
    )
    made.start()
    yield made
    made.drain()


@pytest.fixture(scope="module")
def channel(server: Server) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(f"{HOST}:{server.port}") as made:
        yield made


@pytest.fixture(scope="module")
def predictions(channel: grpc.Channel) -> Any:
    return prediction_service_pb2_grpc.PredictionServiceStub(channel)


@pytest.fixture(scope="module")
def models(channel: grpc.Channel) -> Any:
    return model_service_pb2_grpc.ModelServiceStub(channel)


def models_config(base_path: Path, more: str = "") -> str:
    return (
        'model_config_list { config { name: "arithmetic" model_platform: "tensorflow" '
        f'base_path: "{base_path}" model_version_policy {{ all {{}} }} {more} }} }}'
    )


def predict_request(*x: float, **spec: Any) -> predict_pb2.PredictRequest:
    request = predict_pb2.PredictRequest(model_spec={"name": "arithmetic", **spec})
    request.inputs["x"].CopyFrom(tf.make_tensor_proto(x, tf.float32))
    return request


def ask(request_class: Any, *x: float, **spec: Any) -> Any:
    request = request_class(model_spec={"name": "arithmetic", **spec})
    request.input.example_list.examples.extend(arithmetic_model.example(value) for value in x)
    return request


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
    found = predictions.Predict(request).outputs["upper"]
    assert list(found.string_val) == [b"A\x00"]
    assert not found.tensor_shape.dim


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


def test_classify_gives_labels_and_scores(predictions: Any) -> None:
    response = predictions.Classify(ask(classification_pb2.ClassificationRequest, 0.25, 1.0, signature_name="classify"))
    found = [[(entry.label, entry.score) for entry in row.classes] for row in response.result.classifications]
    assert found == [[("small", 0.75), ("large", 0.25)], [("small", 0.0), ("large", 1.0)]]
    assert response.model_spec.signature_name == "classify"
    assert response.model_spec.version.value == 2


def test_classify_refuses_signatures_that_do_not_classify(predictions: Any) -> None:
    request_class = classification_pb2.ClassificationRequest
    call = predictions.Classify
    assert refusal(call, request_class()) == MISSING_MODEL_SPEC
    assert refusal(call, ask(request_class, 1.0, signature_name="none")) == (
        StatusCode.INVALID_ARGUMENT,
        "No signature was found with the name: none",
    )
    code, text = refusal(call, ask(request_class, 1.0, signature_name="regress"))
    assert code is StatusCode.INVALID_ARGUMENT
    assert text.startswith('Expected classification signature outputs to contain at least one of "classes" or "scores"')
    code, text = refusal(call, ask(request_class, 1.0))
    assert (code, text[:46]) == (StatusCode.INVALID_ARGUMENT, "No classification inputs found in SignatureDef")
    assert refusal(call, ask(request_class, signature_name="classify")) == (
        StatusCode.INVALID_ARGUMENT,
        "Input is empty.",
    )


def test_regress_gives_values(predictions: Any) -> None:
    response = predictions.Regress(ask(regression_pb2.RegressionRequest, 1.0, 2.0, signature_name="regress"))
    assert [entry.value for entry in response.result.regressions] == [5.0, 8.0]
    assert response.model_spec.version.value == 2


def test_the_context_holds_features_of_every_example(predictions: Any) -> None:
    request = regression_pb2.RegressionRequest(model_spec={"name": "arithmetic", "signature_name": "regress"})
    given = request.input.example_list_with_context
    given.context.CopyFrom(arithmetic_model.example(4.0))
    given.examples.add()
    given.examples.append(arithmetic_model.example(1.0))
    assert [entry.value for entry in predictions.Regress(request).result.regressions] == [14.0, 5.0]


def test_an_example_without_its_feature_is_the_clients_fault(predictions: Any) -> None:
    request = ask(regression_pb2.RegressionRequest, signature_name="regress")
    request.input.example_list.examples.add()
    code, text = refusal(predictions.Regress, request)
    assert code is StatusCode.INVALID_ARGUMENT
    assert "x" in text
    assert "Traceback" not in text


def multi_inference(*tasks: tuple[str, str], **spec: Any) -> inference_pb2.MultiInferenceRequest:
    request = inference_pb2.MultiInferenceRequest()
    for method, signature in tasks:
        model_spec = {"name": "arithmetic", "signature_name": signature, **spec}
        request.tasks.add(method_name=f"tensorflow/serving/{method}", model_spec=model_spec)
    request.input.example_list.examples.append(arithmetic_model.example(0.5))
    return request


def test_multi_inference_asks_several_signatures(predictions: Any) -> None:
    response = predictions.MultiInference(multi_inference(("classify", "classify"), ("regress", "regress")))
    first, second = response.results
    assert [entry.score for entry in first.classification_result.classifications[0].classes] == [0.5, 0.5]
    assert [entry.value for entry in second.regression_result.regressions] == [3.5]
    assert (second.model_spec.signature_name, second.model_spec.version.value) == ("regress", 2)


def test_multi_inference_is_one_run_of_the_graph(server: Server, predictions: Any) -> None:
    runs, counted = server.metrics.runtime_latency, server.metrics.example_count_total
    labels = ("arithmetic", "MultiInference", "TF1")
    before = runs.count(labels), counted.value(("arithmetic",))
    predictions.MultiInference(multi_inference(("classify", "classify"), ("regress", "regress")))
    assert (runs.count(labels), counted.value(("arithmetic",))) == (before[0] + 1, before[1] + 1)


def test_multi_inference_refuses_what_tensorflow_serving_refuses(predictions: Any) -> None:
    call = predictions.MultiInference
    invalid = StatusCode.INVALID_ARGUMENT
    assert refusal(call, multi_inference(("predict", "serving_default"))) == (
        StatusCode.UNIMPLEMENTED,
        "Unsupported signature method_name: tensorflow/serving/predict",
    )
    assert refusal(call, multi_inference(("regress", "regress"), ("regress", "regress"))) == (
        invalid,
        "Duplicate evaluation of signature: regress",
    )
    assert refusal(call, multi_inference(("regress", "none"))) == (
        invalid,
        "Requested signature not found in model graph: none",
    )
    mixed = multi_inference(("regress", "regress"), ("classify", "classify"))
    mixed.tasks[1].model_spec.name = "other"
    text = "All ModelSpecs in a MultiInferenceRequest must access the same model name."
    assert refusal(call, mixed) == (invalid, text)
    assert refusal(call, inference_pb2.MultiInferenceRequest()) == (invalid, "ModelSpec has no name specified.")


def test_metadata_lists_the_signatures(predictions: Any) -> None:
    request = get_model_metadata_pb2.GetModelMetadataRequest(
        model_spec={"name": "arithmetic"}, metadata_field=["signature_def"]
    )
    response = predictions.GetModelMetadata(request)
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert response.metadata["signature_def"].Unpack(signatures)
    assert {"serving_default", "classify", "regress", "upper"} <= set(signatures.signature_def)
    assert signatures.signature_def["serving_default"].inputs["x"].dtype == tf.float32.as_datatype_enum
    assert (response.model_spec.name, response.model_spec.version.value) == ("arithmetic", 2)
    del request.metadata_field[:]
    text = "GetModelMetadataRequest must specify at least one metadata_field"
    assert refusal(predictions.GetModelMetadata, request) == (StatusCode.INVALID_ARGUMENT, text)
    request.metadata_field.append("weights")
    text = "Metadata field weights is not supported"
    assert refusal(predictions.GetModelMetadata, request) == (StatusCode.INVALID_ARGUMENT, text)


def status_request(**spec: Any) -> get_model_status_pb2.GetModelStatusRequest:
    return get_model_status_pb2.GetModelStatusRequest(model_spec={"name": "arithmetic", **spec})


def test_status_lists_the_versions(models: Any) -> None:
    response = models.GetModelStatus(status_request())
    found = [(entry.version, entry.state, entry.status.error_code) for entry in response.model_version_status]
    assert found == [(2, 30, 0), (1, 30, 0)]
    (one,) = models.GetModelStatus(status_request(version={"value": 1})).model_version_status
    assert one.version == 1


def test_status_of_what_is_not_there(models: Any) -> None:
    request = get_model_status_pb2.GetModelStatusRequest()
    assert refusal(models.GetModelStatus, request) == MISSING_MODEL_SPEC
    assert refusal(models.GetModelStatus, status_request(name="other")) == (
        StatusCode.NOT_FOUND,
        "Could not find any versions of model other",
    )
    assert refusal(models.GetModelStatus, status_request(version={"value": 9})) == (
        StatusCode.NOT_FOUND,
        "Could not find version 9 of model arithmetic",
    )


def test_reload_replaces_the_labels_and_tells_how_metrics_grew(predictions: Any, models: Any, base_path: Path) -> None:
    request = model_management_pb2.ReloadConfigRequest(metric_names=["/tensorflow/serving/request_count", "/none"])
    tf_config = models_config(base_path, 'version_labels { key: "stable" value: 2 }')
    text_format.Parse(tf_config, request.config)
    response = models.HandleReloadConfigRequest(request)
    assert response.status.error_code == 0
    assert [(metric.name, metric.int64_value_increase) for metric in response.metric] == [
        ("/tensorflow/serving/request_count", 0),
        ("/none", 0),
    ]
    found = predictions.Predict(predict_request(1.0, version_label="stable"))
    assert found.model_spec.version.value == 2
    request.config.model_config_list.config[0].version_labels["stable"] = 1
    models.HandleReloadConfigRequest(request)
    assert predictions.Predict(predict_request(1.0, version_label="stable")).model_spec.version.value == 1


def test_reload_refuses_wrong_configurations(models: Any, base_path: Path) -> None:
    request = model_management_pb2.ReloadConfigRequest()
    text = (
        "ServerModelConfig type not supported by HandleReloadConfigRequest. Only ModelConfigList is currently supported"
    )
    assert refusal(models.HandleReloadConfigRequest, request) == (StatusCode.INVALID_ARGUMENT, text)
    config = request.config.model_config_list.config.add(
        name="arithmetic", base_path="relative", model_platform="tensorflow"
    )
    code, text = refusal(models.HandleReloadConfigRequest, request)
    assert code is StatusCode.INVALID_ARGUMENT
    assert "absolute path" in text
    config.base_path = str(base_path)
    request.config.model_config_list.config.append(config)
    code, text = refusal(models.HandleReloadConfigRequest, request)
    assert code is StatusCode.INVALID_ARGUMENT
    assert "arithmetic" in text


def test_requests_are_counted(server: Server, predictions: Any) -> None:
    count, latency = server.metrics.request_count, server.metrics.request_latency
    answered = count.value(("arithmetic", "OK"))
    timed = latency.count(("arithmetic", "Predict", "GRPC"))
    refused = count.value(("arithmetic", "INVALID_ARGUMENT"))
    predictions.Predict(predict_request(1.0))
    refusal(predictions.Predict, predict_pb2.PredictRequest(model_spec={"name": "arithmetic"}))
    assert count.value(("arithmetic", "OK")) == answered + 1
    assert count.value(("arithmetic", "INVALID_ARGUMENT")) == refused + 1
    assert latency.count(("arithmetic", "Predict", "GRPC")) == timed + 1


def health_check(channel: grpc.Channel, service: str) -> Any:
    call = channel.unary_unary(
        f"/{protos.HEALTH_SERVICE}/Check",
        protos.HealthCheckRequest.SerializeToString,
        protos.HealthCheckResponse.FromString,
    )
    return call(protos.HealthCheckRequest(service=service))


def test_health_knows_the_services(channel: grpc.Channel) -> None:
    for service in ("", "PredictionService", "tensorflow.serving.ModelService"):
        assert health_check(channel, service).status == protos.HealthCheckResponse.SERVING
    assert refusal(health_check, channel, "other") == (StatusCode.NOT_FOUND, "unknown service 'other'")


def test_reflection_tells_the_services_and_their_files(channel: grpc.Channel) -> None:
    call = channel.stream_stream(
        f"/{protos.REFLECTION_SERVICE}/ServerReflectionInfo",
        protos.ServerReflectionRequest.SerializeToString,
        protos.ServerReflectionResponse.FromString,
    )
    asked = [
        protos.ServerReflectionRequest(list_services=""),
        protos.ServerReflectionRequest(file_containing_symbol="tensorflow.serving.PredictionService"),
        protos.ServerReflectionRequest(file_by_filename="none.proto"),
    ]
    services, files, missing = call(iter(asked))
    names = [service.name for service in services.list_services_response.service]
    assert names == ["tensorflow.serving.PredictionService", "tensorflow.serving.ModelService"]
    assert len(files.file_descriptor_response.file_descriptor_proto) > 5
    assert missing.error_response.error_code == StatusCode.NOT_FOUND.value[0]
