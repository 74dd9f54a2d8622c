"""The model's features, read from the transformed schema so that they need not be listed twice."""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf
from tensorflow_metadata.proto.v0 import schema_pb2

from contracts.errors import TrainingError
from contracts.labels import Label, label_features

_DTYPES = {schema_pb2.FLOAT: tf.float32, schema_pb2.INT: tf.int64, schema_pb2.BYTES: tf.string}


@dataclass(frozen=True)
class Feature:
    """One input of the model.

    Attributes:
        name: The name of the feature in the transformed data, and of the model's input.
        dtype: `tf.float32`, `tf.int64` or `tf.string`; `tf.uint8` for arrays of integers that the schema limits to 0 to
            255, unless they are categories. Images, [height, width, 1, 3 or 4 channels], never count as categories.
        shape: The shape of one example, without the batch dimension; `()` is a scalar.
        num_categories: For a categorical integer, the number of ids (0 to `num_categories` - 1); else None.
    """

    name: str
    dtype: tf.DType
    shape: tuple[int, ...]
    num_categories: int | None


def from_schema(transformed_schema: schema_pb2.Schema, label: Label, sample_weight: str | None = None) -> list[Feature]:
    """Returns the model's features in the schema's order, without the labels and the sample weight.

    Args:
        transformed_schema: `TFTransformOutput.transformed_metadata.schema`. The schema that AnalyzeDataset returns will
            not do: it lacks ranges that are only known after the analysis, such as a vocabulary's size.
        label: The label or labels; they must be in the schema.
        sample_weight: The name of the sample weight, if there is one; it must be in the schema, too.

    Raises:
        TrainingError: A label or the weight is missing from the schema, or a feature has no fixed shape.
    """
    names = [feature.name for feature in transformed_schema.feature]
    labels = label_features(label)
    weights = [sample_weight] if sample_weight else []
    for role, name in (*(("label", name) for name in labels), *(("trainer.sample_weight", name) for name in weights)):
        if name not in names:
            raise TrainingError(
                f"The {role} {name!r} is not among the transformed features: {', '.join(sorted(names)) or 'none'}.",
                f"Return it from preprocessing_fn, or name another {role} in recipe.yaml.",
            )
    return [_feature(proto) for proto in transformed_schema.feature if proto.name not in (*labels, *weights)]


def _feature(proto: schema_pb2.Feature) -> Feature:
    if not proto.HasField("shape"):
        raise TrainingError(
            f"The transformed feature {proto.name!r} has no fixed shape: it is sparse or ragged.",
            "Make it dense in preprocessing_fn (fill in what is missing).",
        )
    shape = tuple(dim.size for dim in proto.shape.dim)
    if _is_bytewise(proto, shape):
        # tf.Examples have no integer smaller than int64, which takes eight times the memory that pixels need.
        return Feature(proto.name, tf.uint8, shape, None)
    return Feature(proto.name, _DTYPES[proto.type], shape, _num_categories(proto))


def _is_bytewise(proto: schema_pb2.Feature, shape: tuple[int, ...]) -> bool:
    domain = proto.int_domain
    bounded = proto.WhichOneof("domain_info") == "int_domain" and domain.min >= 0 and domain.max <= 255
    # The shape counts as well, because TFT marks every integer that has a range as categorical, even pixels.
    is_image = len(shape) == 3 and shape[-1] in (1, 3, 4)
    return bool(shape) and bounded and (is_image or not domain.is_categorical)


def _num_categories(proto: schema_pb2.Feature) -> int | None:
    # A range alone is not enough: an integer that counts something (passengers) has one too, but is not a category.
    if proto.WhichOneof("domain_info") != "int_domain" or not proto.int_domain.is_categorical:
        return None
    return int(proto.int_domain.max) + 1
