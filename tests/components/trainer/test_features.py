"""The model's features, read from the transformed schema."""

from __future__ import annotations

import pytest
import tensorflow as tf
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tiny_artifacts import Tiny

from components.trainer import features
from contracts.errors import TrainingError

SCHEMA = """
feature { name: "fare" type: FLOAT shape {} }
feature { name: "hour" type: INT int_domain { min: 0 max: 23 is_categorical: true } shape {} }
feature { name: "passengers" type: INT int_domain { min: 0 max: 8 } shape {} }
feature { name: "image" type: FLOAT shape { dim { size: 8 } dim { size: 4 } } }
feature { name: "pixels" type: INT int_domain { min: 0 max: 255 } shape { dim { size: 8 } dim { size: 4 } } }
feature { name: "counts" type: INT int_domain { min: 0 max: 256 } shape { dim { size: 8 } } }
feature {
  name: "photo" type: INT int_domain { min: 0 max: 255 is_categorical: true }
  shape { dim { size: 8 } dim { size: 4 } dim { size: 3 } }
}
feature {
  name: "letters" type: INT int_domain { min: 0 max: 255 is_categorical: true } shape { dim { size: 5 } }
}
feature { name: "word" type: BYTES shape {} }
feature { name: "big" type: INT shape {} }
"""


def schema(text: str = SCHEMA) -> schema_pb2.Schema:
    return text_format.Parse(text, schema_pb2.Schema())


def test_features_are_read_from_the_schema_without_the_label() -> None:
    found = features.from_schema(schema(), "big")
    assert [(f.name, f.dtype, f.shape, f.num_categories) for f in found] == [
        ("fare", tf.float32, (), None),
        ("hour", tf.int64, (), 24),
        ("passengers", tf.int64, (), None),
        ("image", tf.float32, (8, 4), None),
        ("pixels", tf.uint8, (8, 4), None),
        ("counts", tf.int64, (8,), None),
        ("photo", tf.uint8, (8, 4, 3), None),
        ("letters", tf.int64, (5,), 256),
        ("word", tf.string, (), None),
    ]


def test_a_label_that_is_not_there() -> None:
    with pytest.raises(TrainingError) as caught:
        features.from_schema(schema(), "bigger")
    assert str(caught.value) == (
        "The label 'bigger' is not among the transformed features: big, counts, fare, hour, image, letters, "
        "passengers, photo, pixels, word.\n"
        "Return it from preprocessing_fn, or name another label in recipe.yaml."
    )


def test_the_sample_weight_is_no_feature_either() -> None:
    found = features.from_schema(schema(), "big", "fare")
    assert [f.name for f in found] == ["hour", "passengers", "image", "pixels", "counts", "photo", "letters", "word"]
    with pytest.raises(
        TrainingError, match=r"^The trainer\.sample_weight 'weight' is not among the transformed features"
    ):
        features.from_schema(schema(), "big", "weight")


def test_a_feature_without_a_fixed_shape() -> None:
    with pytest.raises(TrainingError) as caught:
        features.from_schema(schema(SCHEMA + 'feature { name: "tags" type: BYTES }'), "big")
    assert str(caught.value) == (
        "The transformed feature 'tags' has no fixed shape: it is sparse or ragged.\n"
        "Make it dense in preprocessing_fn (fill in what is missing)."
    )


def test_what_tft_wrote_tells_categories_from_numbers(tiny: Tiny) -> None:
    found = {f.name: f for f in features.from_schema(tiny.output.transformed_metadata.schema, "big")}
    assert set(found) == {"id", "fare", "fare_bucket", "company"}
    assert (found["fare_bucket"].num_categories, found["company"].num_categories) == (4, 5)
    assert (found["fare"].num_categories, found["id"].num_categories) == (None, None)
