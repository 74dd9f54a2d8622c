"""The cifar10 recipe's features: from encoded images to pixels, the same in training and in serving."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import tensorflow as tf
from pydantic import Field

from components.images.pixels import pixels_of, with_range
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
    images = pixels_of(tf.reshape(inputs["image"], [-1]), params.height, params.width, params.channels)
    return {"image": with_range(images), LABEL: tf.reshape(inputs[LABEL], [-1])}
