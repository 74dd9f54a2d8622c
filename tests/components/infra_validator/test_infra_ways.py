"""How requests are written and answers read, in each way to ask."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis.classification_pb2 import ClassificationResponse
from tensorflow_serving.apis.predict_pb2 import PredictResponse

from components.evaluation.predictions import PredictionsTable, row_digest
from components.infra_validator import columns, ways
from components.infra_validator.comparison import Allowed
from components.infra_validator.sample import Batch
from components.infra_validator.settings import InfraValidatorSettings
from contracts.model_card import Signature, Tensor

ALLOWED = Allowed.by(InfraValidatorSettings(), "float32")
PREDICT = {
    "fare": Tensor(dtype="float32", shape=[None], feature="the fare", missing="NaN"),
    "words": Tensor(dtype="string", shape=[None, None], missing=""),
    "place": Tensor(dtype="int64", shape=[None, 2]),
}


def example(**features: list[Any]) -> bytes:
    made = tf.train.Example()
    for name, values in features.items():
        feature = made.features.feature[name.replace("_", " ")]
        if values and isinstance(values[0], bytes):
            feature.bytes_list.value.extend(values)
        elif values and isinstance(values[0], int):
            feature.int64_list.value.extend(values)
        else:
            feature.float_list.value.extend(values)
    return bytes(made.SerializeToString())


ROWS = Batch(
    [
        example(the_fare=[12.5], words=[b"a", "ü".encode(), b"\xff"], place=[1, 2]),
        example(place=[3, 4]),
    ],
    [0, 1],
    {"score": np.array([[0.25], [0.5]], np.float32)},
    {},
)


class Recorded:
    """A server that remembers what it was asked and gives one answer."""

    def __init__(self, answer: Any = None) -> None:
        self.asked: list[Any] = []
        self._answer = answer

    def call(self, api: str, request: Any) -> Any:
        """Answers as gRPC does."""
        self.asked.append((api, request))
        return self._answer

    def post(self, verb: str, body: bytes) -> bytes:
        """Answers as REST does."""
        self.asked.append((verb, json.loads(body)))
        return json.dumps(self._answer).encode()


def asked(server: Recorded, name: str, batch: Batch = ROWS, **inputs: dict[str, Tensor]) -> Any:
    signatures = {name: Signature(inputs=given, outputs={}) for name, given in inputs.items()}
    found = {way.name: way for way in ways.of_server(server, signatures, batch.predictions, ALLOWED)}
    return found[name].ask(batch)


ANSWERS: list[tuple[Any, dict[str, Any]]] = [
    ([[0.25], [0.5]], {"score": [[0.25], [0.5]]}),
    ({"score": [[0.25], [0.5]], "id": [1, 0]}, {"score": [[0.25], [0.5]], "id": [1, 0]}),
]


@pytest.mark.parametrize(("answer", "expected"), ANSWERS)
def test_columns_of_raw_features_as_json(answer: Any, expected: dict[str, Any]) -> None:
    server = Recorded({"outputs": answer})
    found = asked(server, "REST predict by columns", predict=PREDICT)
    assert {name: values.tolist() for name, values in found.items()} == expected
    assert found["score"].dtype == np.float32
    [(verb, body)] = server.asked
    fares = body["inputs"].pop("fare")
    assert (verb, fares[0], np.isnan(fares[1])) == ("predict", 12.5, True)
    assert body == {
        "signature_name": "predict",
        "inputs": {"words": [["a", "ü", {"b64": "/w=="}], ["", "", ""]], "place": [[1, 2], [3, 4]]},
    }


def test_rows_of_raw_features_as_json() -> None:
    server = Recorded({"predictions": [{"score": [0.25], "id": 1}, {"score": [0.5], "id": 0}]})
    found = asked(server, "REST predict by rows", predict=PREDICT)
    assert {name: values.tolist() for name, values in found.items()} == ANSWERS[1][1]
    [(_, body)] = server.asked
    assert body["instances"][0] == {"fare": 12.5, "words": ["a", "ü", {"b64": "/w=="}], "place": [1, 2]}


def test_texts_in_answers_are_bytes() -> None:
    texts = Batch(ROWS.rows, ROWS.numbers, {"name": np.array([b"", b""], object)}, {})
    for answer in (["x", {"b64": "/w=="}], [{"name": "x"}, {"name": {"b64": "/w=="}}]):
        found = asked(Recorded({"predictions": answer}), "REST serving_default by rows", texts)
        assert found["name"].tolist() == [b"x", b"\xff"]


def test_examples_go_as_they_are() -> None:
    response = PredictResponse()
    response.outputs["score"].CopyFrom(tf.make_tensor_proto(np.array([[0.25], [0.5]], np.float32)))
    server = Recorded(response)
    assert asked(server, "gRPC serving_default")["score"].tolist() == [[0.25], [0.5]]
    [(api, request)] = server.asked
    assert (api, list(request.inputs["examples"].string_val)) == ("Predict", ROWS.rows)


def test_transformed_features_have_the_inputs_types_and_shapes() -> None:
    batch = Batch(ROWS.rows, [0, 1], {}, {"a b": np.array([1, 2]), "pixels": np.array([[0], [255]])})
    inputs = {
        "a_b": Tensor(dtype="float32", shape=[None, 1], feature="a b"),
        "pixels": Tensor(dtype="uint8", shape=[None, 1]),
    }
    found = columns.transformed_inputs(batch, inputs)
    assert (found["a_b"].tolist(), found["a_b"].dtype) == ([[1.0], [2.0]], np.float32)
    assert (found["pixels"].tolist(), found["pixels"].dtype) == ([[0], [255]], np.uint8)


def test_a_row_whose_value_means_missing_cannot_be_asked() -> None:
    raw = columns.RawColumns(PREDICT)
    rows = [
        example(the_fare=[float("nan")], place=[1, 2]),
        example(the_fare=[0.0], words=[b"a", b""], place=[1, 2]),
        example(the_fare=[0.0], words=[b"a"], place=[1, 2]),
        example(place=[0, 0]),
    ]
    assert raw.can_ask(Batch(rows, [0, 1, 2, 3], {}, {})) == [2, 3]


def test_of_two_classes_the_second_has_the_chance() -> None:
    response = ClassificationResponse()
    for chance in (0.25, 0.5):
        row = response.result.classifications.add()
        row.classes.add(label="0", score=1 - chance)
        row.classes.add(label="1", score=chance)
    assert asked(Recorded(response), "gRPC classify", classify={})["score"].tolist() == [[0.25], [0.5]]


def table(scores: list[list[float]], rows: list[bytes]) -> PredictionsTable:
    digests = np.array([row_digest(row) for row in rows], np.uint64)
    none = np.zeros((len(rows), 0), np.int32)
    return PredictionsTable(len(rows), digests, np.zeros(len(rows)), np.array(scores, np.float32), None, (), none, ())


def test_the_table_is_looked_up_by_the_rows_digests() -> None:
    [way] = ways.of_table(table([[0.5], [0.75]], [ROWS.rows[1], b"other"]), ROWS, ALLOWED)
    assert way.can_ask(ROWS) == [1]
    assert way.ask(ROWS.take([1]))["score"].tolist() == [[0.5]]


def test_the_table_s_output_is_the_nearest_of_its_width() -> None:
    outputs = {name: np.full((2, 1), value, np.float32) for name, value in (("far", 9), ("near", 0.5))}
    batch = Batch(ROWS.rows, [0, 1], outputs | {"wide": np.zeros((2, 3), np.float32)}, {})
    [way] = ways.of_table(table([[0.4], [0.4]], ROWS.rows), batch, ALLOWED)
    assert list(way.ask(batch)) == ["near"]
    assert ways.of_table(table([[], []], ROWS.rows), batch, ALLOWED) == []
