"""A subclass of tf_keras.Model is trained, resumed and exported like a functional model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import subclassed_recipe
import tensorflow as tf
import tf_keras
from test_fitting import fit, job
from test_resume import fit as fit_job
from test_resume import new_job
from tiny_artifacts import Tiny
from trained import history, scores

from components.trainer import building, features, interface, train
from components.trainer.settings import TrainerSettings
from contracts import model_card
from contracts.errors import TrainingError


def built(tiny: Tiny, **settings: Any) -> tf_keras.Model:
    tf_keras.utils.set_random_seed(1)
    model_features = features.from_schema(tiny.output.transformed_metadata.schema, "big")
    return building.build(subclassed_recipe, model_features, TrainerSettings(epochs=1, **settings))


def values(tiny: Tiny, names: list[str]) -> dict[str, Any]:
    transformed = tiny.tensors(tiny.transformed, "eval")
    return {name: transformed[name] for name in names}


def test_trained_exported_and_served(tiny: Tiny, tmp_path: Path) -> None:
    asked = {"phases": [{"epochs": 1, "freeze": ["first"]}, {"epochs": 2}], "embedding_layer": "block_2"}
    task = job(tiny, tmp_path, "subclassed_recipe", **asked)
    train.train(task)
    assert [row["epoch"] for row in history(task)] == [0, 1, 2]
    card = model_card.read_card(Path(task.serving_model_dir))
    assert set(card.signatures) == {
        *("serving_default", "predict", "predict_transformed", "transform_features", "transform_label"),
        *("embedding", "classify"),
    }
    assert (card.task, card.num_parameters) == ("binary", 227)
    # Only what `call` reads is asked for.
    assert set(card.signatures["predict"].inputs) == {"fare", "company"}
    assert list(card.signatures["predict"].outputs) == ["output_1"]
    loaded = tf.saved_model.load(task.serving_model_dir)
    vectors = loaded.signatures["embedding"](examples=tf.constant(tiny.serialized("eval")))["embedding"]
    assert vectors.shape == (30, 8)
    assert scores(task, tiny).std() > 0


def test_served_scores_are_the_model_s(tiny: Tiny, tmp_path: Path) -> None:
    model, _ = fit(tiny, tmp_path, "subclassed_recipe", epochs=2)
    task = job(tiny, tmp_path / "again", "subclassed_recipe", epochs=2)
    train.train(task)
    rows = values(tiny, ["fare", "company"])
    np.testing.assert_allclose(scores(task, tiny), model(rows, training=False), rtol=1e-5)


@pytest.mark.parametrize(
    "settings",
    [{"callbacks": {"best_checkpoint": {"monitor": "val_auc", "mode": "max"}}}, {"precision": "mixed_float16"}],
    ids=["best_epoch", "loss_scale"],
)
def test_resumed_it_is_the_training_that_was_not_interrupted(
    settings: dict[str, Any], tiny: Tiny, tmp_path: Path
) -> None:
    done, memory = tmp_path / "done", tmp_path / "interrupted"
    done.touch()
    task = {"model_module": "subclassed_recipe"}
    whole_job = new_job(tiny, tmp_path, "whole", 4, done, **settings).model_copy(update=task)
    whole, _ = fit_job(tiny, whole_job)
    with pytest.raises(InterruptedError):
        fit_job(tiny, new_job(tiny, tmp_path, "first", 4, memory, **settings).model_copy(update=task))
    resumed_job = new_job(tiny, tmp_path, "second", 4, memory, **settings).model_copy(update=task)
    resumed, _ = fit_job(tiny, resumed_job)
    for found, expected in zip(resumed.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert history(resumed_job) == history(whole_job)


def test_groups_and_recomputed_blocks_change_nothing(tiny: Tiny, tmp_path: Path) -> None:
    plain, _ = fit(tiny, tmp_path / "plain", "subclassed_recipe", epochs=1)
    saving = {"recompute": ["block_*"]}
    recomputed, _ = fit(tiny, tmp_path / "recomputed", "subclassed_recipe", epochs=1, optimization=saving)
    for found, expected in zip(recomputed.get_weights(), plain.get_weights(), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    with pytest.raises(TrainingError, match=r"names 'dropout', whose layer 'dropout' \(Dropout\) draws random numbers"):
        built(tiny, optimization={"recompute": ["dropout"]})


def test_accumulated_gradients_move_every_weight(tiny: Tiny, tmp_path: Path) -> None:
    model, _ = fit(tiny, tmp_path, "subclassed_recipe", epochs=1, optimization={"gradient_accumulation": 3})
    begun = built(tiny)
    for weight, before in zip(model.trainable_weights, begun.trainable_weights, strict=True):
        assert np.abs(weight - before).max() > 0, weight.name


def test_several_outputs_by_name(tiny: Tiny, tmp_path: Path) -> None:
    task = job(tiny, tmp_path, "subclassed_recipe", epochs=1, params={"heads": ["tip", "other"]})
    task = task.model_copy(update={"label": {"tip": "big", "other": "big"}})
    train.train(task)
    assert {"tip_auc", "val_other_auc"} < set(history(task)[0])
    card = model_card.read_card(Path(task.serving_model_dir))
    assert set(card.signatures["predict"].outputs) == {"tip", "other"}


def test_the_precision_reaches_its_layers_and_its_outputs_are_float32(tiny: Tiny) -> None:
    policy = tf_keras.mixed_precision.global_policy()
    tf_keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        model = built(tiny)
        assert model.get_layer("first").compute_dtype == "bfloat16"
        [output] = interface.outputs(model).values()
        assert output.dtype == tf.float32
    finally:
        tf_keras.mixed_precision.set_global_policy(policy)


def test_what_its_call_cannot_take_is_told_with_the_features(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    class Lost(tf_keras.Model):
        def call(self, inputs: Any) -> Any:
            return inputs["fares"]

    monkeypatch.setattr(subclassed_recipe, "build_model", lambda features, params: Lost())
    with pytest.raises(TrainingError) as caught:
        built(tiny)
    assert caught.value.what.startswith(
        "build_model returned a Lost whose call fails for the features company int64 [None], fare float32 [None], "
    )
    assert "KeyError: 'fares'" in caught.value.what
    assert str(caught.value).endswith(
        "Its call(inputs) is given a dict of these features by name. Mend it, or build the model from tf_keras.Input "
        "layers."
    )
