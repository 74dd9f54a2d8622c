"""The TF Lite node: the model that it makes with each quantization, and how it judges it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tflite_models
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.tools import flatbuffer_utils
from tflite_models import TRAIN_ROWS, Case
from tfx.types import standard_artifacts
from tiny_artifacts import new_artifact

from contracts.errors import ExportError

Execute = Callable[..., Any]
PARAMETERS = (9 + 1) * 16 + (9 * 16 + 1) * 32 + (4 * 4 * 32 + 1) * 600 + (600 + 1) * 10
QUANTIZED = [
    ("float32", schema.TensorType.FLOAT32, 0.9),
    ("dynamic", schema.TensorType.INT8, 3.5),
    ("float16", schema.TensorType.FLOAT16, 1.9),
    ("int8", schema.TensorType.INT8, 3.5),
    ("int8_with_float_fallback", schema.TensorType.INT8, 3.5),
]


def report_of(model: Any) -> dict[str, Any]:
    return dict(json.loads(Path(model.uri, "report.json").read_text()))


def weights(model: Path) -> set[int]:
    """The types of the large matrices and kernels in a model; small ones are not quantized."""
    parsed = flatbuffer_utils.read_model(str(model))
    tensors = [tensor for graph in parsed.subgraphs for tensor in graph.tensors]
    large = [tensor for tensor in tensors if len(tensor.shape) > 1 and np.prod(tensor.shape) > 1_024]
    return {tensor.type for tensor in large if parsed.buffers[tensor.buffer].data is not None}


@pytest.mark.parametrize(("quantization", "weight_type", "times_smaller"), QUANTIZED)
def test_each_quantization_of_the_digits(
    digits: Case, execute: Execute, quantization: str, weight_type: int, times_smaller: float
) -> None:
    tflite_model = execute(digits, quantization=quantization)
    model, report = Path(tflite_model.uri, "model.tflite"), report_of(tflite_model)
    assert weights(model) == {weight_type}
    assert report["variables_bytes"] == 4 * PARAMETERS > 4 * 300_000
    assert tflite_model.size_bytes == report["size_bytes"] == model.stat().st_size
    assert times_smaller < report["variables_bytes"] / tflite_model.size_bytes < times_smaller + 0.5
    assert (tflite_model.quantization, tflite_model.blessed, report["refused"]) == (quantization, 1, None)
    assert tflite_model.latency_ms == report["latency_ms"] > 0
    assert report["rows"] == 397
    assert tflite_model.saved_model_accuracy > 0.9
    assert abs(tflite_model.accuracy - tflite_model.saved_model_accuracy) <= 0.005
    differences = report["differences"]
    assert set(differences) == {"probabilities", "class_ids"}
    assert 0 < differences["probabilities"]["mean"] < 0.01 > differences["class_ids"]["mean"]
    assert (differences["probabilities"]["max"] < 1e-5) == (quantization == "float32")


@pytest.mark.parametrize("quantization", [row[0] for row in QUANTIZED])
def test_inputs_and_outputs_are_the_saved_models(digits: Case, execute: Execute, quantization: str) -> None:
    model = execute(digits, quantization=quantization)
    runner = tf.lite.Interpreter(f"{model.uri}/model.tflite").get_signature_runner("predict_transformed")
    [(name, image)] = runner.get_input_details().items()
    assert (name, image["dtype"], image["shape_signature"].tolist()) == ("image", np.uint8, [-1, 8, 8, 1])
    outputs = {name: details["dtype"] for name, details in runner.get_output_details().items()}
    assert outputs == {"probabilities": np.float32, "class_ids": np.int64}


def test_the_recorded_accuracies_are_those_of_the_models(digits: Case, execute: Execute) -> None:
    model = execute(digits, quantization="int8")
    images, labels = (column[TRAIN_ROWS:] for column in tflite_models.digits())
    runner = tf.lite.Interpreter(f"{model.uri}/model.tflite").get_signature_runner("predict_transformed")
    assert model.accuracy == pytest.approx(np.mean(runner(image=images)["class_ids"] == labels))
    saved = tf.saved_model.load(str(digits.saved_model)).signatures["predict_transformed"]
    assert model.saved_model_accuracy == pytest.approx(np.mean(saved(image=images)["class_ids"] == labels))


@pytest.mark.parametrize("integer", ["int8", "uint8"])
def test_inputs_and_outputs_of_integers_are_judged_like_floats(
    digits: Case, table: Case, execute: Execute, integer: str
) -> None:
    asked = {"inference_input_type": integer, "inference_output_type": integer}
    model = execute(digits, quantization="int8", **asked)
    runner = tf.lite.Interpreter(f"{model.uri}/model.tflite").get_signature_runner("predict_transformed")
    outputs = {name: details["dtype"] for name, details in runner.get_output_details().items()}
    # What is an integer in the SavedModel stays one of the same type.
    assert outputs == {"probabilities": np.dtype(integer), "class_ids": np.int64}
    assert runner.get_input_details()["image"]["dtype"] == np.uint8
    assert model.blessed == 1
    assert abs(model.accuracy - model.saved_model_accuracy) <= 0.005
    assert 0 < report_of(model)["differences"]["probabilities"]["mean"] < 0.01
    assert "float_ops" not in report_of(model) or report_of(model)["float_ops"] == []


def test_a_table_is_judged_by_its_one_probability(table: Case, execute: Execute) -> None:
    model = execute(table, quantization="int8_with_float_fallback")
    assert (model.accuracy, model.saved_model_accuracy, model.blessed) == (0.9, 0.9, 1)
    assert report_of(model)["judged_by"] == "probability"
    assert report_of(model)["float_ops"] == ["PACK"]


def test_int8_without_fallback_names_the_ops_that_stay_in_float(table: Case, execute: Execute) -> None:
    with pytest.raises(ExportError) as caught:
        execute(table, quantization="int8")
    assert str(caught.value) == (
        "ops of the model cannot be quantized to int8: PACK.\n"
        "Set tflite.quantization to int8_with_float_fallback, which leaves them in float32, or build the model "
        "without them."
    )


def test_a_model_of_mixed_precision_is_judged_as_it_is_served(execute: Execute, tmp_path: Path) -> None:
    def save_model(folder: Path) -> None:
        weight = tf.Variable(np.full((1, 1), 8, np.float32))

        def predict(fare: tf.Tensor) -> dict[str, tf.Tensor]:
            logits = tf.matmul(tf.cast(fare[:, None], tf.bfloat16) - 1, tf.cast(weight, tf.bfloat16))
            return {"probability": tf.sigmoid(tf.cast(logits, tf.float32))}

        tflite_models.save(folder, predict, {"fare": tf.TensorSpec([None], tf.float32)}, [weight])

    # 1.001 is 1 in bfloat16, and therefore not above the SavedModel's threshold.
    columns = {"fare": np.array([0, 0.5, 1.001, 2], np.float32), "big": np.array([0, 0, 1, 1])}
    spec = {name: tflite_models.TABLE_SPEC[name] for name in columns}
    case = tflite_models.new_case(tmp_path / "case", save_model, spec, "big", train=columns, eval=columns)
    model = execute(case, quantization="dynamic")
    assert (model.saved_model_accuracy, model.accuracy, model.blessed) == (0.75, 1.0, 1)


@pytest.fixture
def overflowing(tmp_path: Path) -> Case:
    """A model whose weight is out of float16's range; it then never predicts the class of three of the four rows."""

    def save_model(folder: Path) -> None:
        weight = tf.Variable(np.full((1, 1), 1e6, np.float32))

        def predict(fare: tf.Tensor) -> dict[str, tf.Tensor]:
            return {"probability": tf.sigmoid(tf.nn.relu(tf.matmul(fare[:, None], weight)) * 1e-6 - 0.5)}

        tflite_models.save(folder, predict, {"fare": tf.TensorSpec([None], tf.float32)}, [weight])

    columns = {"fare": np.array([-1, 1, 1.5, 2], np.float32), "big": np.array([0, 1, 1, 1])}
    spec = {name: tflite_models.TABLE_SPEC[name] for name in columns}
    return tflite_models.new_case(tmp_path / "case", save_model, spec, "big", train=columns, eval=columns)


