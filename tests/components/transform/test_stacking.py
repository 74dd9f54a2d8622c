"""Columns of numbers that are analyzed as one tensor: what comes out is the same, and the graphs are small."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
import tensorflow_transform as tft
import tf_keras
import wide_recipe
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.types import standard_artifacts
from tiny_artifacts import execute, new_artifact, new_examples, serialized

from components.artifacts import split_files
from components.tabular.tensors import RawInputs, numbers_of
from components.trainer import export, features
from components.transform import stacking
from components.transform.component import Executor
from contracts.errors import DataError, SettingsError

NAN = float("nan")
LOWEST = -(2**63)


def run_transform(folder: Path) -> tuple[Any, str]:
    """The transformed Examples and the transform graph of the wide recipe."""
    schema = new_artifact(folder, standard_artifacts.Schema)
    Path(schema.uri, "schema.pbtxt").write_text(wide_recipe.SCHEMA)
    raw = new_examples(folder, {"train": wide_recipe.TRAIN, "eval": wide_recipe.EVAL})
    graph = new_artifact(folder, standard_artifacts.TransformGraph)
    transformed = new_artifact(folder, standard_artifacts.Examples)
    outputs = {"transform_graph": [graph], "transformed_examples": [transformed]}
    properties = {"preprocessing_fn": "wide_recipe.preprocessing_fn"}
    execute(Executor, {"examples": [raw], "schema": [schema]}, outputs, properties)
    return transformed, graph.uri


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, str]:
    return run_transform(tmp_path_factory.mktemp("wide"))


def tensors(transformed: Any, graph: str, split: str) -> dict[str, Any]:
    records = tf.data.TFRecordDataset(split_files(transformed, split), compression_type="GZIP")
    spec = tft.TFTransformOutput(graph).transformed_feature_spec()
    parsed = tf.io.parse_example(list(records.as_numpy_iterator()), spec)
    return {name: tensor.numpy() for name, tensor in parsed.items()}


def test_the_tensors_are_those_of_columns_by_themselves(
    wide: tuple[Any, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stacking, "LEAST", 1000)
    plain = run_transform(tmp_path)
    assert stacking.RawTransform(plain[1]).columns == ()
    assert stacking.RawTransform(wide[1]).columns == tuple(wide_recipe.TOGETHER)
    for split, rows in (("train", 120), ("eval", 30)):
        expected, found = tensors(*plain, split), tensors(*wide, split)
        assert found.keys() == expected.keys()
        assert len(found["label"]) == rows
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values, err_msg=f"{split} {name}")


def test_the_graph_that_tft_knows_takes_each_raw_feature_by_itself(wide: tuple[Any, str]) -> None:
    output = tft.TFTransformOutput(wide[1])
    assert isinstance(output.raw_feature_spec()["float0"], tf.io.VarLenFeature)
    rows = tf.io.parse_example([serialized(row) for row in wide_recipe.EVAL], output.raw_feature_spec())
    found, expected = output.transform_features_layer()(rows), tensors(*wide, "eval")
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def test_without_the_label_everything_else_is_computed(wide: tuple[Any, str]) -> None:
    output = tft.TFTransformOutput(wide[1])
    spec = {name: feature for name, feature in output.raw_feature_spec().items() if name != "label"}
    rows = tf.io.parse_example([serialized(row) for row in wide_recipe.EVAL], spec)
    for apply in (stacking.RawTransform(wide[1]), output.transform_features_layer()):
        assert set(apply(rows)) == {"number_values", "number_ranks", "category_ids", "alone"}
    with pytest.raises(DataError, match=r"^The transform graph needs the column float3\."):
        stacking.RawTransform(wide[1])({name: value for name, value in rows.items() if name != "float3"})


def test_a_model_answers_alike_however_it_is_asked(wide: tuple[Any, str], tmp_path: Path) -> None:
    output = tft.TFTransformOutput(wide[1])
    known = features.from_schema(output.transformed_metadata.schema, "label")
    inputs = {one.name: tf_keras.Input(shape=one.shape, name=one.name, dtype=one.dtype) for one in known}
    parts = [tf.reshape(tf.cast(tensor, tf.float32), [-1, (*tensor.shape, 1)[1]]) for tensor in inputs.values()]
    model = tf_keras.Model(inputs, tf_keras.layers.Dense(1, "sigmoid", name="score")(tf.concat(parts, axis=1)))
    export.save(model, output, "label", str(tmp_path))

    loaded = tf.saved_model.load(str(tmp_path))
    expected = model({name: tensors(*wide, "eval")[name] for name in inputs}).numpy()
    rows = wide_recipe.EVAL
    by_examples = loaded.signatures["serving_default"](examples=tf.constant([serialized(row) for row in rows]))
    np.testing.assert_allclose(by_examples["score"], expected, atol=1e-6)
    missing = dict.fromkeys(wide_recipe.FLOATS, NAN) | {"word": ""}
    columns = {
        name: tf.constant([missing.get(name, LOWEST) if row[name] is None else row[name] for row in rows])
        if name in missing
        else tf.constant([LOWEST if row[name] is None else row[name] for row in rows], tf.int64)
        for name in rows[0]
        if name != "label"
    }
    by_columns = loaded.signatures["predict"](**columns)
    np.testing.assert_allclose(by_columns["score"], expected, atol=1e-6)
    operations = [len(function.graph.get_operations()) for function in loaded.signatures.values()]
    assert max(operations) < 3 * len(columns)


def test_which_columns_are_stacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = text_format.Parse(wide_recipe.SCHEMA, schema_pb2.Schema())
    assert stacking.stackable(wide_recipe.preprocessing_fn, schema, str(tmp_path)) == tuple(wide_recipe.TOGETHER)
    one_by_one = {name: f"{name}_out" for name in wide_recipe.FLOATS}
    assert stacking.stackable(lambda inputs: {new: inputs[old] for old, new in one_by_one.items()}, schema, "") == ()
    assert stacking.stackable(lambda inputs: dict(inputs), schema, "") == ()
    monkeypatch.setattr(stacking, "LEAST", len(wide_recipe.TOGETHER) + 2)
    assert stacking.stackable(pytest.fail, schema, "") == ()


def test_a_batch_is_stacked_with_nan_for_what_is_missing() -> None:
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([[1.5], None, []], pa.large_list(pa.float32())),
            pa.array([["x"], ["y"], None], pa.large_list(pa.large_binary())),
            pa.array([[7], [8], [9]], pa.large_list(pa.int64())),
        ],
        ["a", "word", "b"],
    )
    stacked = stacking.stacked(batch, ["b", "a"])
    assert stacked.schema.names == ["word", stacking.INPUT]
    assert stacked.column(0) == batch.column(1)
    np.testing.assert_array_equal(stacked.column(1).to_pylist(), [[7, 1.5], [8, NAN], [9, NAN]])


def test_several_values_in_a_row_are_refused() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([[1.0], [1.0, 2.0]], pa.large_list(pa.float32()))], ["size"])
    with pytest.raises(DataError) as caught:
        stacking.stacked(batch, ["size"])
    assert str(caught.value) == (
        "The column size has 2 values in a row, and its schema allows one.\n"
        "Mend the data, or raise value_count.max in the schema."
    )


def test_columns_are_taken_from_the_stack_and_from_beside_it() -> None:
    stack = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    made: list[str] = []
    inputs = RawInputs({"c": tf.constant([5, 6])}, stack, ["a", "b"], lambda name: made.append(name) or stack[:, 0])
    np.testing.assert_array_equal(numbers_of(inputs, ["c", "b"]), [[5, 2], [6, 4]])
    assert numbers_of(inputs, ["a", "b"]) is stack
    assert (set(inputs), len(inputs), "a" in inputs, "d" in inputs, made) == ({"a", "b", "c"}, 3, True, False, [])
    assert inputs["a"].numpy().tolist() == [1, 3]
    assert made == ["a"]
    with pytest.raises(KeyError, match="d"):
        inputs["d"]


def test_a_function_that_changes_its_mind_is_refused() -> None:
    changed = stacking.on_stack(lambda inputs: {"a": inputs["a"]}, ["a"])
    with pytest.raises(
        SettingsError, match=r"^preprocessing_fn takes the column a alone, and took it with others when"
    ):
        changed({stacking.INPUT: tf.zeros([2, 1])})
