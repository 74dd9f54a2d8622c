"""What an exported model answers, against the trained model itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
import tiny_recipe
from tiny_artifacts import Tiny, serialized

from components.trainer import export, features, signatures
from contracts.errors import TrainingError

MISSING = {"fare": float("nan"), "company": ""}
BATCHES = (1, 30)


class Counted(tf_keras.layers.Layer):
    """Passes everything on and counts how often Python came by."""

    calls = 0

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Keras's hook."""
        Counted.calls += 1
        return inputs


def build(tiny: Tiny) -> tf_keras.Model:
    """The tiny recipe's model with its first weights."""
    tf_keras.utils.set_random_seed(3)
    return tiny_recipe.build_model(features.from_schema(tiny.output.transformed_metadata.schema, "big"), {})


def two_outputs(dtypes: Mapping[str, str]) -> tf_keras.Model:
    """A model with an embedding layer and two outputs, whose inputs may be of other dtypes than the features."""
    tf_keras.utils.set_random_seed(4)
    shapes = {"fare": (), "fare_bucket": (), "company": (1,)}
    inputs = {
        name: tf_keras.Input(shape, name=name, dtype=dtypes.get(name, "int64" if name != "fare" else "float32"))
        for name, shape in shapes.items()
    }
    numbers = [tf.reshape(tf.cast(tensor, tf.float32), [-1, 1]) for tensor in inputs.values()]
    vector = tf_keras.layers.Dense(3, name="vector")(tf.concat(numbers, axis=1))
    logits = tf_keras.layers.Dense(2, name="logits")(Counted(name="counted")(vector))
    return tf_keras.Model(inputs, [logits, tf_keras.layers.Dense(1, name="risk")(vector)])


@pytest.fixture(scope="module")
def model(tiny: Tiny) -> tf_keras.Model:
    return build(tiny)


