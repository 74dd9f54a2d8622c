"""The data plane under both ports: finds the requested version, runs it and counts requests; the ports translate.

The rules and error messages are those of TensorFlow Serving 2.16.1 (servables/tensorflow/predict_util.cc,
classifier.cc, regressor.cc, multi_inference.cc; model_servers/get_model_status_impl.cc, model_service_impl.cc).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef
from tensorflow_serving.apis.classification_pb2 import ClassificationResult
from tensorflow_serving.apis.get_model_metadata_pb2 import SignatureDefMap
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusResponse
from tensorflow_serving.apis.inference_pb2 import InferenceTask
from tensorflow_serving.apis.input_pb2 import Input
from tensorflow_serving.apis.model_management_pb2 import ReloadConfigRequest, ReloadConfigResponse
from tensorflow_serving.apis.regression_pb2 import RegressionResult

from serving import messages
from serving.errors import Code, ServingError, invalid
from serving.messages import Array
from serving.models import configuration
from serving.models.manager import Manager
from serving.models.servable import Servable
from serving.models.signatures import NotQuickError
from serving.models.versions import ModelRequest
from serving.monitoring import Metrics
from serving.protocol import CLASSIFY, DEFAULT_SIGNATURE, REGRESS

# What TensorFlow Serving's metrics call the runtime of a Session.
RUNTIME = "TF1"
NANOSECONDS = 1e-3

Outputs = dict[str, Array]
# Reads a request's inputs for the version that answers it: only the version's signature says which types they have.
ReadInputs = Callable[[Servable], Mapping[str, Array]]


class Prediction(NamedTuple):
    """The outputs of a signature.

    Attributes:
        outputs: The outputs by name.
        version: The version that computed them.
        quick: Whether requests of this size can be answered on an event loop.
    """

    outputs: Outputs
    version: int
    quick: bool


class DataPlane:
    """Answers requests with a manager's models. Every method raises ServingError if it cannot answer.

    A deadline is the time on `time.monotonic`'s clock when the client gives up, or None.

    Args:
        manager: Lends the loaded versions.
        metrics: Records the time spent in TensorFlow and the number of examples.
    """

    def __init__(self, manager: Manager, metrics: Metrics) -> None:
        self._manager = manager
        self._metrics = metrics

    def predict(
        self,
        model: ModelRequest,
        signature: str,
        read_inputs: ReadInputs,
        output_names: Sequence[str] = (),
        deadline: float | None = None,
        on_loop: bool = False,
    ) -> Prediction:
        """Computes outputs of a signature.

        Args:
            model: The model and version to run.
            signature: The signature's name.
            read_inputs: Reads the request's inputs.
            output_names: The outputs to compute; all if empty.
            deadline: See the class.
            on_loop: Whether this runs on an event loop, where other requests wait meanwhile.

        Raises:
            NotQuickError: `on_loop` is set, and the answer would take too long for that.
        """
        with self._manager.use(model) as servable:
            inputs = read_inputs(servable)
            if on_loop and not servable.is_quick(signature, inputs):
                raise NotQuickError
            outputs = self._run("Predict", servable, signature, inputs, output_names, deadline)
            quick = on_loop or servable.is_quick(signature, inputs)
            return Prediction(outputs, servable.version, quick)

    def classify(
        self, model: ModelRequest, signature: str, examples: Input, deadline: float | None = None
    ) -> tuple[ClassificationResult, int]:
        """Returns the classes and scores of each example, and the version that computed them."""
        with self._manager.use(model) as servable:
            output_names = messages.check_classification(_definition(servable, signature))
            outputs, number = self._infer("Classify", servable, signature, output_names, examples, deadline)
            return messages.make_classification(outputs, number), servable.version

    def regress(
        self, model: ModelRequest, signature: str, examples: Input, deadline: float | None = None
    ) -> tuple[RegressionResult, int]:
        """Returns the value of each example, and the version that computed them."""
        with self._manager.use(model) as servable:
            output_names = messages.check_regression(_definition(servable, signature))
            outputs, number = self._infer("Regress", servable, signature, output_names, examples, deadline)
            return messages.make_regression(outputs, number), servable.version

    def multi_inference(
        self, model: ModelRequest, tasks: Sequence[InferenceTask], examples: Input, deadline: float | None = None
    ) -> tuple[list[ClassificationResult | RegressionResult], int]:
        """Classifies and regresses the same examples; returns a result per task, and the version that computed them."""
        with self._manager.use(model) as servable:
            output_names = _task_outputs(servable, tasks)
            serialized = _serialized(examples)
            timeout, started = seconds_left(deadline), time.perf_counter_ns()
            outputs = servable.run_together(output_names, {messages.INPUTS: serialized}, timeout)
            self._count("MultiInference", servable, started, len(serialized))
            results = [
                messages.make_classification(values, len(serialized))
                if task.method_name == CLASSIFY
                else messages.make_regression(values, len(serialized))
                for task, values in zip(tasks, outputs.values(), strict=True)
            ]
            return results, servable.version

    def metadata(self, model: ModelRequest) -> tuple[SignatureDefMap, int]:
        """Returns the signatures of a version, and its number."""
        signatures = SignatureDefMap()
        with self._manager.use(model) as servable:
            for name, definition in servable.meta_graph.signature_def.items():
                signatures.signature_def[name].CopyFrom(definition)
            return signatures, servable.version

    def status(self, model: ModelRequest) -> GetModelStatusResponse:
        """Returns the states of a model's versions; a label in the request is ignored."""
        response = GetModelStatusResponse()
        for status in self._manager.statuses(model.name, model.version):
            entry = response.model_version_status.add(version=status.version, state=status.state.value)
            entry.status.SetInParent()
            if status.error:
                entry.status.error_code = status.error.code.number
                entry.status.error_message = status.error.message
        return response

    def reload_config(self, request: ReloadConfigRequest) -> ReloadConfigResponse:
        """Replaces the served models by those of the request; if it raises, the current ones stay."""
        if request.config.WhichOneof("config") != "model_config_list":
            raise invalid(
                "ServerModelConfig type not supported by HandleReloadConfigRequest. "
                "Only ModelConfigList is currently supported"
            )
        before = {name: self._metrics.value(name) for name in request.metric_names}
        self._manager.reload(configuration.models_from_proto(request.config))
        response = ReloadConfigResponse()
        response.status.SetInParent()
        for name, value in before.items():
            response.metric.add(name=name, int64_value_increase=self._metrics.value(name) - value)
        return response

    def _infer(
        self,
        api: str,
        servable: Servable,
        signature: str,
        output_names: Sequence[str],
        examples: Input,
        deadline: float | None,
    ) -> tuple[Outputs, int]:
        serialized = _serialized(examples)
        outputs = self._run(
            api, servable, signature, {messages.INPUTS: serialized}, output_names, deadline, len(serialized)
        )
        return outputs, len(serialized)

    def _run(
        self,
        api: str,
        servable: Servable,
        signature: str,
        inputs: Mapping[str, Array],
        output_names: Sequence[str],
        deadline: float | None,
        examples: int = 0,
    ) -> Outputs:
        timeout, started = seconds_left(deadline), time.perf_counter_ns()
        outputs = servable.run(signature, inputs, list(output_names), timeout)
        self._count(api, servable, started, examples)
        return outputs

    def _count(self, api: str, servable: Servable, started: int, examples: int) -> None:
        elapsed = (time.perf_counter_ns() - started) * NANOSECONDS
        self._metrics.runtime_latency.add((servable.name, api, RUNTIME), elapsed)
        if examples:
            self._metrics.examples(servable.name, examples)


