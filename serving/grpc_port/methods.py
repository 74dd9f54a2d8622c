"""The methods of PredictionService and ModelService: translates their protocol buffers for the data plane.

The error messages are those of TensorFlow Serving 2.16.1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from tensorflow_serving.apis.classification_pb2 import ClassificationRequest, ClassificationResponse
from tensorflow_serving.apis.get_model_metadata_pb2 import GetModelMetadataRequest, GetModelMetadataResponse
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusRequest, GetModelStatusResponse
from tensorflow_serving.apis.inference_pb2 import MultiInferenceRequest, MultiInferenceResponse
from tensorflow_serving.apis.model_management_pb2 import ReloadConfigRequest, ReloadConfigResponse
from tensorflow_serving.apis.model_pb2 import ModelSpec
from tensorflow_serving.apis.predict_pb2 import PredictRequest, PredictResponse
from tensorflow_serving.apis.regression_pb2 import RegressionRequest, RegressionResponse

from serving import messages
from serving.dataplane import DataPlane
from serving.errors import invalid
from serving.messages import Array
from serving.models.servable import Servable
from serving.models.signatures import check_inputs
from serving.models.versions import ModelRequest
from serving.protocol import CLASSIFY, DEFAULT_SIGNATURE, SIGNATURE_FIELD

PREDICTION_SERVICE = "tensorflow.serving.PredictionService"
MODEL_SERVICE = "tensorflow.serving.ModelService"


@dataclasses.dataclass(frozen=True)
class Method:
    """One method of a service.

    Attributes:
        api: Its name, such as `Predict`.
        request: The class of its requests.
        answer: Answers a request within a deadline on `time.monotonic`'s clock, which may be None.
        model: Returns the name of the model that a request is for.
        counted: Whether TensorFlow Serving's metrics count it.
        on_loop: Like `answer`, but raises NotQuickError if that would hold up others for long.
    """

    api: str
    request: Any
    answer: Callable[[Any, float | None], Any]
    model: Callable[[Any], str] = lambda request: str(request.model_spec.name)
    counted: bool = True
    on_loop: Callable[[Any, float | None], Any] | None = None


class Methods:
    """The methods, which take requests and return responses. They raise ServingError if they cannot answer.

    Args:
        plane: Computes the answers.
        max_tensor_bytes: How much memory one tensor of a request may take.
    """

    def __init__(self, plane: DataPlane, max_tensor_bytes: int) -> None:
        self._plane = plane
        self._max_tensor_bytes = max_tensor_bytes

    def services(self) -> dict[str, list[Method]]:
        """The methods of each service."""
        return {
            PREDICTION_SERVICE: [
                Method("Predict", PredictRequest, self.predict, on_loop=self._predict_on_loop),
                Method("Classify", ClassificationRequest, self._classify),
                Method("Regress", RegressionRequest, self._regress),
                Method("MultiInference", MultiInferenceRequest, self._multi_inference, _first_model),
                Method("GetModelMetadata", GetModelMetadataRequest, self._metadata, counted=False),
            ],
            MODEL_SERVICE: [
                Method("GetModelStatus", GetModelStatusRequest, self._status, counted=False),
                Method("HandleReloadConfigRequest", ReloadConfigRequest, self._reload_config, lambda _: "", False),
            ],
        }

    def predict(self, request: PredictRequest, deadline: float | None, on_loop: bool = False) -> PredictResponse:
        """Computes outputs of a signature; arguments and errors are those of `DataPlane.predict`."""
        spec = _checked_spec(request)
        name = _signature_name(spec)

        def read_inputs(servable: Servable) -> Mapping[str, Array]:
            signature = servable.signature(name)
            tensors = dict(request.inputs.items())
            if defaults := servable.meta_graph.signature_def[name].defaults:
                tensors = dict(defaults) | tensors
            # Before reading any tensor, since each may take as much memory as a whole request.
            check_inputs(signature, tensors)
            return {
                alias: messages.read_tensor(alias, proto, self._max_tensor_bytes) for alias, proto in tensors.items()
            }

        prediction = self._plane.predict(
            _model_request(spec), name, read_inputs, request.output_filter, deadline, on_loop
        )
        response = PredictResponse(model_spec=_resolved(spec, prediction.version))
        for alias, values in prediction.outputs.items():
            messages.write_tensor(values, response.outputs[alias])
        return response

    def _predict_on_loop(self, request: PredictRequest, deadline: float | None) -> PredictResponse:
        return self.predict(request, deadline, on_loop=True)

    def _classify(self, request: ClassificationRequest, deadline: float | None) -> ClassificationResponse:
        spec = _checked_spec(request)
        result, version = self._plane.classify(_model_request(spec), _signature_name(spec), request.input, deadline)
        return ClassificationResponse(model_spec=_resolved(spec, version), result=result)

    def _regress(self, request: RegressionRequest, deadline: float | None) -> RegressionResponse:
        spec = _checked_spec(request)
        result, version = self._plane.regress(_model_request(spec), _signature_name(spec), request.input, deadline)
        return RegressionResponse(model_spec=_resolved(spec, version), result=result)

    def _multi_inference(self, request: MultiInferenceRequest, deadline: float | None) -> MultiInferenceResponse:
        first = request.tasks[0].model_spec if request.tasks else ModelSpec()
        results, version = self._plane.multi_inference(_model_request(first), request.tasks, request.input, deadline)
        response = MultiInferenceResponse()
        for task, result in zip(request.tasks, results, strict=True):
            kind = "classification_result" if task.method_name == CLASSIFY else "regression_result"
            response.results.add(model_spec=_resolved(task.model_spec, version), **{kind: result})
        return response

    def _metadata(self, request: GetModelMetadataRequest, _: float | None) -> GetModelMetadataResponse:
        spec = _checked_spec(request)
        if not request.metadata_field:
            message = "GetModelMetadataRequest must specify at least one metadata_field"
            raise invalid(message)
        for field in request.metadata_field:
            if field != SIGNATURE_FIELD:
                raise invalid(f"Metadata field {field} is not supported")
        signatures, version = self._plane.metadata(_model_request(spec))
        response = GetModelMetadataResponse(model_spec={"name": spec.name, "version": {"value": version}})
        response.metadata[SIGNATURE_FIELD].Pack(signatures)
        return response

    def _status(self, request: GetModelStatusRequest, _: float | None) -> GetModelStatusResponse:
        spec = _checked_spec(request)
        version = spec.version.value if spec.HasField("version") else None
        return self._plane.status(ModelRequest(spec.name, version))

    def _reload_config(self, request: ReloadConfigRequest, _: float | None) -> ReloadConfigResponse:
        return self._plane.reload_config(request)


def _checked_spec(request: Any) -> ModelSpec:
    if not request.HasField("model_spec"):
        raise invalid("Missing ModelSpec")
    return request.model_spec


def _model_request(spec: ModelSpec) -> ModelRequest:
    if not spec.name:
        raise invalid("ModelSpec has no name specified.")
    choice = spec.WhichOneof("version_choice")
    return ModelRequest(
        spec.name,
        version=spec.version.value if choice == "version" else None,
        label=spec.version_label if choice == "version_label" else None,
    )


def _signature_name(spec: ModelSpec) -> str:
    return spec.signature_name or DEFAULT_SIGNATURE


def _resolved(spec: ModelSpec, version: int) -> ModelSpec:
    resolved = ModelSpec(name=spec.name, signature_name=_signature_name(spec))
    resolved.version.value = version
    return resolved


def _first_model(request: MultiInferenceRequest) -> str:
    return str(request.tasks[0].model_spec.name) if request.tasks else ""
