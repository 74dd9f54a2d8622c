"""The ways in which a model can be asked: gRPC, REST by rows and by columns, each signature, and the TF Lite model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import tensorflow as tf
from tensorflow_serving.apis.classification_pb2 import ClassificationRequest
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.regression_pb2 import RegressionRequest

from components.evaluation.predictions import PredictionsTable, row_digest
from components.infra_validator.columns import RawColumns, from_json, to_json, transformed_inputs
from components.infra_validator.comparison import Allowed, excesses
from components.infra_validator.sample import Array, Arrays, Batch
from components.tflite.judge import Interpreter
from components.trainer.inference import predicted_output
from contracts.model_card import Signature
from contracts.model_reports import Tolerance


class Server(Protocol):
    """A model behind the model server's code; see `serving.in_process.InProcess`."""

    def call(self, api: str, request: Any) -> Any:
        """Answers a gRPC request."""

    def post(self, verb: str, body: bytes) -> bytes:
        """Answers a REST request."""


@dataclass(frozen=True)
class Way:
    """A way in which a model can be asked.

    Attributes:
        name: Its name in a report.
        ask: Gives the answers to a batch, by output.
        tolerance: How far they may be off.
        expected: What they are compared with.
        takes: What a request holds: `examples` (whole tf.Examples), `raw` or `transformed` (features by name).
        can_ask: Gives the positions of the rows of a batch that such a request can hold.
    """

    name: str
    ask: Callable[[Batch], Arrays]
    tolerance: Tolerance
    expected: Callable[[Batch], Arrays] = lambda batch: batch.predictions
    takes: str = "examples"
    can_ask: Callable[[Batch], Sequence[int]] = lambda batch: range(len(batch.rows))


TABLE = "predictions.npz"
FEATURES = "gRPC transform_features"
EXAMPLES = "gRPC serving_default"
TRANSFORMED = "gRPC predict_transformed"
TFLITE_THREADS = 2


def named(server: Server, batches: Sequence[Batch]) -> list[Batch]:
    """The batches, where a single output, which an evaluation stores without a name, has the server's name for it."""
    outputs = _predict(server, "serving_default", _as_examples(batches[0].take([0])))
    return [batch.renamed(next(iter(outputs))) for batch in batches] if len(outputs) == 1 else list(batches)


def of_server(server: Server, signatures: Mapping[str, Signature], outputs: Arrays, allowed: Allowed) -> Iterator[Way]:
    """The ways in which the model server can be asked.

    Args:
        server: The model server.
        signatures: The model's signatures; without any it is only asked with tf.Examples.
        outputs: Predictions of some rows, by output.
        allowed: The tolerances.
    """
    if "transform_features" in signatures:
        names = list(signatures["transform_features"].outputs)
        yield Way(
            FEATURES,
            lambda batch: _predict(server, "transform_features", _as_examples(batch)),
            allowed.features,
            lambda batch: {name: batch.transformed[name] for name in names if name in batch.transformed},
        )
    yield from _json_and_grpc("serving_default", server, _as_examples, allowed.predictions)
    if "predict_transformed" in signatures:
        inputs = signatures["predict_transformed"].inputs
        yield Way(
            TRANSFORMED,
            lambda batch: _predict(server, "predict_transformed", transformed_inputs(batch, inputs)),
            allowed.predictions,
            takes="transformed",
        )
    if "predict" in signatures:
        columns = RawColumns(signatures["predict"].inputs)
        yield from _json_and_grpc("predict", server, columns, allowed.predictions)
    predicted = predicted_output({name: tf.TensorSpec(values.shape, values.dtype) for name, values in outputs.items()})
    for name, infer in (("classify", _classify), ("regress", _regress)):
        if predicted and name in signatures:
            ask = _inferring(server, infer, predicted)
            yield Way(f"gRPC {name}", ask, allowed.predictions, lambda batch: {predicted: batch.predictions[predicted]})


def of_table(table: PredictionsTable, first: Batch, allowed: Allowed) -> list[Way]:
    """The evaluation's table of predictions as a way to ask for the output that it holds; empty if it holds no numbers.

    Args:
        table: The table; it does not say which of several outputs was judged.
        first: Some rows, with which to find that output.
        allowed: The tolerances.
    """
    positions = {digest: position for position, digest in enumerate(table.digests.tolist())}
    width = table.predictions.shape[1]

    def way(output: str) -> Way:
        def ask(batch: Batch) -> Arrays:
            rows = [positions[row_digest(row)] for row in batch.rows]
            return {output: table.predictions[rows].reshape(batch.predictions[output].shape)}

        def can_ask(batch: Batch) -> list[int]:
            return [place for place, row in enumerate(batch.rows) if row_digest(row) in positions]

        return Way(TABLE, ask, allowed.predictions, lambda batch: {output: batch.predictions[output]}, can_ask=can_ask)

    def off(way: Way) -> float:
        known_rows = first.take(way.can_ask(first))
        [row_excesses] = excesses(way.ask(known_rows), way.expected(known_rows), way.tolerance).values()
        return float(row_excesses.max(initial=0.0))

    floats = {name: values for name, values in first.predictions.items() if values.dtype.kind == "f"}
    return sorted((way(name) for name, values in floats.items() if width and values[0].size == width), key=off)[:1]


