"""The cifar10 recipe's model: a residual network for small images (He et al., 2015, arXiv:1512.03385, section 4.2).

A network from `tf_keras.applications` may be fine-tuned instead: see backbone.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras
from pydantic import Field, field_validator

from components.images.network import augmented, check_depth, residual_network
from components.trainer.features import Feature
from contracts.errors import TrainingError
from contracts.settings import Settings

# Relative, so that a copy of this folder under another name uses its own.
from .backbone import BackboneParams, backbone_features


class Params(Settings):
    """The keys of `trainer.params` in recipe.yaml, with their defaults.

    Attributes:
        num_classes: Class ids in the data: 0 to `num_classes` - 1.
        depth: Layers with weights, 6n + 2: 20 is the paper's smallest network.
        width: Channels of the first stage; the paper has 16.
        learning_rate: AdamW's, before any schedule.
        weight_decay: AdamW's: the fraction of a weight, times the learning rate, that each step subtracts.
        label_smoothing: The fraction of the probability that is spread evenly over all classes.
        max_shift: The most pixels by which training images are shifted in each direction.
        horizontal_flip: Whether half of the training images are mirrored: right for animals, wrong for digits.
        backbone: See `backbone.BackboneParams`; None trains the residual network.
    """

    num_classes: int = Field(default=10, ge=2)
    depth: int = 20
    width: int = Field(default=16, ge=1)
    learning_rate: float = Field(default=0.001, gt=0)
    weight_decay: float = Field(default=0.01, ge=0)
    label_smoothing: float = Field(default=0.0, ge=0, lt=1)
    max_shift: int = Field(default=4, ge=0)
    horizontal_flip: bool = False
    backbone: BackboneParams | None = None

    @field_validator("depth")
    @classmethod
    def _six_n_plus_two(cls, depth: int) -> int:
        return check_depth(depth)


def build_model(features: Sequence[Feature], params: Mapping[str, Any]) -> tf_keras.Model:
    """Returns the uncompiled model.

    Its input `image` is uint8 [batch, height, width, channels], its output `probabilities` float32
    [batch, num_classes]. The layer `embedding` gives the representation that the classifier uses: [batch, channels].

    Args:
        features: Only the image.
        params: See `Params`.

    Raises:
        TrainingError: `features` has other features, or the backbone cannot be built.
    """
    settings = Params(**params)
    image = _only_image(features)
    pixels = tf_keras.Input(shape=image.shape, name=image.name, dtype=image.dtype)
    if settings.backbone:
        maps = backbone_features(pixels, settings.backbone)
    else:
        maps = residual_network(pixels, settings.depth, settings.width)
    embedding = tf_keras.layers.GlobalAveragePooling2D(name="embedding")(maps)
    logits = tf_keras.layers.Dense(settings.num_classes, name="logits")(embedding)
    # In float32 even under mixed precision: near 0 and 1, half precision cannot tell probabilities apart.
    probabilities = tf_keras.layers.Activation("softmax", dtype="float32", name="probabilities")(logits)
    return tf_keras.Model(pixels, probabilities, name="fine_tuned" if settings.backbone else f"resnet_{settings.depth}")


def compile_arguments(params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of `model.compile`: optimizer, loss and metrics."""
    settings = Params(**params)
    return {
        "optimizer": tf_keras.optimizers.AdamW(settings.learning_rate, weight_decay=settings.weight_decay),
        "loss": SmoothedSparseCrossentropy(settings.label_smoothing),
        "metrics": [
            tf_keras.metrics.SparseCategoricalAccuracy(name="accuracy"),
            tf_keras.metrics.SparseTopKCategoricalAccuracy(k=5, name="top_5_accuracy"),
        ],
    }


def augment(features: Mapping[str, tf.Tensor], seed: tf.Tensor, params: Mapping[str, Any]) -> dict[str, tf.Tensor]:
    """Returns a training batch with each image shifted, and mirrored where `horizontal_flip` allows it.

    Args:
        features: `image`, uint8 [batch, height, width, channels].
        seed: int64 [2]; the same seed gives the same images.
        params: See `Params`.
    """
    settings = Params(**params)
    images = augmented(features["image"], seed, settings.max_shift, settings.horizontal_flip)
    return {**features, "image": images}


def serving_outputs(outputs: Mapping[str, tf.Tensor], params: Mapping[str, Any]) -> dict[str, tf.Tensor]:
    """Returns what is served: `probabilities`, float32 [batch, num_classes], and `class_ids`, int64 [batch]."""
    probabilities = outputs["probabilities"]
    return {"probabilities": probabilities, "class_ids": tf.argmax(probabilities, axis=-1)}


def _only_image(features: Sequence[Feature]) -> Feature:
    if len(features) != 1 or features[0].dtype != tf.uint8 or len(features[0].shape) != 3:
        received = ", ".join(f"{feature.name} ({feature.dtype.name} {list(feature.shape)})" for feature in features)
        raise TrainingError(
            f"The model received the features {received}, expected one image (uint8 [height, width, channels]).",
            "Let preprocessing_fn return the image and the label alone.",
        )
    return features[0]


class SmoothedSparseCrossentropy(tf_keras.losses.SparseCategoricalCrossentropy):
    """`CategoricalCrossentropy(label_smoothing=…)` for class ids (Szegedy et al., 2015, arXiv:1512.00567, section 7).

    Args:
        label_smoothing: The fraction of the probability that is spread evenly over all classes; in [0, 1).
    """

    def __init__(self, label_smoothing: float = 0.0) -> None:
        super().__init__(name="smoothed_sparse_crossentropy")
        self.label_smoothing = label_smoothing

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        """The loss of each row, float32 [batch].

        Args:
            y_true: Class ids, integers [batch] or [batch, 1].
            y_pred: Probabilities, float32 [batch, num_classes].
        """
        one_hot = tf.one_hot(tf.reshape(tf.cast(y_true, tf.int64), [-1]), tf.shape(y_pred)[-1], dtype=y_pred.dtype)
        return tf_keras.losses.categorical_crossentropy(one_hot, y_pred, label_smoothing=self.label_smoothing)
