"""Which Keras it is: tf_keras whatever the environment says, and Keras 3 is refused before training."""

from __future__ import annotations

import os
import subprocess
import sys
import types

import pytest

from components.trainer import building
from components.trainer.settings import TrainerSettings
from contracts.errors import TrainingError


@pytest.mark.parametrize("value", [None, "0", "1"])
def test_tensorflows_keras_is_tf_keras_whatever_the_environment_says(value: str | None) -> None:
    environment = {name: text for name, text in os.environ.items() if name != "TF_USE_LEGACY_KERAS"}
    if value is not None:
        environment["TF_USE_LEGACY_KERAS"] = value
    code = "import components, tensorflow as tf, tf_keras; print(issubclass(tf_keras.Model, tf.keras.Model))"

    printed = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)

    assert printed.stdout == "True\n"


def test_a_model_of_keras_3_is_refused() -> None:
    import keras

    def build_model(features: object, params: object) -> keras.Model:
        return keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])

    recipe = types.ModuleType("recipe")
    recipe.build_model = build_model  # type: ignore[attr-defined]
    with pytest.raises(TrainingError) as caught:
        building.build(recipe, [], TrainerSettings(epochs=1))

    name = f"{keras.Sequential.__module__}.Sequential"
    assert name.startswith("keras.")
    assert str(caught.value) == (
        f"build_model returned a {name}, expected a tf_keras.Model.\n"
        "Build it with tf_keras, not with Keras 3 (docs/adr/0002-tf-keras.md)."
    )
