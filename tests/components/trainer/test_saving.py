"""The exported model is a Keras model, too."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import subclassed_recipe
import tensorflow as tf
import tf_keras
from test_fitting import fit, job
from tiny_artifacts import Tiny
from trained import scores

from components.trainer import devices, export, saving, train
from components.trainer.settings import Precision


def rows(tiny: Tiny) -> dict[str, Any]:
    transformed = tiny.tensors(tiny.transformed, "eval")
    return {name: transformed[name] for name in ("company", "fare", "fare_bucket", "id")}


def labels(tiny: Tiny) -> Any:
    return tiny.tensors(tiny.transformed, "eval")["big"].astype(np.float32)


@pytest.mark.parametrize("precision", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("module", ["tiny_recipe", "subclassed_recipe"])
def test_loaded_as_a_keras_model_it_predicts_the_same_and_learns_on(
    module: str, precision: Precision, tiny: Tiny, tmp_path: Path
) -> None:
    task = job(tiny, tmp_path, module, epochs=1, precision=precision)
    train.train(task)
    # A subclass makes its layers itself, in the precision of whoever loads it.
    with devices.precision_policy(precision):
        loaded = tf_keras.models.load_model(task.serving_model_dir, custom_objects={"Tower": subclassed_recipe.Tower})
    assert isinstance(loaded, subclassed_recipe.Tower if module == "subclassed_recipe" else tf_keras.Model)
    tolerance = 1e-6 if precision == "float32" else 1e-3
    np.testing.assert_allclose(loaded(rows(tiny), training=False), scores(task, tiny), atol=tolerance)
    before = loaded.get_weights()
    loaded.compile("sgd", "binary_crossentropy")
    loaded.fit(rows(tiny), labels(tiny), epochs=1, verbose=0)
    moved = [not np.array_equal(now, then) for now, then in zip(loaded.get_weights(), before, strict=True)]
    assert any(moved)


def test_of_two_outputs_both_are_given_back(tiny: Tiny, tmp_path: Path) -> None:
    model, _ = fit(tiny, tmp_path, "subclassed_recipe", epochs=1, params={"heads": ["tip", "other"]})
    export.save(model, tiny.output, "big", str(tmp_path / "saved"))
    loaded = tf_keras.models.load_model(tmp_path / "saved", custom_objects={"Tower": subclassed_recipe.Tower})
    found, expected = loaded(rows(tiny), training=False), model(rows(tiny), training=False)
    for head in ("tip", "other"):
        np.testing.assert_array_equal(found[head], expected[head])


class Stubborn(tf_keras.layers.Dense):
    """A layer whose configuration cannot be had."""

    def get_config(self) -> dict[str, Any]:
        raise KeyError("units")


def test_a_config_that_cannot_be_had_costs_keras_s_model_alone(
    tiny: Tiny, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = tf_keras.Input((), name="fare")
    model = tf_keras.Model(given, Stubborn(1, "sigmoid", name="score")(tf.reshape(given, [-1, 1])))
    with caplog.at_level(logging.WARNING):
        export.save(model, tiny.output, "big", str(tmp_path))
    assert "load_model will not load this model: Stubborn.get_config of 'score': KeyError: 'units'" in caplog.text
    served = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    [found] = served(examples=tf.constant(tiny.serialized("eval"))).values()
    np.testing.assert_allclose(found, model({"fare": rows(tiny)["fare"]}), rtol=1e-5)
    assert saving.find_fault(model) is not None
