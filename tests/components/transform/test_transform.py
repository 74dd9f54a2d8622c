"""Transform: the same tensors as stock TFX's, and the recipe's own errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_transform as tft
import tiny_recipe
from tfx.components.transform import executor as stock
from tfx.types import standard_artifacts
from tiny_artifacts import Tiny, execute

from components.transform import applying
from components.transform.component import Executor
from contracts.errors import SettingsError

TWO_SPLITS = ("train", "eval")


def test_tensors_equal_those_of_stock_transform(tiny: Tiny, artifact: Callable[..., Any]) -> None:
    graph, transformed = artifact(standard_artifacts.TransformGraph), artifact(standard_artifacts.Examples)
    properties = {
        "preprocessing_fn": "tiny_recipe.preprocessing_fn",
        "force_tf_compat_v1": 0,
        "disable_statistics": 1,
        "custom_config": "null",
    }
    outputs = {"transform_graph": [graph], "transformed_examples": [transformed]}
    execute(stock.Executor, tiny.inputs, outputs, properties)
    for split in TWO_SPLITS:
        ours, theirs = tiny.tensors(tiny.transformed, split), tiny.tensors(transformed, split)
        assert ours.keys() == theirs.keys()
        for name, values in ours.items():
            np.testing.assert_array_equal(values, theirs[name], err_msg=f"{split} {name}")


def test_every_row_of_every_split_is_there_in_its_place(tiny: Tiny) -> None:
    assert tiny.transformed.split_names == '["train", "eval"]'
    for split, rows in (("train", tiny_recipe.TRAIN), ("eval", tiny_recipe.EVAL)):
        tensors = tiny.tensors(tiny.transformed, split)
        assert tensors["id"].tolist() == [row["id"] for row in rows]
        assert tensors["big"].tolist() == [int(row["tips"] > 4) for row in rows]
        assert [Path(path).name for path in tiny.files(split)] == ["transformed_data_tfrecord-00000-of-00001.gz"]


def test_only_the_training_split_is_analyzed(tiny: Tiny) -> None:
    train = tiny.tensors(tiny.transformed, "train")["fare"]
    assert train.mean() == pytest.approx(0, abs=1e-5)
    assert train.std() == pytest.approx(1, abs=1e-5)
    assert abs(tiny.tensors(tiny.transformed, "eval")["fare"].mean()) > 0.01


def test_the_graph_knows_the_raw_schema_with_its_environments(tiny: Tiny) -> None:
    features = {feature.name: feature for feature in tiny.output.raw_metadata.schema.feature}
    assert list(features["tips"].not_in_environment) == ["SERVING"]


def test_an_error_of_the_recipe_arrives_as_it_is(tiny: Tiny, artifact: Callable[..., Any]) -> None:
    outputs = {
        "transform_graph": [artifact(standard_artifacts.TransformGraph)],
        "transformed_examples": [artifact(standard_artifacts.Examples)],
    }
    with pytest.raises(KeyError, match="there_is_no_such_column"):
        execute(Executor, tiny.inputs, outputs, {"preprocessing_fn": f"{__name__}.wrong_preprocessing_fn"})


def wrong_preprocessing_fn(inputs: dict[str, Any]) -> dict[str, Any]:
    """Reads a column that does not exist."""
    return {"fare": inputs["there_is_no_such_column"]}


@pytest.mark.parametrize(
    ("row_bytes", "rows"), [(0, 16_384), (600, 16_384), (2_500 + 24_584, 619), (2**20, 16), (2**30, 1)]
)
def test_wide_rows_come_in_small_batches(row_bytes: int, rows: int) -> None:
    assert applying.batch_rows(row_bytes) == rows


def test_files_of_many_batches_hold_every_row_in_its_order(
    tiny: Tiny, artifact: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    monkeypatch.setattr(applying, "batch_rows", lambda row_bytes: sizes.append(row_bytes) or 7)
    transformed = artifact(standard_artifacts.Examples)
    outputs = {"transform_graph": [artifact(standard_artifacts.TransformGraph)], "transformed_examples": [transformed]}
    execute(Executor, tiny.inputs, outputs, {"preprocessing_fn": "tiny_recipe.preprocessing_fn"})
    for name, values in tiny.tensors(transformed, "train").items():
        np.testing.assert_array_equal(values, tiny.tensors(tiny.transformed, "train")[name], err_msg=name)
    raw = [len(row) for row in tiny.serialized("train")[:100]]
    # Four integers of eight bytes and a number of four, besides the serialized row.
    assert sizes[:2] == [pytest.approx(np.mean(raw)), pytest.approx(np.mean(raw) + 4 * 8 + 4)]


def test_transform_params_reach_preprocessing_fn(tiny: Tiny, artifact: Callable[..., Any]) -> None:
    transformed, graph = artifact(standard_artifacts.Examples), artifact(standard_artifacts.TransformGraph)
    outputs = {"transform_graph": [graph], "transformed_examples": [transformed]}
    properties = {"preprocessing_fn": f"{__name__}.scaled_preprocessing_fn", "custom_config": '{"factor": 3}'}
    execute(Executor, tiny.inputs, outputs, properties)
    layer = tft.TFTransformOutput(graph.uri).transform_features_layer()
    assert layer({"id": tf.constant([[5]], tf.int64)})["id"].numpy().tolist() == [[15]]


def test_transform_params_that_nothing_takes(tiny: Tiny, artifact: Callable[..., Any]) -> None:
    outputs = {
        "transform_graph": [artifact(standard_artifacts.TransformGraph)],
        "transformed_examples": [artifact(standard_artifacts.Examples)],
    }
    properties = {"preprocessing_fn": "tiny_recipe.preprocessing_fn", "custom_config": '{"height": 8}'}
    with pytest.raises(SettingsError) as caught:
        execute(Executor, tiny.inputs, outputs, properties)
    assert str(caught.value) == (
        "The recipe gives transform.params (height), but tiny_recipe.preprocessing_fn takes no custom_config.\n"
        "Write preprocessing_fn(inputs, custom_config), or take transform.params out of recipe.yaml."
    )


def scaled_preprocessing_fn(inputs: dict[str, Any], custom_config: dict[str, Any]) -> dict[str, Any]:
    """The id multiplied by a setting."""
    return {"id": inputs["id"] * custom_config["factor"]}