def of_tflite(model: bytes, signatures: Mapping[str, Signature], allowed: Allowed) -> Way:
    """The TF Lite model in its interpreter.

    Args:
        model: The model's bytes.
        signatures: Those of the SavedModel; the TF Lite model was converted from its `predict_transformed`.
        allowed: The tolerances.
    """
    interpreter = Interpreter(model, TFLITE_THREADS)
    inputs = signatures["predict_transformed"].inputs

    def ask(batch: Batch) -> Arrays:
        columns, size = transformed_inputs(batch, inputs), interpreter.batch_rows or len(batch.rows)
        parts = [
            interpreter({name: values[start : start + size] for name, values in columns.items()})
            for start in range(0, len(batch.rows), size)
        ]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    return Way("TF Lite", ask, allowed.tflite, takes="transformed")


def _json_and_grpc(
    signature: str, server: Server, columns: Callable[[Batch], Arrays], tolerance: Tolerance
) -> Iterator[Way]:
    takes, can_ask = ("raw", columns.can_ask) if isinstance(columns, RawColumns) else ("examples", Way.can_ask)

    def by_rows(batch: Batch) -> Arrays:
        plain = {name: to_json(values) for name, values in columns(batch).items()}
        rows = [dict(zip(plain, values, strict=True)) for values in zip(*plain.values(), strict=True)]
        predictions = _post(server, {"signature_name": signature, "instances": rows})["predictions"]
        is_named = bool(predictions) and isinstance(predictions[0], dict) and "b64" not in predictions[0]
        values = {name: [row[name] for row in predictions] for name in predictions[0]} if is_named else predictions
        return from_json(values, batch.predictions)

    def by_columns(batch: Batch) -> Arrays:
        plain = {name: to_json(values) for name, values in columns(batch).items()}
        return from_json(_post(server, {"signature_name": signature, "inputs": plain})["outputs"], batch.predictions)

    def by_grpc(batch: Batch) -> Arrays:
        return _predict(server, signature, columns(batch))

    for name, ask in (("gRPC {}", by_grpc), ("REST {} by rows", by_rows), ("REST {} by columns", by_columns)):
        yield Way(name.format(signature), ask, tolerance, takes=takes, can_ask=can_ask)


def _predict(server: Server, signature: str, columns: Arrays) -> Arrays:
    request = PredictRequest()
    request.model_spec.signature_name = signature
    for name, values in columns.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(values))
    return {name: tf.make_ndarray(tensor) for name, tensor in server.call("Predict", request).outputs.items()}


def _post(server: Server, document: Mapping[str, Any]) -> Any:
    return json.loads(server.post("predict", json.dumps(document).encode()))


def _as_examples(batch: Batch) -> Arrays:
    return {"examples": np.array(batch.rows, object)}


def _inferring(
    server: Server, infer: Callable[[Server, list[tf.train.Example]], Array], output: str
) -> Callable[[Batch], Arrays]:
    """Asks `infer` for the numbers of one output, and gives them back in that output's shape and dtype."""

    def ask(batch: Batch) -> Arrays:
        numbers, expected = infer(server, batch.examples), batch.predictions[output]
        # A single probability is served as two classes; it is the second's.
        is_probability = numbers.ndim == 2 and expected.reshape(len(expected), -1).shape[1] == 1
        return {output: (numbers[:, 1] if is_probability else numbers).astype(expected.dtype).reshape(expected.shape)}

    return ask


def _classify(server: Server, examples: list[tf.train.Example]) -> Array:
    request = ClassificationRequest()
    request.model_spec.signature_name = "classify"
    request.input.example_list.examples.extend(examples)
    rows = server.call("Classify", request).result.classifications
    return np.array([[entry.score for entry in row.classes] for row in rows])


def _regress(server: Server, examples: list[tf.train.Example]) -> Array:
    request = RegressionRequest()
    request.model_spec.signature_name = "regress"
    request.input.example_list.examples.extend(examples)
    return np.array([row.value for row in server.call("Regress", request).result.regressions])
