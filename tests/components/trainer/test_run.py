"""Training and its SavedModel."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
import tiny_recipe
from tensorflow.python.autograph.core import config
from tensorflow.python.autograph.impl import conversion
from tfx.components.trainer.fn_args_utils import FnArgs
from tiny_artifacts import Tiny

from components import autograph
from components.trainer import export, run
from components.trainer.processes import Surroundings


@pytest.fixture(scope="module")
def saved(tiny: Tiny, model: tf_keras.Model, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The model saved and loaded again."""
    folder = tmp_path_factory.mktemp("saved")
    export.save(model, tiny.output, "big", str(folder))
    return tf.saved_model.load(str(folder))


def scores(saved: Any, serialized: list[bytes]) -> Any:
    [output] = saved.signatures["serving_default"](examples=tf.constant(serialized)).values()
    return output.numpy()


def test_serving_scores_raw_rows_as_the_model_scores_transformed_ones(
    saved: Any, tiny: Tiny, model: tf_keras.Model
) -> None:
    transformed = tiny.tensors(tiny.transformed, "eval")
    expected = model({name: transformed[name] for name in model.input_names}, training=False)
    found = scores(saved, tiny.serialized("eval"))
    assert found.shape == (30, 1)
    assert found.std() > 0
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_label_s_columns_may_be_missing_at_serving(saved: Any, tiny: Tiny) -> None:
    np.testing.assert_array_equal(
        scores(saved, tiny.serialized("eval", without="tips")), scores(saved, tiny.serialized("eval"))
    )


def test_a_required_column_may_not_be_missing(saved: Any, tiny: Tiny) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Feature: id .* is required but could not be found"):
        scores(saved, tiny.serialized("eval", without="id"))


def test_the_transform_signatures_give_the_features_and_the_label(saved: Any, tiny: Tiny) -> None:
    expected = tiny.tensors(tiny.transformed, "eval")
    raw = tf.constant(tiny.serialized("eval"))
    label = saved.signatures["transform_label"](examples=raw)
    assert list(label) == ["big"]
    np.testing.assert_array_equal(label["big"], expected["big"])
    found = saved.signatures["transform_features"](examples=raw)
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def trained(tiny: Tiny, folder: Path, seed: int, progress: Path) -> Any:
    """The SavedModel of a run of two epochs in steps of 30 rows."""
    arguments = FnArgs(
        train_files=[str(Path(tiny.transformed.uri, "Split-train", "*"))],
        eval_files=[str(Path(tiny.transformed.uri, "Split-eval", "*"))],
        transform_output=tiny.graph,
        serving_model_dir=str(folder / "serving"),
        model_run_dir=str(folder),
        custom_config={
            "model_module": "tiny_recipe",
            "label": "big",
            "trainer": {"epochs": 2, "batch_size": 30, "steps_per_execution": 2, "seed": seed, "precision": "float32"},
            "surroundings": Surroundings(str(progress)),
        },
    )
    run.run_fn(arguments)
    return tf.saved_model.load(str(folder / "serving"))


def test_a_run_trains_notes_its_history_and_is_repeatable(tiny: Tiny, tmp_path: Path) -> None:
    found = []
    for number, seed in enumerate((1, 1, 2)):
        folder = tmp_path / str(number)
        folder.mkdir()
        found.append(scores(trained(tiny, folder, seed, tmp_path / "progress.json"), tiny.serialized("eval")))
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])
    history = list(csv.DictReader((tmp_path / "0" / "history.csv").read_text().splitlines()))
    assert [row["epoch"] for row in history] == ["0", "1"]
    assert float(history[1]["loss"]) < float(history[0]["loss"])
    assert float(history[1]["val_loss"]) < float(history[0]["val_loss"])
    progress = json.loads((tmp_path / "progress.json").read_text())
    assert (progress["epoch"], progress["epochs"]) == (2, 2)
    assert set(progress["metrics"]) == {"loss", "val_loss"}
    assert progress["note"] == "float32"


def converted(function: Any) -> bool:
    return not conversion.is_allowlisted(function)


def test_autograph_leaves_libraries_alone_and_converts_user_code(monkeypatch: pytest.MonkeyPatch) -> None:
    original = config.CONVERSION_RULES
    ours = {str(config.DoNotConvert(name)) for name in autograph.LIBRARIES}
    monkeypatch.setattr(config, "CONVERSION_RULES", tuple(rule for rule in original if str(rule) not in ours))
    assert converted(tf_keras.layers.Dense.call)
    autograph.bypass_libraries()
    once = config.CONVERSION_RULES
    autograph.bypass_libraries()
    assert once == config.CONVERSION_RULES
    assert not converted(tf_keras.layers.Dense.call)
    assert converted(tiny_recipe.preprocessing_fn)
