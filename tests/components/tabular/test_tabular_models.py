"""The default models: what they serve, how they learn, and that they learn."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from components.tabular import models
from components.tabular.analysis import InMemory
from components.tabular.features import Categories, Numbers, Texts, transformed
from components.tabular.labels import Amount, Classes, LabelColumn, SeveralOf
from components.tabular.losses import MembersLoss, member_mean
from components.trainer.features import Feature
from contracts.errors import TrainingError

ROWS = 256


def rows(label: LabelColumn, labels: list[str] | np.ndarray) -> tuple[dict[str, tf.Tensor], tf.Tensor, list[Feature]]:
    """Features of `x`, which decides the label, a category and a text, which do not."""
    x = np.linspace(-1, 1, ROWS)
    inputs = {
        "x": tf.constant(x, tf.float32),
        "c": tf.constant(["a", "b"] * (ROWS // 2)),
        "t": tf.constant(["some words"] * ROWS),
        "y": tf.constant(labels, tf.float32 if isinstance(label, Amount) else tf.string),
    }
    analysis = InMemory()
    outputs = transformed(inputs, [Numbers(["x"]), Categories(["c"]), Texts(["t"])], label, analysis)
    target = outputs.pop("y")
    features = [Feature(n, t.dtype, tuple(t.shape[1:]), analysis.sizes.get(n)) for n, t in outputs.items()]
    return outputs, target, features


def fitted(label: LabelColumn, labels: list[str] | np.ndarray, params: dict[str, object]) -> dict[str, np.ndarray]:
    """What a model serves for the rows that it was trained on."""
    tf_keras.utils.set_random_seed(1)
    inputs, target, features = rows(label, labels)
    model = models.build_model(features, label, params)
    model.compile(**models.compile_arguments(label, params))
    model.fit(inputs, target, batch_size=32, epochs=20, verbose=0)
    served = models.serving_outputs({"logits": model(inputs)}, label, params)
    return {name: value.numpy() for name, value in served.items()}


def test_two_classes_that_no_line_divides_are_learned() -> None:
    wanted = ["in" if abs(x) < 0.5 else "out" for x in np.linspace(-1, 1, ROWS)]
    served = fitted(Classes("y", ["in", "out"]), wanted, {"members": 4})
    assert served["probability"].shape == (ROWS, 1)
    assert np.mean([name.decode() == label for name, label in zip(served["class"], wanted, strict=True)]) > 0.95


def test_three_classes_are_learned_by_the_linear_model_too() -> None:
    wanted = ["a" if x < -0.4 else "b" if x < 0.4 else "c" for x in np.linspace(-1, 1, ROWS)]
    served = fitted(Classes("y", ["a", "b", "c"]), wanted, {"model": "linear", "learning_rate": 0.1})
    np.testing.assert_allclose(served["probabilities"].sum(axis=1), np.ones(ROWS), rtol=1e-5)
    assert np.mean([name.decode() == label for name, label in zip(served["class"], wanted, strict=True)]) > 0.8


def test_amounts_are_served_in_their_own_unit() -> None:
    wanted = 1000.0 + 100.0 * np.linspace(-1, 1, ROWS) ** 2
    served = fitted(Amount("y", float(wanted.mean()), float(wanted.std())), wanted, {"members": 4})
    assert set(served) == {"prediction"}
    assert np.abs(served["prediction"][:, 0] - wanted).mean() < 10.0


def test_each_member_has_its_own_loss() -> None:
    loss = MembersLoss(Amount("y", mean=10.0, deviation=2.0))
    logits = tf.constant([[[0.0], [2.0]]])
    assert loss.call(tf.constant([12.0]), logits).numpy().tolist() == [pytest.approx((1.0 + 1.0) / 2)]


def test_weights_of_classes_count_in_the_loss_and_not_in_what_is_served() -> None:
    label = Classes("y", ["often", "rare"])
    logits = tf.constant([[[np.log(4.0)]]], tf.float32)
    plain = MembersLoss(label).call(tf.constant([1]), logits)
    weighed = MembersLoss(label, (1.0, 4.0)).call(tf.constant([1]), logits)
    np.testing.assert_allclose(weighed, 4 * plain, rtol=1e-6)
    np.testing.assert_allclose(member_mean(logits, label, (1.0, 4.0)), [[0.5]], rtol=1e-6)


def test_several_names_are_served_with_the_probability_of_each() -> None:
    position = np.linspace(-1, 1, ROWS)
    wanted = np.stack([position > 0, np.abs(position) > 0.5, np.zeros(ROWS, bool)], axis=1)
    texts = [";".join(np.array(["right", "far", "never"])[row]) for row in wanted]
    served = fitted(SeveralOf("y", ["right", "far", "never"], separator=";"), texts, {"members": 4})
    assert served["names"].tolist()[0] == [b"right", b"far", b"never"]
    assert served["probabilities"].shape == (ROWS, 3)
    assert ((served["probabilities"] > 0.5) == wanted).mean() > 0.9


def test_several_names_each_have_a_cross_entropy() -> None:
    logits = tf.constant([[[0.0, np.log(3.0)], [0.0, 0.0]]], tf.float32)
    loss = MembersLoss(SeveralOf("y", ["a", "b"])).call(tf.constant([[1.0, 0.0]]), logits)
    np.testing.assert_allclose(loss, [(np.log(2) + np.log(4) + np.log(2) + np.log(2)) / 4], rtol=1e-6)
    np.testing.assert_allclose(member_mean(logits, SeveralOf("y", ["a", "b"]))[0, 0], 0.5)


def test_several_names_of_lists_and_of_texts() -> None:
    label = SeveralOf("y", ["red", "round", "7"])
    lists = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [" red", "round", "blue"], [3, 2])
    assert label.values(lists).numpy().tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 0]]
    numbers = tf.SparseTensor([[1, 0]], tf.constant([7], tf.int64), [2, 1])
    assert label.values(numbers).numpy().tolist() == [[0, 0, 0], [0, 0, 1]]
    assert label.values(tf.constant([["red", "red"], ["7", ""]])).numpy().tolist() == [[1, 0, 0], [0, 0, 1]]
    texts = tf.SparseTensor([[0, 0], [2, 0]], ["round; red", "7"], [3, 1])
    marked = SeveralOf("y", ["red", "round", "7"], separator=";")
    assert marked.values(texts).numpy().tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 1]]


def test_classes_may_ignore_case() -> None:
    words = tf.constant([" ADELIE", "adelie", "Café", "CAFÉ", "other"])
    assert Classes("y", ["Adelie", "café"], ignore_case=True).values(words).numpy().tolist() == [0, 0, 1, 1, -1]
    assert Classes("y", ["Adelie", "café"]).values(words).numpy().tolist() == [-1, -1, -1, -1, -1]


def pictures(rows: int = 64) -> tuple[dict[str, tf.Tensor], tf.Tensor, list[Feature]]:
    """Images that are light above or below, which is the label, beside a number that says nothing."""
    draw = np.random.default_rng(0)
    pixels = draw.integers(0, 60, (rows, 8, 8, 3))
    label = np.arange(rows) % 2
    pixels[label == 0, :4] += 150
    pixels[label == 1, 4:] += 150
    inputs = {
        "image_pixels": tf.constant(pixels, tf.uint8),
        "number_values": tf.constant(draw.normal(size=(rows, 1)), tf.float32),
        "number_ranks": tf.constant(draw.uniform(size=(rows, 1)), tf.float32),
    }
    features = [Feature(name, value.dtype, tuple(value.shape[1:]), None) for name, value in inputs.items()]
    return inputs, tf.constant(label, tf.int64), features


@pytest.mark.parametrize(
    ("used", "params"),
    [(["image_pixels"], {"members": 1, "hidden_units": []}), (["image_pixels", "number_values", "number_ranks"], {})],
    ids=["alone", "beside numbers"],
)
def test_images_are_learned(used: list[str], params: dict[str, object]) -> None:
    tf_keras.utils.set_random_seed(1)
    label = Classes("y", ["above", "below"])
    inputs, target, features = pictures()
    inputs = {name: inputs[name] for name in used}
    params = {**params, "image_channels": 4, "learning_rate": 0.01}
    model = models.build_model([feature for feature in features if feature.name in used], label, params)
    model.compile(**models.compile_arguments(label, params))
    model.fit(inputs, target, batch_size=16, epochs=8, verbose=0)
    served = models.serving_outputs({"logits": model(inputs)}, label, params)
    assert (served["class"].numpy() == np.array([b"above", b"below"])[target]).mean() > 0.95


def test_a_linear_model_takes_no_images() -> None:
    _, _, features = pictures()
    with pytest.raises(TrainingError, match="A linear model takes no images"):
        models.build_model(features, Classes("y", ["above", "below"]), {"model": "linear"})


def test_only_images_are_varied() -> None:
    inputs, _, _ = pictures()
    varied = models.augment(inputs, tf.constant([1, 2], tf.int64), {"max_shift": 1, "horizontal_flip": True})
    assert varied["image_pixels"].shape == inputs["image_pixels"].shape
    assert (varied["image_pixels"] != inputs["image_pixels"]).numpy().any()
    assert varied["number_ranks"] is inputs["number_ranks"]
