"""A network from `tf_keras.applications`, pretrained on other images, in place of one trained from scratch."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf
import tf_keras
from pydantic import Field

from contracts.errors import TrainingError
from contracts.settings import Settings

WEIGHTS_SITE = "https://storage.googleapis.com/tensorflow/keras-applications/"


class BackboneParams(Settings):
    """`trainer.params.backbone` of recipe.yaml.

    Attributes:
        name: A model of `tf_keras.applications`, such as `MobileNetV2`.
        weights: A file of its weights without the top, as on Keras's site (`…_no_top.h5`); None begins with random
            weights. Nothing is ever downloaded.
        image_size: Images are resized to this many pixels each way; the size that the weights were trained with does
            best.
    """

    name: str
    weights: str | None = None
    image_size: int = Field(default=96, ge=32)


def backbone_features(pixels: tf.Tensor, params: BackboneParams) -> tf.Tensor:
    """Returns the backbone's feature maps, [batch, rows, columns, channels].

    The backbone is the layer `backbone`, a model of its own, so that `trainer.phases` can freeze it. With weights from
    a file, its batch normalization stays as it was trained: a few small batches would spoil its averages.

    Args:
        pixels: Images, uint8 [batch, height, width, 1 or 3].
        params: See `BackboneParams`.

    Raises:
        TrainingError: There is no such model, or its weights file is missing or belongs to another model.
    """
    build = _builder(params.name)
    size = params.image_size
    images = tf_keras.layers.Resizing(size, size, dtype="float32", name="resizing")(pixels)
    if images.shape[-1] == 1:
        images = tf_keras.layers.Concatenate(dtype="float32", name="gray_to_rgb")([images] * 3)
    images = inspect.getmodule(build).preprocess_input(images)  # type: ignore[union-attr]
    return _with_weights(build, params)(images, training=None if params.weights is None else False)


def _builder(name: str) -> Callable[..., tf_keras.Model]:
    names = [names for names, value in vars(tf_keras.applications).items() if inspect.isfunction(value)]
    if name not in names:
        raise TrainingError(
            f"trainer.params.backbone.name is {name!r}, expected one of {', '.join(sorted(names))}.",
            "Name a model of tf_keras.applications.",
        )
    builder: Callable[..., tf_keras.Model] = getattr(tf_keras.applications, name)
    return builder


def _with_weights(build: Callable[..., tf_keras.Model], params: BackboneParams) -> tf_keras.Model:
    arguments: dict[str, Any] = {"include_top": False, "input_shape": (params.image_size, params.image_size, 3)}
    # Never through `weights=`, which downloads them if given the word `imagenet`.
    network = build(weights=None, **arguments)
    if params.weights is None:
        logging.warning("The backbone %s begins with random weights: its weights are set to null.", params.name)
    else:
        _load(network, params, Path(params.weights).expanduser())
    return tf_keras.Model(network.inputs, network.outputs, name="backbone")


def _load(network: tf_keras.Model, params: BackboneParams, path: Path) -> None:
    if not path.is_file():
        raise TrainingError(
            f"trainer.params.backbone.weights is {params.weights}, and there is no such file.",
            f"Download the …_no_top.h5 of {params.name} from {WEIGHTS_SITE} (the names of the files are in the source "
            "of tf_keras.applications) and name it there, or set weights to null to begin with random weights.",
        )
    try:
        network.load_weights(path)
    except (ValueError, OSError) as error:
        raise TrainingError(
            f"{path} does not hold the weights of {params.name} without its top: {error}",
            f"Take the …_no_top.h5 of {params.name} from {WEIGHTS_SITE}.",
        ) from error
