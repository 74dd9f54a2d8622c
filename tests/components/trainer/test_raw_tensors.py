"""Raw features as plain tensors, against what tf.io.parse_example makes of the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_transform.tf_metadata import schema_utils

from components.trainer import tensors

SCHEMA = text_format.Parse(
    """
    feature { name: "word" type: BYTES value_count { min: 1 max: 1 } }
    feature { name: "number" type: INT value_count { max: 1 } }
    feature { name: "price" type: FLOAT value_count { min: 1 max: 1 } }
    feature { name: "tags" type: BYTES }
    feature { name: "one" type: FLOAT presence { min_fraction: 1.0 } shape { dim { size: 1 } } }
    feature { name: "pixels" type: INT presence { min_fraction: 1.0 } shape { dim { size: 2 } dim { size: 2 } } }
    """,
    schema_pb2.Schema(),
)
SPEC = schema_utils.schema_as_feature_spec(SCHEMA).feature_spec
ROWS: list[dict[str, list[Any]]] = [
    {"word": [], "number": [5], "price": [0.5], "tags": ["a", "b"], "one": [1.0], "pixels": [1, 2, 3, 4]},
    {"word": ["x"], "number": [], "price": [], "tags": [], "one": [2.0], "pixels": [5, 6, 7, 8]},
    {"word": ["y"], "number": [0], "price": [0.0], "tags": ["c"], "one": [0.0], "pixels": [0, 0, 0, 0]},
]
LOWEST = -(2**63)
PLAIN: dict[str, list[Any]] = {
    "word": ["", "x", "y"],
    "number": [5, LOWEST, 0],
    "price": [0.5, float("nan"), 0.0],
    "tags": [["a", "b"], ["", ""], ["", "c"]],
    "one": [1.0, 2.0, 0.0],
    "pixels": [[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[0, 0], [0, 0]]],
}
KINDS = {"word": "bytes_list", "tags": "bytes_list", "number": "int64_list", "pixels": "int64_list"}
SHAPES: dict[str, tuple[int | None, ...]] = {"tags": (None,), "pixels": (2, 2)}


def tensor(name: str) -> tensors.RawTensor:
    found = tensors.raw_tensors_from_schema(SCHEMA, SPEC, [name])
    assert found is not None
    return found[0]


def constant(name: str, rows: slice) -> tf.Tensor:
    return tf.constant(PLAIN[name][rows], tensor(name).dtype)


def parsed(name: str, rows: slice) -> tf.Tensor | tf.SparseTensor:
    """The column as tf.io.parse_example reads it."""
    examples = []
    for row in ROWS[rows]:
        example = tf.train.Example()
        values = [value.encode() if isinstance(value, str) else value for value in row[name]]
        getattr(example.features.feature[name], KINDS.get(name, "float_list")).value.extend(values)
        examples.append(example.SerializeToString())
    return tf.io.parse_example(examples, {name: SPEC[name]})[name]


def same(found: Any, wanted: Any) -> None:
    assert type(found) is type(wanted)
    for part, other in zip(
        tf.nest.flatten(found, expand_composites=True), tf.nest.flatten(wanted, expand_composites=True), strict=True
    ):
        assert part.dtype == other.dtype
        np.testing.assert_array_equal(part, other)


@pytest.mark.parametrize("rows", [slice(0, 3), slice(0, 1), slice(1, 2)], ids=["all", "first", "second"])
@pytest.mark.parametrize("name", PLAIN)
def test_plain_values_become_what_an_example_gives(name: str, rows: slice) -> None:
    same(tensor(name).to_feature(constant(name, rows)), parsed(name, rows))


@pytest.mark.parametrize("name", PLAIN)
def test_and_back(name: str) -> None:
    found = tensor(name).from_feature(parsed(name, slice(0, 3)))
    wanted = [["a", "b"], ["", ""], ["c", ""]] if name == "tags" else PLAIN[name]
    np.testing.assert_array_equal(found, tf.constant(wanted, tensor(name).dtype))


@pytest.mark.parametrize("name", PLAIN)
def test_no_rows_are_no_rows(name: str) -> None:
    shape = [0 if size is None else size for size in tensor(name).shape]
    feature = tensor(name).to_feature(tf.zeros([0, *shape], tensor(name).dtype))
    assert tf.shape(feature)[0] == 0


@pytest.mark.parametrize("name", PLAIN)
def test_one_value_a_row_is_a_vector_and_the_rest_keep_their_shape(name: str) -> None:
    assert tensor(name).spec == tf.TensorSpec([None, *SHAPES.get(name, ())], tensor(name).dtype, name=name)


def test_what_every_row_must_have_has_no_value_for_missing() -> None:
    missing = {name: tensor(name).missing for name in PLAIN}
    assert np.isnan(missing.pop("price"))
    assert missing == {"word": "", "number": LOWEST, "tags": "", "one": None, "pixels": None}


def test_sparse_and_ragged_features_are_no_plain_tensors() -> None:
    spec = {"word": SPEC["word"], "r": tf.io.RaggedFeature(tf.int64)}
    assert tensors.raw_tensors_from_schema(SCHEMA, spec, ["word", "r"]) is None


def test_names_are_kept_where_a_signature_can_have_them(tmp_path: Path) -> None:
    names = ["fare", "Fare", "trip miles", "trip/miles", "_id", "7", "self", "é"]
    wanted = ["fare", "Fare_2", "trip_miles", "trip_miles_2", "feature__id", "feature_7", "feature_self", "é"]
    found = tensors.tensor_names(names)
    assert found == [*wanted[:-1], "feature__"]

    @tf.function(input_signature=[{name: tf.TensorSpec([None], tf.float32, name=name) for name in found}])
    def negative(tensors: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return {name: -tensor for name, tensor in tensors.items()}

    tf.saved_model.save(tf.Module(), str(tmp_path), signatures=negative)
    loaded = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    answers = loaded(**{name: tf.constant([float(number)]) for number, name in enumerate(found)})
    assert {name: tensor.numpy().tolist() for name, tensor in answers.items()} == {
        name: [-float(number)] for number, name in enumerate(found)
    }
