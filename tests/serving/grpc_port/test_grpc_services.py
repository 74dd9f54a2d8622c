"""The gRPC services other than Predict, against a real server on loopback: values, codes and messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import arithmetic_model
import grpc
import tensorflow as tf
from google.protobuf import text_format
from grpc_scene import MISSING_MODEL_SPEC, StatusCode, ask, models_config, predict_request
from server_helpers import refusal
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    model_management_pb2,
    predict_pb2,
    regression_pb2,
)

from serving import protos
from serving.server import Server


def test_classify_gives_labels_and_scores(predictions: Any) -> None:
    response = predictions.Classify(ask(classification_pb2.ClassificationRequest, 0.25, 1.0, signature_name="classify"))
    classes = [[(entry.label, entry.score) for entry in row.classes] for row in response.result.classifications]
    assert classes == [[("small", 0.75), ("large", 0.25)], [("small", 0.0), ("large", 1.0)]]
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
    examples = request.input.example_list_with_context
    examples.context.CopyFrom(arithmetic_model.example(4.0))
    examples.examples.add()
    examples.examples.append(arithmetic_model.example(1.0))
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
    states = [(entry.version, entry.state, entry.status.error_code) for entry in response.model_version_status]
    assert states == [(2, 30, 0), (1, 30, 0)]
    (statuses,) = models.GetModelStatus(status_request(version={"value": 1})).model_version_status
    assert statuses.version == 1


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
    prediction = predictions.Predict(predict_request(1.0, version_label="stable"))
    assert prediction.model_spec.version.value == 2
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
    requests = [
        protos.ServerReflectionRequest(list_services=""),
        protos.ServerReflectionRequest(file_containing_symbol="tensorflow.serving.PredictionService"),
        protos.ServerReflectionRequest(file_by_filename="none.proto"),
    ]
    services, files, missing = call(iter(requests))
    names = [service.name for service in services.list_services_response.service]
    assert names == ["tensorflow.serving.PredictionService", "tensorflow.serving.ModelService"]
    assert len(files.file_descriptor_response.file_descriptor_proto) > 5
    assert missing.error_response.error_code == StatusCode.NOT_FOUND.value[0]