def test_a_model_that_lost_too_much_is_refused(overflowing: Case, execute: Execute) -> None:
    model = execute(overflowing, quantization="float16", max_accuracy_loss=0.5)
    report = report_of(model)
    assert (model.blessed, report["blessed"], report["rows"]) == (0, False, 4)
    assert model.saved_model_accuracy == 1.0
    lost = 1.0 - model.accuracy
    assert lost > 0.5
    assert report["refused"] == (f"its accuracy, {model.accuracy:.4f}, is more than 0.5 below the SavedModel's, 1.0000")
    assert model.get_string_custom_property("refused") == report["refused"]
    assert report["max_accuracy_loss"] == 0.5
    assert Path(model.uri, "model.tflite").exists()
    assert execute(overflowing, quantization="float16", max_accuracy_loss=lost).blessed == 1


def test_a_model_that_the_evaluator_refused_is_not_converted(digits: Case, execute: Execute, tmp_path: Path) -> None:
    blessing = new_artifact(tmp_path, standard_artifacts.ModelBlessing)
    blessing.set_int_custom_property("blessed", 0)
    refused = Case(digits.saved_model, {**digits.inputs, "model_blessing": [blessing]}, digits.label)
    model = execute(refused, quantization="int8")
    assert [path.name for path in Path(model.uri).iterdir()] == ["report.json"]
    assert report_of(model) == {
        "quantization": "int8",
        "blessed": False,
        "refused": "the Evaluator did not bless the model",
    }
    assert (model.blessed, model.quantization) == (0, "int8")
    assert model.get_string_custom_property("refused") == "the Evaluator did not bless the model"


def test_a_label_that_is_no_class_is_refused_before_the_conversion(table: Case, execute: Execute) -> None:
    with pytest.raises(ExportError) as caught:
        execute(Case(table.saved_model, table.inputs, "weight"), quantization="dynamic")
    assert str(caught.value) == (
        "a TF Lite model is judged by the classes that it predicts, and the label 'weight' is float32; expected an "
        "integer class id.\n"
        "Return the label as int64 from preprocessing_fn, or set tflite.quantization to none."
    )
