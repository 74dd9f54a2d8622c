"""What TensorFlow Serving's Classify and Regress answer, over gRPC and REST, for each kind of task."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel
from tensorflow_serving.apis.classification_pb2 import ClassificationRequest
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.regression_pb2 import RegressionRequest
from tiny_artifacts import Tiny

from components.trainer import export, inference, signatures
from contracts.model_card import read_card
from serving import in_process

ROWS = [{"id": 7, "fare": 12.5, "company": "Red"}, {"id": 8, "company": "Blue"}, {"id": 9, "fare": 3.5}]
Layer = Callable[[tf.Tensor], tf.Tensor]


def model_of(layer: Layer) -> tf_keras.Model:
    """A model of the fare whose output `layer` makes, always with the same weights."""
    tf_keras.utils.set_random_seed(5)
    fare = tf_keras.Input((), name="fare")
    return tf_keras.Model({"fare": fare}, layer(tf.reshape(fare, [-1, 1])))


def dense(units: int, activation: str | None, name: str) -> tf_keras.layers.Layer:
    return tf_keras.layers.Dense(units, activation, name=name, bias_initializer="glorot_normal")


class Served:
    """An exported model behind the model server's code."""

    def __init__(self, server: in_process.InProcess) -> None:
        self._server = server

    def outputs(self) -> dict[str, np.ndarray[Any, Any]]:
        """What `serving_default` answers to ROWS."""
        request = PredictRequest()
        request.inputs["examples"].CopyFrom(tf.make_tensor_proto([one.SerializeToString() for one in self._examples()]))
        answer = self._server.call("Predict", request)
        return {name: tf.make_ndarray(tensor) for name, tensor in answer.outputs.items()}

    def ask(self, api: str, request: Any) -> Any:
        """What gRPC's Classify or Regress answers to ROWS."""
        request.model_spec.signature_name = api.lower()
        request.input.example_list.examples.extend(self._examples())
        return self._server.call(api, request).result

    def post(self, verb: str) -> Any:
        """What REST answers to ROWS."""
        body = {"signature_name": verb, "examples": ROWS}
        return json.loads(self._server.post(verb, json.dumps(body).encode()))["results"]

    @staticmethod
    def _examples() -> Iterator[Any]:
        for row in ROWS:
            example = tf.train.Example()
            example.features.feature["id"].int64_list.value.append(row["id"])
            if "fare" in row:
                example.features.feature["fare"].float_list.value.append(row["fare"])
            if "company" in row:
                example.features.feature["company"].bytes_list.value.append(row["company"].encode())
            yield example


def answers(
    tiny: Tiny, folder: Path, layer: Layer, ask: Callable[[Served], Any], label: str = "big", **options: Any
) -> Any:
    """Exports a model with this last layer, and asks it."""
    export.save(model_of(layer), tiny.output, label, str(folder), export.Options(**options))
    with in_process.serve("small", folder, 60.0) as server:
        return ask(Served(server))


def classified(served: Served) -> tuple[list[list[tuple[str, float]]], Any, dict[str, np.ndarray[Any, Any]]]:
    result = served.ask("Classify", ClassificationRequest())
    pairs = [[(one.label, one.score) for one in row.classes] for row in result.classifications]
    return pairs, served.post("classify"), served.outputs()


@pytest.mark.parametrize("names", [["small", "big"], None])
def test_a_chance_is_two_classes(tiny: Tiny, tmp_path: Path, names: list[str] | None) -> None:
    layer = dense(1, "sigmoid", "score")
    pairs, posted, outputs = answers(tiny, tmp_path, layer, classified, class_names=names)
    chances = outputs["score"].ravel().tolist()
    assert len(set(chances)) == 3
    small, big = names or ("0", "1")
    assert pairs == [[(small, pytest.approx(1 - chance, abs=1e-7)), (big, chance)] for chance in chances]
    assert [[label for label, _ in row] for row in posted] == [[small, big]] * 3
    np.testing.assert_allclose([row[1][1] for row in posted], chances, rtol=1e-6)
    assert read_card(tmp_path).task == "binary"


