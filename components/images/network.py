"""The residual network for small images (He et al., 2015, arXiv:1512.03385, section 4.2), and augmentation for it.

Three stages of residual blocks, each with half the resolution and twice the channels of the one before.
"""

from __future__ import annotations

import tensorflow as tf
import tf_keras

NUM_STAGES = 3
LAYERS_PER_BLOCK = 2


def check_depth(depth: int) -> int:
    """Returns `depth`, which must be 6n + 2.

    Raises:
        ValueError: It is not.
    """
    if depth < 8 or (depth - 2) % (NUM_STAGES * LAYERS_PER_BLOCK):
        raise ValueError(f"received {depth}, expected 6n + 2: 8, 14, 20, 32, 44, 56, 110")
    return depth


def residual_network(pixels: tf.Tensor, depth: int, width: int) -> tf.Tensor:
    """Returns feature maps, [batch, height / 4, width / 4, 4 * width].

    Args:
        pixels: Images, uint8 [batch, height, width, channels].
        depth: Layers with weights, 6n + 2, the last of which, the classifier, is the caller's.
        width: Channels of the first stage.
    """
    maps = tf_keras.layers.Rescaling(1 / 127.5, offset=-1, name="scaling")(pixels)
    maps = _normalized_convolution(maps, width, 1)
    maps = tf_keras.layers.ReLU()(maps)
    blocks_per_stage = (depth - 2) // (NUM_STAGES * LAYERS_PER_BLOCK)
    for number in range(NUM_STAGES * blocks_per_stage):
        stage, position = divmod(number, blocks_per_stage)
        strides = 2 if stage > 0 and position == 0 else 1
        maps = _block(maps, width * 2**stage, strides, f"block_{number + 1}")
    return maps


def _block(maps: tf.Tensor, channels: int, strides: int, name: str) -> tf.Tensor:
    """Returns relu(shortcut(maps) + convolutions(maps)); a nested model, so that it can be named as a whole."""
    inputs = tf_keras.Input(shape=maps.shape[1:], dtype=maps.dtype)
    residual = _normalized_convolution(inputs, channels, strides)
    residual = tf_keras.layers.ReLU()(residual)
    residual = _normalized_convolution(residual, channels, 1)
    outputs = tf_keras.layers.ReLU()(tf_keras.layers.Add()([_shortcut(inputs, channels, strides), residual]))
    return tf_keras.Model(inputs, outputs, name=name)(maps)


def _normalized_convolution(maps: tf.Tensor, channels: int, strides: int) -> tf.Tensor:
    convolution = tf_keras.layers.Conv2D(
        channels, 3, strides, padding="same", use_bias=False, kernel_initializer="he_normal"
    )
    # Not Keras's 0.99, which takes hundreds of steps to forget its initial values.
    return tf_keras.layers.BatchNormalization(momentum=0.9)(convolution(maps))


def _shortcut(maps: tf.Tensor, channels: int, strides: int) -> tf.Tensor:
    """Returns the identity, subsampled and padded with zero channels: the paper's option A, without weights."""
    if strides > 1:
        maps = maps[:, ::strides, ::strides]
    missing = channels - maps.shape[-1]
    return tf.pad(maps, [[0, 0], [0, 0], [0, 0], [0, missing]]) if missing else maps


def augmented(images: tf.Tensor, seed: tf.Tensor, max_shift: int, horizontal_flip: bool) -> tf.Tensor:
    """Returns images [batch, height, width, channels], each shifted, and half of them mirrored if that is wanted.

    Args:
        images: A training batch.
        seed: int64 [2]; the same seed gives the same images.
        max_shift: The most pixels in each direction.
        horizontal_flip: Whether to mirror.
    """
    # Many seeds from one, since equal seeds draw equal numbers.
    seeds = tf.unstack(tf.random.split(seed, 2))
    if max_shift:
        images = shifted(images, max_shift, seeds[0])
    return mirrored(images, seeds[1]) if horizontal_flip else images


def shifted(images: tf.Tensor, max_shift: int, seed: tf.Tensor) -> tf.Tensor:
    """Returns images [batch, height, width, channels] moved by up to `max_shift` pixels each way, black moving in."""
    batch, height, width = tf.shape(images)[0], images.shape[1], images.shape[2]
    offsets = tf.random.stateless_uniform([2, batch, 1], seed, 0, 2 * max_shift + 1, tf.int32)
    padding = [max_shift, max_shift]
    padded = tf.pad(images, [[0, 0], padding, padding, [0, 0]])
    rows = tf.gather(padded, offsets[0] + tf.range(height), axis=1, batch_dims=1)
    return tf.ensure_shape(tf.gather(rows, offsets[1] + tf.range(width), axis=2, batch_dims=1), images.shape)


def mirrored(images: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """Returns images [batch, height, width, channels], about half of them mirrored left to right."""
    chosen = tf.random.stateless_uniform([tf.shape(images)[0], 1, 1, 1], seed) < 0.5
    return tf.where(chosen, images[:, :, ::-1], images)