def seconds_left(deadline: float | None) -> float | None:
    """The seconds that a request may still take; None if there is no limit.

    Raises:
        ServingError: DEADLINE_EXCEEDED, the deadline has passed.
    """
    if deadline is None:
        return None
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise ServingError(Code.DEADLINE_EXCEEDED, "The request waited longer than its deadline.")
    return remaining


def _definition(servable: Servable, signature: str) -> SignatureDef:
    if signature not in servable.signatures:
        raise invalid(f"No signature was found with the name: {signature}")
    return servable.meta_graph.signature_def[signature]


def _task_outputs(servable: Servable, tasks: Sequence[InferenceTask]) -> dict[str, list[str]]:
    """Signature -> the outputs that its task needs; refuses what TensorFlow Serving refuses, in the same order."""
    outputs: dict[str, list[str]] = {}
    for task in tasks:
        spec = task.model_spec
        if not spec.name:
            raise invalid("Found ModelSpec with an empty model name.")
        if spec.name != tasks[0].model_spec.name:
            raise invalid("All ModelSpecs in a MultiInferenceRequest must access the same model name.")
        name = spec.signature_name or DEFAULT_SIGNATURE
        if name in outputs:
            raise invalid(f"Duplicate evaluation of signature: {name}")
        if name not in servable.signatures:
            raise invalid(f"Requested signature not found in model graph: {name}")
        definition = servable.meta_graph.signature_def[name]
        if task.method_name == CLASSIFY:
            outputs[name] = messages.check_classification(definition)
        elif task.method_name == REGRESS:
            outputs[name] = messages.check_regression(definition)
        else:
            raise ServingError(Code.UNIMPLEMENTED, f"Unsupported signature method_name: {task.method_name}")
    return outputs


def _serialized(examples_input: Input) -> Array:
    """The serialized tf.Examples of an Input, each with the context's features before its own."""
    examples = messages.serialized_examples(examples_input)
    if not examples:
        raise invalid("Input is empty.")
    return np.array(examples, object)
