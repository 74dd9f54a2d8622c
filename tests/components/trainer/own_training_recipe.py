"""The tiny recipe with a `train` of its own; `params.how` chooses which."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import interrupted_recipe
import tensorflow as tf
import tf_keras
import tiny_recipe

from components.trainer.own_training import Training

EPOCHS = 5


def build_model(features: Sequence[Any], params: Mapping[str, Any]) -> tf_keras.Model:
    """The tiny recipe's, or the interrupted one's."""
    recipe = interrupted_recipe if "epoch" in params else tiny_recipe
    return recipe.build_model(features, params)


compile_arguments = tiny_recipe.compile_arguments


def train(training: Training) -> Any:
    """As `params.how` says."""
    how = training.params["how"]
    return globals()[how](training)


def fitted(training: Training) -> tf_keras.Model:
    """What the Trainer does anyway."""
    return training.fit(training.build())


def shorter(training: Training) -> tf_keras.Model:
    """Other epochs than recipe.yaml's, after work that a resumed training finds done."""
    assert training.state_dir is not None
    memory = training.state_dir / "work.json"
    if not memory.exists():
        with Path(training.params["log"]).open("a") as file:
            file.write("worked\n")
        memory.write_text(json.dumps({"epochs": EPOCHS}))
    return training.fit(training.build(), epochs=json.loads(memory.read_text())["epochs"])


def twice(training: Training) -> tf_keras.Model:
    """A mistake."""
    return training.fit(training.fit(training.build()))


def nothing(training: Training) -> None:
    """Another."""
    training.log("trained, but not returned")


def tape(training: Training) -> tf_keras.Model:
    """A GradientTape around a second model that learns to find the first one's mistakes, as a GAN's does."""
    model, critic = training.build(), tf_keras.Sequential([tf_keras.layers.Dense(1)])
    optimizers = [tf_keras.optimizers.SGD(0.1), tf_keras.optimizers.SGD(0.1)]

    @tf.function
    def step(features: Mapping[str, tf.Tensor], label: tf.Tensor) -> tf.Tensor:
        wanted = tf.cast(tf.reshape(label, [-1, 1]), tf.float32)
        with tf.GradientTape(persistent=True) as recorded:
            score = model(features, training=True)
            doubt = critic(tf.concat([score, wanted], axis=1))
            found = tf.reduce_mean(tf.square(doubt - tf.abs(wanted - score)))
            loss = tf.reduce_mean(tf.square(wanted - score)) + 0.01 * tf.reduce_mean(doubt)
        for part, optimizer, goal in zip((model, critic), optimizers, (loss, found), strict=True):
            weights = part.trainable_variables
            optimizer.apply_gradients(zip(recorded.gradient(goal, weights), weights, strict=True))
        return loss

    batches = iter(training.batches())
    for _ in range(EPOCHS):
        losses = [float(step(*next(batches))) for _ in range(training.rows() // training.settings.batch_size)]
        training.record({"loss": sum(losses) / len(losses)})
    training.compile(model)
    return model


def from_arrays(training: Training) -> tf_keras.Model:
    """No gradient at all: a score that is the share of the label's rows."""
    features, label, weights = training.arrays()
    assert weights is None
    assert set(features) == {feature.name for feature in training.features}
    inputs = {f.name: tf_keras.Input(shape=f.shape, name=f.name, dtype=f.dtype) for f in training.features}
    share = tf_keras.layers.Lambda(lambda fare: tf.fill([tf.shape(fare)[0], 1], float(label.mean())), name="score")
    return tf_keras.Model(inputs, share(inputs["fare"]))
