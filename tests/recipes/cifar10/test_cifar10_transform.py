"""The features: decoding alone, and inside the Transform graph, with every pixel known."""

import io
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_data_validation as tfdv
import tensorflow_transform as tft
import tensorflow_transform.beam as tft_beam
from PIL import Image
from pydantic import ValidationError
from tensorflow_transform.tf_metadata import dataset_metadata, schema_utils

from components.images.pixels import pixels_of
from components.trainer.features import Feature, from_schema
from recipes.cifar10 import features
from recipes.cifar10.features import Params

SCHEMA = Path(__file__).parents[3] / "schemas/cifar10/schema.pbtxt"
RANDOM = np.random.default_rng(0)
COLOR = RANDOM.integers(0, 256, (32, 32, 3), np.uint8)
GRAY = RANDOM.integers(0, 256, (32, 32), np.uint8)


def encoded(pixels: np.ndarray, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def decoded(image: bytes, **params) -> np.ndarray:
    size = Params(**params)
    result = pixels_of(tf.constant([image]), size.height, size.width, size.channels)
    assert result.dtype == tf.int64
    return result.numpy()[0]


@pytest.mark.parametrize("kind", ["PNG", "BMP"])
def test_color_comes_through_pixel_by_pixel(kind):
    np.testing.assert_array_equal(decoded(encoded(COLOR, kind)), COLOR)


def test_jpeg_comes_through_nearly():
    smooth = np.tile(np.linspace(0, 255, 32, dtype=np.uint8)[:, None, None], (1, 32, 3))
    assert np.abs(decoded(encoded(smooth, "JPEG")).astype(int) - smooth).max() <= 4


def test_of_a_gif_the_first_frame():
    first, second = (Image.fromarray(np.full((32, 32), value, np.uint8)) for value in (40, 200))
    file = io.BytesIO()
    first.save(file, "GIF", save_all=True, append_images=[second])
    np.testing.assert_array_equal(decoded(file.getvalue()), np.full((32, 32, 3), 40))


def test_every_shade_of_gray_comes_through_as_gray_and_as_color():
    shades = np.arange(256, dtype=np.uint8).reshape(16, 16)
    size = {"height": 16, "width": 16}
    np.testing.assert_array_equal(decoded(encoded(shades), channels=1, **size)[..., 0], shades)
    np.testing.assert_array_equal(decoded(encoded(shades), **size), np.stack([shades] * 3, axis=-1))


def test_color_becomes_gray_by_luminance():
    green = np.zeros((32, 32, 3), np.uint8)
    green[..., 1] = 255
    # 0.587 * 255 is 149.7, and TensorFlow rounds down.
    assert np.unique(decoded(encoded(green), channels=1)).tolist() == [149]


def test_other_sizes_are_resized():
    blocks = np.kron(COLOR[:4, :4], np.ones((8, 8, 1), np.uint8))
    small = decoded(encoded(blocks), height=2, width=2)
    # Each of the four pixels is a weighted mean of the blocks around it, so it is within their range.
    assert small.shape == (2, 2, 3)
    assert (small >= COLOR[:4, :4].min(axis=(0, 1))).all()
    assert (small <= COLOR[:4, :4].max(axis=(0, 1))).all()
    even = np.full((5, 9, 3), 77, np.uint8)
    np.testing.assert_array_equal(decoded(encoded(even), height=8, width=4), np.full((8, 4, 3), 77))


def test_what_is_no_image_is_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match="Unknown image file format"):
        decoded(b"no image")


def test_wrong_parameters_are_refused():
    with pytest.raises(ValidationError, match="channels"):
        Params(channels=2)
    with pytest.raises(ValidationError, match="hight"):
        Params(hight=8)


def preprocessing_fn(inputs):
    """As the Transform node calls the recipe's."""
    return features.preprocessing_fn(inputs, custom_config={"height": 32, "width": 32, "channels": 1})


@pytest.fixture(scope="module")
def transform_graph(tmp_path_factory) -> tft.TFTransformOutput:
    metadata = dataset_metadata.DatasetMetadata(tfdv.load_schema_text(str(SCHEMA)))
    output = tmp_path_factory.mktemp("transform")
    rows = [{"image": [encoded(GRAY)], "label": [3], "class": [b"cat"], "name": [b"1.png"]}] * 3
    with tft_beam.Context(temp_dir=str(tmp_path_factory.mktemp("work"))):
        _, transform_fn = (rows, metadata) | tft_beam.AnalyzeAndTransformDataset(preprocessing_fn)
        transform_fn | tft_beam.WriteTransformFn(str(output))
    return tft.TFTransformOutput(str(output))


def test_the_graph_gives_pixels_and_label(transform_graph):
    layer = transform_graph.transform_features_layer()
    raw = {"image": tf.constant([[encoded(GRAY)], [encoded(255 - GRAY)]]), "label": tf.constant([[3], [1]], tf.int64)}
    names = {"class": tf.constant([["cat"], ["dog"]]), "name": tf.constant([["1.png"], ["2.png"]])}
    result = layer(raw | names)
    assert set(result) == {"image", "label"}
    assert result["image"].dtype == tf.int64
    np.testing.assert_array_equal(result["image"][..., 0], [GRAY, 255 - GRAY])
    assert result["label"].numpy().tolist() == [3, 1]
    served = layer({"image": raw["image"]})
    assert set(served) == {"image"}
    np.testing.assert_array_equal(served["image"], result["image"])


def test_the_transformed_schema_tells_the_model_of_bytes(transform_graph):
    schema = transform_graph.transformed_metadata.schema
    assert from_schema(schema, "label") == [Feature("image", tf.uint8, (32, 32, 1), None)]
    domain = next(feature.int_domain for feature in schema.feature if feature.name == "image")
    assert (domain.min, domain.max) == (0, 255)


def test_requests_need_the_image_alone():
    schema = tfdv.load_schema_text(str(SCHEMA))
    kept_out = {feature.name for feature in schema.feature if "SERVING" in feature.not_in_environment}
    spec = schema_utils.schema_as_feature_spec(schema).feature_spec
    assert set(spec) - kept_out == {"image"}
