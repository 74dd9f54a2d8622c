"""What the requests of TensorFlow Serving's APIs mean: protocol buffers in, protocol buffers out.

The rules and the texts of errors are those of TensorFlow Serving 2.16.1 (servables/tensorflow/predict_util.cc,
classifier.cc, regressor.cc, multi_inference.cc, get_model_metadata_impl.cc; model_servers/get_model_status_impl.cc,
model_service_impl.cc).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef
from tensorflow_serving.apis.classification_pb2 import ClassificationRequest, ClassificationResponse
from tensorflow_serving.apis.get_model_metadata_pb2 import (
    GetModelMetadataRequest,
    GetModelMetadataResponse,
    SignatureDefMap,
)
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusRequest, GetModelStatusResponse
from tensorflow_serving.apis.inference_pb2 import InferenceTask, MultiInferenceRequest, MultiInferenceResponse
from tensorflow_serving.apis.input_pb2 import Input
from tensorflow_serving.apis.model_management_pb2 import ReloadConfigRequest, ReloadConfigResponse
from tensorflow_serving.apis.model_pb2 import ModelSpec
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse
from tensorflow_serving.apis.regression_pb2 import RegressionRequest, RegressionResponse

from serving import model_config, results, tensors
from serving.errors import Code, ServingError
from serving.manager import Manager, ModelRequest
from serving.metrics import Metrics
from serving.pace import NotQuickError
from serving.servable import Servable
from serving.signatures import check_inputs
from serving.tensors import Array

DEFAULT_SIGNATURE = "serving_default"
SIGNATURE_FIELD = "signature_def"
CLASSIFY = "tensorflow/serving/classify"
REGRESS = "tensorflow/serving/regress"
# What TensorFlow Serving's metrics call the runtime of a Session.
RUNTIME = "TF1"
NANOSECONDS = 1e-3

Outputs = dict[str, Array]


class ProtoHandlers:
    """Answers requests with the models of a manager. Every method raises ServingError where it cannot.

    Args:
        manager: Gives out the loaded versions.
        metrics: Where time in TensorFlow and numbers of examples are recorded.
        max_tensor_bytes: How much memory one tensor of a request may take.
    """

    def __init__(self, manager: Manager, metrics: Metrics, max_tensor_bytes: int) -> None:
        self._manager = manager
        self._metrics = metrics
        self._max_tensor_bytes = max_tensor_bytes

    def predict(self, request: PredictRequest, timeout: float | None = None) -> PredictResponse:
        """Computes outputs of a signature.

        Args:
            request: Model, inputs by name, and which outputs are wanted.
            timeout: Seconds until the client gives up, or None.
        """
        return self._predict(request, timeout, quickly=False)

    def predict_quickly(self, request: PredictRequest, timeout: float | None = None) -> PredictResponse:
        """As `predict`, but raises NotQuickError where that would hold up others for long."""
        return self._predict(request, timeout, quickly=True)

    def _predict(self, request: PredictRequest, timeout: float | None, quickly: bool) -> PredictResponse:
        spec = _checked_spec(request)
        with self._manager.use(_model_request(spec)) as servable:
            name = spec.signature_name or DEFAULT_SIGNATURE
            signature = servable.signature(name)
            given = dict(request.inputs.items())
            if defaults := servable.meta_graph.signature_def[name].defaults:
                given = dict(defaults) | given
            # First of all: each of the tensors may take as much memory as a whole request.
            check_inputs(signature, given)
            inputs = {alias: tensors.to_array(alias, proto, self._max_tensor_bytes) for alias, proto in given.items()}
            if quickly and not servable.is_quick(name, inputs):
                raise NotQuickError
            outputs = self._run("Predict", servable, name, inputs, request.output_filter, timeout)
            response = PredictResponse(model_spec=_resolved(spec, servable))
        for alias, values in outputs.items():
            tensors.write(values, response.outputs[alias])
        return response

    def classify(self, request: ClassificationRequest, timeout: float | None = None) -> ClassificationResponse:
        """Gives each example its classes and scores."""
        spec = _checked_spec(request)
        with self._manager.use(_model_request(spec)) as servable:
            wanted = results.check_classification(_definition(servable, spec))
            outputs, examples = self._infer("Classify", servable, spec, wanted, request.input, timeout)
            response = ClassificationResponse(model_spec=_resolved(spec, servable))
        response.result.CopyFrom(results.classification(outputs, examples))
        return response

    def regress(self, request: RegressionRequest, timeout: float | None = None) -> RegressionResponse:
        """Gives each example its value."""
        spec = _checked_spec(request)
        with self._manager.use(_model_request(spec)) as servable:
            wanted = results.check_regression(_definition(servable, spec))
            outputs, examples = self._infer("Regress", servable, spec, wanted, request.input, timeout)
            response = RegressionResponse(model_spec=_resolved(spec, servable))
        response.result.CopyFrom(results.regression(outputs, examples))
        return response

    def multi_inference(self, request: MultiInferenceRequest, timeout: float | None = None) -> MultiInferenceResponse:
        """Classifies and regresses the same examples with several signatures of one model."""
        first = request.tasks[0].model_spec if request.tasks else ModelSpec()
        response = MultiInferenceResponse()
        with self._manager.use(_model_request(first)) as servable:
            wanted = _checked_tasks(servable, request.tasks)
            examples = _examples(request.input)
            started = time.perf_counter_ns()
            outputs = servable.run_together(wanted, {results.INPUTS: examples}, timeout)
            self._count_run("MultiInference", servable, started)
            self._metrics.examples(servable.name, len(examples))
            for task, found in zip(request.tasks, outputs.values(), strict=True):
                answer = response.results.add(model_spec=_resolved(task.model_spec, servable))
                if task.method_name == CLASSIFY:
                    answer.classification_result.CopyFrom(results.classification(found, len(examples)))
                else:
                    answer.regression_result.CopyFrom(results.regression(found, len(examples)))
        return response

    def model_metadata(
        self, request: GetModelMetadataRequest, timeout: float | None = None
    ) -> GetModelMetadataResponse:
        """Says which signatures a model has."""
        spec = _checked_spec(request)
        _check_metadata_fields(request.metadata_field)
        response, signatures = GetModelMetadataResponse(), SignatureDefMap()
        with self._manager.use(_model_request(spec)) as servable:
            for name, definition in servable.meta_graph.signature_def.items():
                signatures.signature_def[name].CopyFrom(definition)
            response.model_spec.name = servable.name
            response.model_spec.version.value = servable.version
        response.metadata[SIGNATURE_FIELD].Pack(signatures)
        return response

    def model_status(self, request: GetModelStatusRequest, timeout: float | None = None) -> GetModelStatusResponse:
        """Says in which states the versions of a model are; a label in the request is not looked at."""
        spec = _checked_spec(request)
        version = spec.version.value if spec.HasField("version") else None
        response = GetModelStatusResponse()
        for status in self._manager.statuses(spec.name, version):
            entry = response.model_version_status.add(version=status.version, state=status.state.value)
            entry.status.SetInParent()
            if status.error:
                entry.status.error_code = status.error.code.number
                entry.status.error_message = status.error.message
        return response

    def reload_config(self, request: ReloadConfigRequest, timeout: float | None = None) -> ReloadConfigResponse:
        """Serves the models of the request in place of those served so far; if it raises, these stay."""
        if request.config.WhichOneof("config") != "model_config_list":
            raise ServingError(
                Code.INVALID_ARGUMENT,
                "ServerModelConfig type not supported by HandleReloadConfigRequest. "
                "Only ModelConfigList is currently supported",
            )
        before = {name: self._metrics.value(name) for name in request.metric_names}
        self._manager.reload(model_config.from_proto(request.config))
        response = ReloadConfigResponse()
        response.status.SetInParent()
        for name, value in before.items():
            response.metric.add(name=name, int64_value_increase=self._metrics.value(name) - value)
        return response

    def _infer(
        self,
        api: str,
        servable: Servable,
        spec: ModelSpec,
        wanted: Sequence[str],
        given: Input,
        timeout: float | None,
    ) -> tuple[Outputs, int]:
        examples = _examples(given)
        name = spec.signature_name or DEFAULT_SIGNATURE
        outputs = self._run(api, servable, name, {results.INPUTS: examples}, wanted, timeout)
        self._metrics.examples(servable.name, len(examples))
        return outputs, len(examples)

    def _run(
        self,
        api: str,
        servable: Servable,
        signature: str,
        inputs: Mapping[str, Array],
        wanted: Sequence[str],
        timeout: float | None,
    ) -> Outputs:
        started = time.perf_counter_ns()
        outputs = servable.run(signature, inputs, list(wanted), timeout)
        self._count_run(api, servable, started)
        return outputs

    def _count_run(self, api: str, servable: Servable, started: int) -> None:
        elapsed = (time.perf_counter_ns() - started) * NANOSECONDS
        self._metrics.runtime_latency.add((servable.name, api, RUNTIME), elapsed)


def _checked_spec(
    request: PredictRequest
    | ClassificationRequest
    | RegressionRequest
    | GetModelMetadataRequest
    | GetModelStatusRequest,
) -> ModelSpec:
    if not request.HasField("model_spec"):
        raise ServingError(Code.INVALID_ARGUMENT, "Missing ModelSpec")
    return request.model_spec


def _model_request(spec: ModelSpec) -> ModelRequest:
    if not spec.name:
        raise ServingError(Code.INVALID_ARGUMENT, "ModelSpec has no name specified.")
    choice = spec.WhichOneof("version_choice")
    return ModelRequest(
        spec.name,
        version=spec.version.value if choice == "version" else None,
        label=spec.version_label if choice == "version_label" else None,
    )


def _resolved(spec: ModelSpec, servable: Servable) -> ModelSpec:
    resolved = ModelSpec(name=spec.name, signature_name=spec.signature_name or DEFAULT_SIGNATURE)
    resolved.version.value = servable.version
    return resolved


def _definition(servable: Servable, spec: ModelSpec) -> SignatureDef:
    name = spec.signature_name or DEFAULT_SIGNATURE
    if name not in servable.signatures:
        raise ServingError(Code.INVALID_ARGUMENT, f"No signature was found with the name: {name}")
    return servable.meta_graph.signature_def[name]


def _checked_tasks(servable: Servable, tasks: Sequence[InferenceTask]) -> dict[str, list[str]]:
    """The outputs each task needs, by signature; refuses tasks that TensorFlow Serving refuses, in its order."""
    wanted: dict[str, list[str]] = {}
    for task in tasks:
        spec = task.model_spec
        if not spec.name:
            raise ServingError(Code.INVALID_ARGUMENT, "Found ModelSpec with an empty model name.")
        if spec.name != tasks[0].model_spec.name:
            raise ServingError(
                Code.INVALID_ARGUMENT, "All ModelSpecs in a MultiInferenceRequest must access the same model name."
            )
        name = spec.signature_name or DEFAULT_SIGNATURE
        if name in wanted:
            raise ServingError(Code.INVALID_ARGUMENT, f"Duplicate evaluation of signature: {name}")
        if name not in servable.signatures:
            raise ServingError(Code.INVALID_ARGUMENT, f"Requested signature not found in model graph: {name}")
        definition = servable.meta_graph.signature_def[name]
        if task.method_name == CLASSIFY:
            wanted[name] = results.check_classification(definition)
        elif task.method_name == REGRESS:
            wanted[name] = results.check_regression(definition)
        else:
            raise ServingError(Code.UNIMPLEMENTED, f"Unsupported signature method_name: {task.method_name}")
    return wanted


def _check_metadata_fields(fields: Sequence[str]) -> None:
    if not fields:
        raise ServingError(Code.INVALID_ARGUMENT, "GetModelMetadataRequest must specify at least one metadata_field")
    for field in fields:
        if field != SIGNATURE_FIELD:
            raise ServingError(Code.INVALID_ARGUMENT, f"Metadata field {field} is not supported")


def _examples(given: Input) -> Array:
    """The serialized tf.Examples of an Input, each with the features of its context before its own.

    Serialized messages that follow each other parse as one message with the fields of all.
    """
    kind = given.WhichOneof("kind")
    context = b""
    examples = given.example_list.examples
    if kind == "example_list_with_context":
        context = given.example_list_with_context.context.SerializeToString()
        examples = given.example_list_with_context.examples
    if not examples:
        raise ServingError(Code.INVALID_ARGUMENT, "Input is empty.")
    return np.array([context + example.SerializeToString() for example in examples], object)
