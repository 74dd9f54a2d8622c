"""Conversion: what cannot be converted, and the error messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tflite_models
from pydantic import ValidationError

from components.tflite import convert
from components.tflite.judge import Interpreter
from components.tflite.saved_model import Arrays, SavedModel
from components.tflite.settings import InferenceType, TFLiteSettings
from contracts.errors import ExportError
from contracts.model_card import CARD_FILE, Card, Signature, Tensor

ROWS = np.linspace(-1, 1, 80, dtype=np.float32).reshape(20, 4)


def saved(folder: Path, last: Callable[[tf.Tensor], tf.Tensor], batch: int | None = None) -> Path:
    """A SavedModel of one dense layer and a function of its output."""
    weights = tf.Variable(np.eye(4, 3, dtype=np.float32))

    def predict(x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"scores": last(tf.matmul(x, weights))}

    tflite_models.save(folder / "model", predict, {"x": tf.TensorSpec([batch, 4], tf.float32)}, [weights])
    return folder / "model"


def representative() -> Iterator[Arrays]:
    for row in ROWS:
        yield {"x": row[None]}


@pytest.mark.parametrize("quantization", ["dynamic", "int8", "int8_with_float_fallback"])
def test_ops_that_tf_lite_lacks_are_named(tmp_path: Path, quantization: convert.Quantization) -> None:
    model = saved(tmp_path, lambda scores: tf.math.erf(tf.strings.to_number(tf.strings.as_string(scores))))
    with pytest.raises(ExportError) as caught:
        convert.convert(model, quantization, representative)
    assert str(caught.value) == (
        "TF Lite lacks ops that the model uses: AsString, Erf, StringToNumber.\n"
        "Build the model without them (Select TF ops are not used, since phones lack them), do their work in "
        "preprocessing_fn, or set tflite.quantization to none."
    )
    assert "ERROR_NEEDS_FLEX_OPS" in str(caught.value.__cause__)


def test_an_error_without_ops_is_told_by_its_first_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_converter: object) -> bytes:
        raise RuntimeError("\n  Could not quantize.<unknown>:0: error: No such scale.\nloc(unknown)")

    model = saved(tmp_path, tf.nn.softmax)
    # The class of the object that `from_saved_model` returns.
    converter_class = type(tf.lite.TFLiteConverter.from_saved_model(str(model), ["predict_transformed"]))
    monkeypatch.setattr(converter_class, "convert", fail)
    with pytest.raises(ExportError) as caught:
        convert.convert(model, "dynamic", representative)
    assert str(caught.value) == (
        "the model cannot be converted to TF Lite. The converter says: No such scale.\n"
        "Build the model from other layers, or set tflite.quantization to none."
    )


def test_int8_refuses_what_the_fallback_leaves_in_float(tmp_path: Path) -> None:
    model = saved(tmp_path, tf.sin)
    with pytest.raises(ExportError, match=r"^ops of the model cannot be quantized to int8: SIN\.\nSet tflite\.quant"):
        convert.convert(model, "int8", representative)
    content = convert.convert(model, "int8_with_float_fallback", representative)
    assert convert.float_ops(content) == ["SIN"]
    scores = Interpreter(content, 1)({"x": ROWS})["scores"]
    np.testing.assert_allclose(scores, np.sin(ROWS[:, :3]), atol=0.02)


def test_without_quantization_the_outputs_are_equal(tmp_path: Path) -> None:
    model = saved(tmp_path, tf.nn.softmax)
    content = convert.convert(model, "float32", representative)
    actual, expected = Interpreter(content, 1)({"x": ROWS}), SavedModel(model)({"x": ROWS})
    np.testing.assert_allclose(actual["scores"], expected["scores"], rtol=1e-6)


@pytest.mark.parametrize("integer", ["int8", "uint8"])
def test_integers_stand_for_the_floats_that_go_in_and_come_out(tmp_path: Path, integer: InferenceType) -> None:
    model = saved(tmp_path, tf.nn.softmax)
    content = convert.convert(model, "int8", representative, integer, integer)
    details = tf.lite.Interpreter(model_content=content).get_input_details()
    assert [detail["dtype"] for detail in details] == [np.dtype(integer)]
    actual, expected = Interpreter(content, 1)({"x": ROWS}), SavedModel(model)({"x": ROWS})
    np.testing.assert_allclose(actual["scores"], expected["scores"], atol=0.01)
    # Beyond what the representative rows have, the nearest value that the scale can express is taken.
    beyond, nearest = (Interpreter(content, 1)({"x": rows})["scores"] for rows in (ROWS * 9, np.clip(ROWS * 9, -1, 1)))
    np.testing.assert_array_equal(beyond, nearest)
    assert Interpreter(content, 1).latency_ms({"x": ROWS[:1]}) > 0


@pytest.mark.parametrize("quantization", ["float32", "dynamic", "float16"])
def test_integers_go_in_only_where_the_model_is_quantized_to_them(quantization: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TFLiteSettings(quantization=quantization, inference_input_type="int8")
    assert (
        "inference_input_type int8 goes with quantization int8 or int8_with_float_fallback; "
        f"received {quantization}" in str(caught.value)
    )


@pytest.mark.parametrize(("batch", "rows"), [(None, None), (1, 1)])
def test_the_batch_dimension_of_the_signature(tmp_path: Path, batch: int | None, rows: int | None) -> None:
    content = convert.convert(saved(tmp_path, tf.nn.softmax, batch), "dynamic", representative)
    interpreter = Interpreter(content, 1)
    assert interpreter.batch_rows == rows
    assert interpreter.latency_ms({"x": ROWS[:1]}) > 0


def test_a_fixed_batch_of_several_rows_is_refused(tmp_path: Path) -> None:
    content = convert.convert(saved(tmp_path, tf.nn.softmax, 4), "dynamic", representative)
    with pytest.raises(ExportError, match=r"takes batches of 4 rows; expected any number, or 1\.\nLeave the batch"):
        Interpreter(content, 1)


def test_features_go_by_the_names_that_the_card_has(tmp_path: Path) -> None:
    model = saved(tmp_path, tf.nn.softmax)
    assert SavedModel(model).features == {"x": "x"}
    (model / "assets.extra").mkdir()
    tensor = Tensor(dtype="float32", shape=[None, 4], feature="ticket-price")
    card = Card(
        name="model",
        label="label",
        created=datetime.now(timezone.utc),
        num_parameters=1,
        signatures={"predict_transformed": Signature(inputs={"x": tensor}, outputs={})},
    )
    (model / CARD_FILE).write_text(card.model_dump_json())
    assert SavedModel(model).features == {"x": "ticket-price"}


@pytest.mark.parametrize("reduced", [tf.bfloat16, tf.float16])
@pytest.mark.parametrize("quantization", ["dynamic", "float16", "int8"])
def test_a_model_of_mixed_precision_is_converted_in_float32(
    tmp_path: Path, reduced: tf.DType, quantization: convert.Quantization
) -> None:
    dense = tf.Variable(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3))

    def predict(b: tf.Tensor, a: tf.Tensor) -> dict[str, tf.Tensor]:
        hidden = tf.nn.relu(tf.matmul(tf.cast(b, reduced), tf.cast(dense, reduced)) + tf.constant(0.5, reduced))
        scores = tf.cast(hidden, tf.float32) * a
        return {"scores": scores, "class_ids": tf.argmax(scores, axis=1)}

    inputs = {"b": tf.TensorSpec([None, 4], tf.float32), "a": tf.TensorSpec([None, 1], tf.float32)}
    tflite_models.save(tmp_path / "model", predict, inputs, [dense])
    mixed = SavedModel(tmp_path / "model")
    assert not convert.is_float32(mixed.signature)
    convert.save_in_float32(mixed.signature, tmp_path / "widened")
    widened = SavedModel(tmp_path / "widened")
    assert convert.is_float32(widened.signature)
    assert (widened.inputs.keys(), widened.outputs.keys()) == (mixed.inputs.keys(), mixed.outputs.keys())

    rows = {"b": ROWS, "a": np.full((20, 1), 2.0, np.float32)}
    expected = 2 * np.maximum(ROWS @ dense.numpy() + 0.5, 0)
    # Where terms nearly cancel, the result has the rounding errors of the terms, which differ between processors.
    np.testing.assert_allclose(widened(rows)["scores"], expected, rtol=1e-6, atol=4 * np.finfo(np.float32).eps)
    singles = [{name: values[i : i + 1] for name, values in rows.items()} for i in range(20)]
    content = convert.convert(tmp_path / "widened", quantization, lambda: iter(singles))
    actual = Interpreter(content, 1)(rows)
    np.testing.assert_allclose(actual["scores"], expected, atol=0.05)
    assert actual["class_ids"].dtype == np.int64


def test_a_model_without_the_signature_names_those_that_it_has(tmp_path: Path) -> None:
    inputs = {"x": tf.TensorSpec([None], tf.float32)}
    tflite_models.save(tmp_path / "model", lambda x: {"y": x}, inputs, [], "serving_default")
    with pytest.raises(ExportError) as caught:
        SavedModel(tmp_path / "model")
    assert str(caught.value) == (
        f"{tmp_path}/model has no signature 'predict_transformed'; it has serving_default.\n"
        "Train the model again with this version (`millrace run --from Trainer`)."
    )