def test_several_classes_have_their_names(tiny: Tiny, tmp_path: Path) -> None:
    names = ["tiny", "middling", "large"]
    layer = dense(3, "softmax", "probabilities")
    pairs, posted, outputs = answers(tiny, tmp_path, layer, classified, class_names=names)
    wanted = [list(zip(names, row, strict=True)) for row in outputs["probabilities"].tolist()]
    assert pairs == wanted
    assert posted == [[[name, pytest.approx(score, rel=1e-6)] for name, score in row] for row in wanted]
    assert read_card(tmp_path).task == "multiclass"


def test_names_of_other_classes_than_the_model_s_are_not_given(tiny: Tiny, tmp_path: Path) -> None:
    pairs, _, _ = answers(tiny, tmp_path, dense(3, None, "logits"), classified, class_names=["a", "b"])
    assert [label for label, _ in pairs[0]] == ["0", "1", "2"]


def test_a_number_is_a_regression(tiny: Tiny, tmp_path: Path) -> None:
    def ask(served: Served) -> Any:
        result = served.ask("Regress", RegressionRequest())
        return [one.value for one in result.regressions], served.post("regress"), served.outputs()

    values, posted, outputs = answers(
        tiny, tmp_path, dense(1, None, "price"), ask, label="fare", raw_examples=tiny.serialized("eval")[:2]
    )
    assert values == outputs["price"].ravel().tolist()
    assert len(set(values)) == 3
    np.testing.assert_allclose(posted, values, rtol=1e-6)
    assert read_card(tmp_path).task == "regression"


Outputs = Mapping[str, tf.Tensor]


def chance_alone(outputs: Outputs) -> Outputs:
    return {"rows": outputs["score"][:, 0], "ids": tf.cast(outputs["score"][:, 0] > 0.5, tf.int64)}


def two_numbers(outputs: Outputs) -> Outputs:
    return {"one": outputs["score"], "other": -outputs["score"]}


def one_of_two(outputs: Outputs) -> Outputs:
    return {"one": outputs["score"], "probability": tf.identity(outputs["score"])}


@pytest.mark.parametrize(
    ("layer", "label", "serving_outputs", "task"),
    [
        (dense(1, "sigmoid", "score"), "big", chance_alone, "binary"),
        (dense(1, "sigmoid", "score"), "big", one_of_two, "binary"),
        (dense(1, "sigmoid", "score"), "big", two_numbers, None),
        (dense(1, "sigmoid", "score"), "fare", None, "regression"),
        (dense(1, None, "score"), "fare_bucket", None, "regression"),
        (dense(3, None, "score"), "fare", None, None),
        (lambda rows: dense(3, None, "score")(rows)[:, :, tf.newaxis], "big", None, None),
    ],
)
def test_the_task_is_read_from_output_and_label(
    tiny: Tiny, layer: Layer, label: str, serving_outputs: Any, task: str | None
) -> None:
    # The label `fare` is an input of the model as well, which says nothing against its signatures.
    traced = signatures.trace(model_of(layer), tiny.output, label, serving_outputs)
    names: Sequence[str] = sorted(traced.functions.keys() & inference.METHODS.keys())
    assert traced.task == task
    assert names == {"binary": ["classify"], "multiclass": ["classify"], "regression": ["regress"], None: []}[task]


def test_the_saved_model_names_the_methods(tiny: Tiny, tmp_path: Path) -> None:
    # TensorFlow Serving looks at them with --enable_signature_method_name_check.
    export.save(model_of(dense(1, "sigmoid", "score")), tiny.output, "big", str(tmp_path))
    [graph] = SavedModel.FromString((tmp_path / "saved_model.pb").read_bytes()).meta_graphs
    methods = {name: one.method_name for name, one in graph.signature_def.items() if not name.startswith("__")}
    assert methods.pop("classify") == "tensorflow/serving/classify"
    assert set(methods.values()) == {"tensorflow/serving/predict"}
    assert set(tf.saved_model.load(str(tmp_path)).signatures) == {"classify", *methods}