@pytest.fixture(scope="module")
def saved(tiny: Tiny, model: tf_keras.Model, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The signatures of the model saved and loaded again."""
    folder = tmp_path_factory.mktemp("saved")
    export.save(model, tiny.output, "big", str(folder))
    loaded = tf.saved_model.load(str(folder))
    return dict(loaded.signatures) | {"loaded": loaded}  # which keeps its variables alive


@pytest.fixture
def half_precision() -> Iterator[None]:
    tf_keras.mixed_precision.set_global_policy("mixed_bfloat16")
    yield
    tf_keras.mixed_precision.set_global_policy("float32")


def expected(model: tf_keras.Model, tiny: Tiny, rows: int) -> list[Any]:
    """The model's outputs for the first transformed rows."""
    transformed = tiny.tensors(tiny.transformed, "eval")
    found = model({name: transformed[name][:rows] for name in model.input_names}, training=False)
    return [tensor.numpy() for tensor in tf.nest.flatten(found)]


def asked(tiny: Tiny, signature: str, rows: int) -> dict[str, tf.Tensor]:
    """The first rows, as each signature takes them."""
    if signature == "predict":
        raw = tiny_recipe.EVAL[:rows]
        values = {n: [MISSING[n] if row[n] is None else row[n] for row in raw] for n in MISSING}
        return {name: tf.constant(column) for name, column in values.items()}
    if signature == "predict_transformed":
        transformed = tiny.tensors(tiny.transformed, "eval")
        return {name: tf.constant(transformed[name][:rows]) for name in ("id", "fare", "fare_bucket", "company")}
    return {"examples": tf.constant(tiny.serialized("eval", without="tips")[:rows])}


def inputs_of(function: Any) -> dict[str, tuple[tf.DType, list[int | None]]]:
    return {name: (spec.dtype, spec.shape.as_list()) for name, spec in function.structured_input_signature[1].items()}


def test_the_signatures_are_those_that_are_documented(saved: Any) -> None:
    scoring = ["predict", "predict_transformed", "serving_default"]
    assert sorted(saved.keys() - {"loaded"}) == ["classify", *scoring, "transform_features", "transform_label"]
    for name in scoring:
        assert list(saved[name].structured_outputs) == ["score"]


def test_predict_asks_for_what_the_outputs_depend_on_and_nothing_else(saved: Any) -> None:
    # `id` is an input of the model that no output depends on; `tips` makes the label.
    assert inputs_of(saved["predict"]) == {"fare": (tf.float32, [None]), "company": (tf.string, [None])}


def test_predict_transformed_asks_for_the_model_s_inputs(saved: Any) -> None:
    assert inputs_of(saved["predict_transformed"]) == {
        "id": (tf.int64, [None]),
        "fare": (tf.float32, [None]),
        "fare_bucket": (tf.int64, [None]),
        "company": (tf.int64, [None]),
    }


@pytest.mark.parametrize("rows", BATCHES)
@pytest.mark.parametrize("signature", ["serving_default", "predict", "predict_transformed"])
def test_every_signature_scores_as_the_trained_model_does(
    saved: Any, tiny: Tiny, model: tf_keras.Model, signature: str, rows: int
) -> None:
    [wanted] = expected(model, tiny, rows)
    [found] = saved[signature](**asked(tiny, signature, rows)).values()
    assert found.shape == (rows, 1)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert rows == 1 or wanted.std() > 0.01


@pytest.mark.parametrize("missing", ["fare", "company"])
def test_a_missing_value_is_a_feature_that_the_example_does_not_have(saved: Any, missing: str) -> None:
    row = {"id": 7, "fare": 12.5, "company": "Red"}
    without = serialized({name: value for name, value in row.items() if name != missing})
    whole = serialized(row)
    values = {"fare": 12.5, "company": "Red"} | {missing: MISSING[missing]}
    # Alone in a batch, where the column has no value at all, and beside a row that has one.
    for examples in ([without], [whole, without]):
        columns = {"fare": [12.5], "company": ["Red"]} if len(examples) == 2 else {"fare": [], "company": []}
        tensors = {name: tf.constant([*columns[name], values[name]]) for name in values}
        [wanted] = saved["serving_default"](examples=tf.constant(examples)).values()
        [found] = saved["predict"](**tensors).values()
        np.testing.assert_array_equal(found, wanted)
    assert wanted[0] != wanted[1]


def test_python_comes_by_once_for_the_model_whatever_is_asked(tiny: Tiny) -> None:
    model = two_outputs({})
    Counted.calls = 0
    traced = signatures.trace(model, tiny.output, "big").functions
    assert Counted.calls == 1
    for rows in BATCHES:
        transformed = asked(tiny, "predict_transformed", rows)
        column = {"company": transformed["company"][:, None]}
        del transformed["id"]
        traced["predict_transformed"](transformed | column)
        traced["predict"](asked(tiny, "predict", rows))
        traced["serving_default"](**asked(tiny, "serving_default", rows))
    assert Counted.calls == 1


def test_several_outputs_are_served_by_name_and_features_are_cast_to_the_model_s_inputs(tiny: Tiny) -> None:
    model = two_outputs({"company": "uint8", "fare_bucket": "int32"})
    traced = signatures.trace(model, tiny.output, "big")
    assert [(given.feature, given.spec.dtype.name, given.spec.shape.as_list()) for given in traced.model_inputs] == [
        ("fare", "float32", [None]),
        ("fare_bucket", "int32", [None]),
        ("company", "uint8", [None, 1]),
    ]
    wanted = expected(model, tiny, 30)
    for name in ("serving_default", "predict"):
        question = asked(tiny, name, 30)
        found = traced.functions[name](question if name == "predict" else question["examples"])
        assert list(found) == ["logits", "risk"]
        for tensor, values in zip(found.values(), wanted, strict=True):
            np.testing.assert_allclose(tensor, values, rtol=1e-5)


@pytest.mark.usefixtures("half_precision")
def test_a_model_in_half_precision_serves_float32(tiny: Tiny) -> None:
    model = two_outputs({})
    assert {tensor.dtype for tensor in model.outputs} == {tf.bfloat16}
    traced = signatures.trace(model, tiny.output, "big", embedding_layer="vector")
    for name in ("serving_default", "embedding"):
        for tensor in traced.functions[name](**asked(tiny, name, 2)).values():
            assert tensor.dtype == tf.float32
    found = traced.functions["serving_default"](**asked(tiny, "serving_default", 30))
    for tensor, values in zip(found.values(), expected(model, tiny, 30), strict=True):
        np.testing.assert_allclose(tensor, values.astype(np.float32), rtol=1e-2)


def test_serving_outputs_decides_what_is_served(tiny: Tiny) -> None:
    def best(outputs: Mapping[str, tf.Tensor]) -> Mapping[str, tf.Tensor]:
        chances = tf.nn.softmax(outputs["logits"])
        return {"probabilities": tf.cast(chances, tf.float16), "class_ids": tf.argmax(chances, axis=1)}

    model = two_outputs({})
    traced = signatures.trace(model, tiny.output, "big", serving_outputs=best)
    found = traced.functions["predict"](asked(tiny, "predict", 30))
    logits = expected(model, tiny, 30)[0]
    assert {name: tensor.dtype for name, tensor in found.items()} == {
        "probabilities": tf.float32,
        "class_ids": tf.int64,
    }
    np.testing.assert_array_equal(found["class_ids"], logits.argmax(axis=1))
    np.testing.assert_allclose(found["probabilities"], tf.nn.softmax(logits), atol=1e-3)


@pytest.mark.parametrize("served", [{}, [1.0], {"a": {"b": 1.0}}])
def test_serving_outputs_must_give_tensors_by_name(tiny: Tiny, model: tf_keras.Model, served: Any) -> None:
    def wrong(outputs: Mapping[str, tf.Tensor]) -> Any:
        return tf.nest.map_structure(tf.constant, served)

    with pytest.raises(TrainingError, match=r"serving_outputs .* received .*, expected tensors by name"):
        signatures.trace(model, tiny.output, "big", serving_outputs=wrong)


def test_the_embedding_is_the_layer_s_output(tiny: Tiny) -> None:
    model = two_outputs({})
    traced = signatures.trace(model, tiny.output, "big", embedding_layer="vector")
    part = tf_keras.Model(model.input, model.get_layer("vector").output)
    for rows in BATCHES:
        found = traced.functions["embedding"](**asked(tiny, "embedding", rows))
        assert list(found) == ["embedding"]
        np.testing.assert_allclose(found["embedding"], expected(part, tiny, rows)[0], rtol=1e-5)
    assert found["embedding"].shape == (30, 3)


def test_an_unknown_embedding_layer_is_told_with_the_layers_there_are(tiny: Tiny) -> None:
    with pytest.raises(TrainingError) as caught:
        signatures.trace(two_outputs({}), tiny.output, "big", embedding_layer="vectors")
    assert caught.value.what.startswith(
        "trainer.embedding_layer: received 'vectors', expected a layer of the model: vector, "
    )
    assert "risk" in caught.value.what


def test_a_layer_that_the_model_uses_twice_has_no_one_output(tiny: Tiny) -> None:
    given = tf_keras.Input((), name="fare")
    twice = tf_keras.layers.Dense(1, name="twice")
    model = tf_keras.Model(given, twice(twice(tf.reshape(given, [-1, 1]))))
    with pytest.raises(TrainingError, match="received 'twice', expected a layer with one output that the model uses"):
        signatures.trace(model, tiny.output, "big", embedding_layer="twice")


def test_a_model_must_not_depend_on_what_requests_do_not_have(tiny: Tiny) -> None:
    given = tf_keras.Input((), name="big", dtype="int64")
    model = tf_keras.Model(given, tf_keras.layers.Dense(1)(tf.reshape(tf.cast(given, tf.float32), [-1, 1])))
    with pytest.raises(TrainingError, match="outputs depend on tips, which requests do not have"):
        signatures.trace(model, tiny.output, "big")


def test_what_requests_do_not_have_may_be_an_input_that_no_output_depends_on(tiny: Tiny) -> None:
    inputs = {"big": tf_keras.Input((), name="big", dtype="int64"), "fare": tf_keras.Input((), name="fare")}
    model = tf_keras.Model(inputs, tf_keras.layers.Dense(1)(tf.reshape(inputs["fare"], [-1, 1])))
    traced = signatures.trace(model, tiny.output, "big")
    assert [raw.feature for raw in traced.raw_tensors or []] == ["fare"]
    [found] = traced.functions["serving_default"](**asked(tiny, "serving_default", 30)).values()
    np.testing.assert_allclose(found, expected(model, tiny, 30)[0], rtol=1e-6)


def test_a_model_with_a_training_step_of_its_own_is_served_like_any_other(tiny: Tiny) -> None:
    class Own(tf_keras.Model):
        def train_step(self, data: Any) -> Any:
            return super().train_step(data)

    plain = two_outputs({})
    own = Own(plain.input, plain.outputs)
    found = signatures.trace(own, tiny.output, "big").functions["predict"](asked(tiny, "predict", 30))
    for tensor, values in zip(found.values(), expected(plain, tiny, 30), strict=True):
        np.testing.assert_allclose(tensor, values, rtol=1e-5)
