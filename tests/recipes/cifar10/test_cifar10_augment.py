"""Augmentation: what moves where with which seed, and that nothing else changes."""

import numpy as np
import pytest
import tensorflow as tf

from components.images import network
from recipes.cifar10 import model


def numbered(rows: int = 64, height: int = 4, width: int = 5, channels: int = 3) -> tf.Tensor:
    """Images whose pixels all differ from black and from each other."""
    image = 1 + np.arange(height * width * channels).reshape(height, width, channels)
    return tf.constant(np.stack([image] * rows), tf.uint8)


def seed(step: int) -> tf.Tensor:
    return tf.constant([1, step], tf.int64)


def moved(image: np.ndarray, down: int, right: int) -> np.ndarray:
    """The image moved over black, computed with slices."""
    height, width, _ = image.shape
    result = np.zeros_like(image)
    result[max(down, 0) : height + min(down, 0), max(right, 0) : width + min(right, 0)] = image[
        max(-down, 0) : height - max(down, 0), max(-right, 0) : width - max(right, 0)
    ]
    return result


def test_every_image_is_shifted_by_itself_and_every_shift_comes_up():
    images = numbered(400)
    shifted = network.shifted(images, 1, seed(0)).numpy()
    possible = {(d, r): moved(images[0].numpy(), d, r) for d in (-1, 0, 1) for r in (-1, 0, 1)}
    shifts = [next(shift for shift, result in possible.items() if (result == image).all()) for image in shifted]
    counts = {shift: shifts.count(shift) for shift in possible}
    assert min(counts.values()) > 400 / 9 / 2


def test_half_of_the_images_are_mirrored():
    images = numbered(400)
    mirrored = network.mirrored(images, seed(0)).numpy()
    plain, mirror = images[0].numpy(), images[0].numpy()[:, ::-1]
    num_unchanged = sum((image == plain).all() for image in mirrored)
    assert num_unchanged + sum((image == mirror).all() for image in mirrored) == 400
    assert 160 < num_unchanged < 240


@pytest.mark.parametrize("params", [{"max_shift": 2}, {"max_shift": 2, "horizontal_flip": True}])
def test_the_seed_decides(params):
    features = {"image": numbered()}
    first, again, other = (model.augment(features, seed(step), params)["image"].numpy() for step in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any(axis=(1, 2, 3)).mean() > 0.5


def test_form_and_range_stay_also_in_a_graph():
    features = {"image": numbered(7)}
    params = {"max_shift": 2, "horizontal_flip": True}
    result = tf.function(lambda rows, given: model.augment(rows, given, params))(features, seed(3))["image"]
    assert (result.shape, result.dtype) == ((7, 4, 5, 3), tf.uint8)
    np.testing.assert_array_equal(result, model.augment(features, seed(3), params)["image"])
    assert set(np.unique(result)) <= set(range(61))


def test_shapes_are_known_where_the_batch_is_not():
    images = tf.data.Dataset.from_tensor_slices(numbered(6)).batch(4)
    augmented = images.map(lambda batch: model.augment({"image": batch}, seed(0), {})["image"])
    assert augmented.element_spec.shape.as_list() == [None, 4, 5, 3]


def test_nothing_changes_where_nothing_is_asked_for():
    images = numbered()
    result = model.augment({"image": images}, seed(0), {"max_shift": 0, "horizontal_flip": False})
    np.testing.assert_array_equal(result["image"], images)


def test_digits_are_not_mirrored_unless_asked():
    assert model.Params().horizontal_flip is False
