"""The cifar10 recipe's features: from encoded images to pixels, the same in training and in serving."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import tensorflow as tf
from pydantic import Field
from tensorflow_transform import schema_inference

from contracts.settings import Settings

LABEL = "label"


class Params(Settings):
    """The keys of `transform.params` in recipe.yaml; the defaults are CIFAR-10's.

    Attributes:
        height: Pixels; images of another height are resized.
        width: Pixels; images of another width are resized.
        channels: 3 for color, 1 for grayscale; images of the other kind are converted.
    """

    height: int = Field(default=32, ge=1)
    width: int = Field(default=32, ge=1)
    channels: Literal[1, 3] = 3


def preprocessing_fn(inputs: Mapping[str, tf.Tensor], custom_config: Mapping[str, Any]) -> dict[str, tf.Tensor]:
    """Returns `image`, int64 [batch, height, width, channels] from 0 to 255, and `label`, int64 [batch].

    Args:
        inputs: `image`, encoded as PNG, JPEG, GIF or BMP, string [batch, 1], and `label`, int64 [batch, 1].
        custom_config: `transform.params`; see `Params`.
    """
    params = Params(**custom_config)
    images = tf.map_fn(
        lambda encoded: decoded(encoded, params),
        tf.reshape(inputs["image"], [-1]),
        fn_output_signature=tf.TensorSpec([params.height, params.width, params.channels], tf.uint8),
    )
    return {"image": with_range(tf.cast(images, tf.int64)), LABEL: tf.reshape(inputs[LABEL], [-1])}


def decoded(encoded: tf.Tensor, params: Params) -> tf.Tensor:
    """Returns the pixels of one encoded image, uint8 [height, width, channels]; of a GIF, the first frame's."""
    # Always decoded as color first, the only form in which GIFs can be decoded.
    pixels = tf.io.decode_image(encoded, channels=3, expand_animations=False)
    pixels.set_shape([None, None, 3])
    resized = tf.image.resize(pixels, [params.height, params.width], antialias=True)
    color = tf.cast(tf.round(tf.clip_by_value(resized, 0, 255)), tf.uint8)
    return color if params.channels == 3 else tf.image.rgb_to_grayscale(color)


def with_range(pixels: tf.Tensor) -> tf.Tensor:
    """Returns `pixels`, int64, with the range 0 to 255 in the transformed schema, so that they are stored as bytes."""
    pixels = tf.identity(pixels)
    schema_inference.set_tensor_schema_override(pixels, tf.constant(0, tf.int64), tf.constant(255, tf.int64))
    return pixels
