"""The default models: what they serve, how they learn, and that they learn."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from components.tabular import models
from components.tabular.analysis import InMemory
from components.tabular.features import Categories, Numbers, Texts, transformed
from components.tabular.labels import Amount, Classes, LabelColumn
from components.tabular.losses import MembersLoss, member_mean
from components.trainer.features import Feature

ROWS = 256


def rows(label: LabelColumn, labels: list[str] | np.ndarray) -> tuple[dict[str, tf.Tensor], tf.Tensor, list[Feature]]:
    """Features of `x`, which decides the label, a category and a text, which do not."""
    x = np.linspace(-1, 1, ROWS)
    inputs = {
        "x": tf.constant(x, tf.float32),
        "c": tf.constant(["a", "b"] * (ROWS // 2)),
        "t": tf.constant(["some words"] * ROWS),
        "y": tf.constant(labels, tf.string if isinstance(label, Classes) else tf.float32),
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
