"""From encoded images to pixels, the same in training and in serving."""

from __future__ import annotations

import tensorflow as tf
from tensorflow_transform import schema_inference


def pixels_of(encoded: tf.Tensor, height: int, width: int, channels: int) -> tf.Tensor:
    """Returns the pixels, int64 [batch, height, width, channels] from 0 to 255: stretched to this size, not cropped.

    Args:
        encoded: PNG, JPEG, GIF or BMP files, string [batch].
        height: Pixels.
        width: Pixels.
        channels: 3 for color, 1 for grayscale; images of the other kind are converted.
    """
    pixels = tf.map_fn(
        lambda file: _decoded(file, height, width, channels),
        encoded,
        fn_output_signature=tf.TensorSpec([height, width, channels], tf.uint8),
    )
    return tf.cast(pixels, tf.int64)


def _decoded(encoded: tf.Tensor, height: int, width: int, channels: int) -> tf.Tensor:
    """Returns the pixels of one encoded image, uint8 [height, width, channels]; of a GIF, the first frame's."""
    # Always decoded as color first, the only form in which GIFs can be decoded.
    pixels = tf.io.decode_image(encoded, channels=3, expand_animations=False)
    pixels.set_shape([None, None, 3])
    resized = tf.image.resize(pixels, [height, width], antialias=True)
    color = tf.cast(tf.round(tf.clip_by_value(resized, 0, 255)), tf.uint8)
    return color if channels == 3 else tf.image.rgb_to_grayscale(color)


def with_range(pixels: tf.Tensor) -> tf.Tensor:
    """Returns `pixels`, int64, with the range 0 to 255 in the transformed schema, so that they are stored as bytes."""
    pixels = tf.identity(pixels)
    schema_inference.set_tensor_schema_override(pixels, tf.constant(0, tf.int64), tf.constant(255, tf.int64))
    return pixels
