"""The fit as recipe.yaml asks for it, on the tiny recipe."""

from __future__ import annotations

import csv
import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
import tiny_recipe
from own_step_recipe import PENALTY
from sklearn.metrics import f1_score
from tiny_artifacts import Tiny

from components.trainer import building, features, train
from components.trainer.job import Job
from contracts import model_card
from contracts.errors import TrainingError


def job(tiny: Tiny, folder: Path, module: str = "tiny_recipe", **settings: Any) -> Job:
    return tiny.job(folder / "run", module, **{"steps_per_execution": 2, **settings})


def fit(tiny: Tiny, folder: Path, module: str = "tiny_recipe", **settings: Any) -> tuple[tf_keras.Model, train.Result]:
    """Builds and fits as `train.train` does, without the export."""
    task = job(tiny, folder, module, **settings)
    tf_keras.utils.set_random_seed(task.settings.seed)
    model_features, data = train.open_data(task, tiny.output)
    recipe = importlib.import_module(module)
    model = building.build(recipe, model_features, task.settings)
    return model, train.fit(model, recipe, task, data, tf.distribute.get_strategy())


def history(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "run" / "history.csv").read_text().splitlines()))


def test_a_step_is_traced_once_in_all_epochs(tiny: Tiny, tmp_path: Path) -> None:
    model, result = fit(tiny, tmp_path, epochs=3)
    assert model.train_function.experimental_get_tracing_count() == 1
    assert model.test_function.experimental_get_tracing_count() == 1
    assert (result.facts["epochs"], result.facts["steps_per_epoch"], result.facts["replicas"]) == (3, 4, 1)
    assert result.validation_metrics["loss"] == pytest.approx(float(history(tmp_path)[-1]["val_loss"]))


def test_phases_freeze_and_thaw_with_their_own_rates(tiny: Tiny, tmp_path: Path) -> None:
    first, _ = fit(tiny, tmp_path / "one", phases=[{"epochs": 2, "freeze": ["sco*"]}])
    untrained = tf_keras.utils.set_random_seed(1) or tiny_recipe.build_model(  # type: ignore[func-returns-value]
        features.from_schema(tiny.output.transformed_metadata.schema, "big"), {}
    )
    for frozen, begun in zip(first.get_weights(), untrained.get_weights(), strict=True):
        np.testing.assert_array_equal(frozen, begun)
    both = [{"epochs": 2, "freeze": ["score"]}, {"epochs": 1, "learning_rate": 0.5}]
    second, _ = fit(tiny, tmp_path / "two", phases=both)
    assert [row["epoch"] for row in history(tmp_path / "two")] == ["0", "1", "2"]
    assert float(second.optimizer.learning_rate) == 0.5
    assert not np.array_equal(first.get_weights()[0], second.get_weights()[0])


def test_a_name_to_freeze_that_fits_no_layer(tiny: Tiny, tmp_path: Path) -> None:
    with pytest.raises(
        TrainingError, match=r"^trainer\.phases freezes 'backbone', which fits none of the model's layers"
    ):
        fit(tiny, tmp_path, phases=[{"epochs": 1, "freeze": ["backbone"]}])


def test_the_best_epoch_is_kept_where_that_is_asked_for(tiny: Tiny, tmp_path: Path) -> None:
    # Validation loss taken as better the higher it is: the best epoch is the first.
    best = {"best_checkpoint": {"monitor": "val_loss", "mode": "max"}}
    model, result = fit(tiny, tmp_path / "best", epochs=3, callbacks=best)
    first, _ = fit(tiny, tmp_path / "first", epochs=1)
    for kept, expected in zip(model.get_weights(), first.get_weights(), strict=True):
        np.testing.assert_array_equal(kept, expected)
    losses = [float(row["val_loss"]) for row in history(tmp_path / "best")]
    assert result.validation_metrics["loss"] == pytest.approx(losses[0], rel=1e-5)
    assert losses[2] < losses[0]


def test_a_recipe_s_own_callbacks_watch_every_epoch(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, int, bool]] = []

    def own(params: dict[str, Any], folder: str) -> list[tf_keras.callbacks.Callback]:
        def note(epoch: int, logs: dict[str, float]) -> None:
            seen.append((folder, epoch, "val_loss" in logs))

        return [tf_keras.callbacks.LambdaCallback(on_epoch_end=note)]

    monkeypatch.setattr(tiny_recipe, "callbacks", own, raising=False)
    fit(tiny, tmp_path, epochs=2)
    assert seen == [(str(tmp_path / "run"), 0, True), (str(tmp_path / "run"), 1, True)]


def test_what_a_recipe_s_own_callback_writes_by_tf_summary_lies_beside_the_rest(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def own(params: dict[str, Any], folder: str) -> list[tf_keras.callbacks.Callback]:
        writer = tf.summary.create_file_writer(f"{folder}/tensorboard/own")

        def write(epoch: int, logs: dict[str, float]) -> None:
            with writer.as_default(step=epoch):
                tf.summary.scalar("twice the epoch", 2 * epoch)

        return [tf_keras.callbacks.LambdaCallback(on_epoch_end=write, on_train_end=lambda logs: writer.close())]

    monkeypatch.setattr(tiny_recipe, "callbacks", own, raising=False)
    fit(tiny, tmp_path, epochs=3)
    [file] = (tmp_path / "run" / "tensorboard" / "own").iterdir()
    records = tf.data.TFRecordDataset(str(file)).as_numpy_iterator()
    events = [tf.compat.v1.Event.FromString(record) for record in records]
    found = {(v.tag, e.step): tf.make_ndarray(v.tensor).item() for e in events for v in e.summary.value}
    assert found == {("twice the epoch", epoch): 2.0 * epoch for epoch in range(3)}


def test_a_profile_of_fewer_steps_than_an_execution_has_is_written(tiny: Tiny, tmp_path: Path) -> None:
    steps = {"epochs": 3, "steps_per_execution": 50, "callbacks": {"tensorboard": {"profile_steps": [6, 7]}}}
    profiled, _ = fit(tiny, tmp_path / "profiled", **steps)
    assert len(list(tmp_path.glob("profiled/run/tensorboard/train/plugins/profile/*/*.xplane.pb"))) == 1
    plain, _ = fit(tiny, tmp_path / "plain", epochs=3, steps_per_execution=50)
    for one, other in zip(profiled.get_weights(), plain.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(TrainingError, match=r"profile_steps is \[6, 7\], but the training has the steps 1 to 4\."):
        fit(tiny, tmp_path / "short", **steps | {"epochs": 1})


def test_a_debug_run_is_eager_and_learns_the_same(tiny: Tiny, tmp_path: Path) -> None:
    eager, _ = fit(tiny, tmp_path / "debug", epochs=2, debug=True)
    plain, _ = fit(tiny, tmp_path / "plain", epochs=2)
    assert eager.run_eagerly
    for one, other in zip(eager.get_weights(), plain.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_the_layer_that_recipe_yaml_names_is_exported(tiny: Tiny, tmp_path: Path) -> None:
    task = job(tiny, tmp_path, epochs=1, params={"name": "odds"}, embedding_layer="odds")
    train.train(task)
    assert list(Path(tmp_path, "checkpoints").iterdir()) == []
    found = model_card.read_card(Path(task.serving_model_dir))
    assert found.embedding_layer == "odds"
    loaded = tf.saved_model.load(task.serving_model_dir)
    rows = tf.constant(tiny.serialized("eval"))
    np.testing.assert_array_equal(
        loaded.signatures["embedding"](examples=rows)["embedding"],
        loaded.signatures["serving_default"](examples=rows)["odds"],
    )


WEIGHTED = {"sample_weight": "fare_bucket", "optimization": {"clip_norm": 1.0}}


def test_a_train_step_of_the_recipe_s_own_is_what_trains(tiny: Tiny, tmp_path: Path) -> None:
    model, _ = fit(tiny, tmp_path, "own_step_recipe", train_steps=3, params={"own_step": True}, **WEIGHTED)
    # From zero, three steps of an eighth each way: no optimizer gives such weights.
    assert {abs(float(weight)) * 8 for weight in model.layers[-1].kernel.numpy()[:, 0]} <= {1.0, 3.0}


def test_added_losses_and_weighted_metrics_are_counted(tiny: Tiny, tmp_path: Path) -> None:
    model, result = fit(tiny, tmp_path, "own_step_recipe", epochs=1, **WEIGHTED)
    rows = tiny.tensors(tiny.transformed, "eval")
    weight, label = rows["fare_bucket"].astype(np.float32), rows["big"]
    score = model.predict({name: rows[name] for name in model.input_names}, verbose=0)[:, 0]
    losses = tf_keras.losses.binary_crossentropy(label[:, None].astype(np.float32), score[:, None]).numpy()
    assert result.validation_metrics["loss"] == pytest.approx(float(np.mean(losses * weight)) + PENALTY, rel=1e-4)
    assert result.validation_metrics["f1_score"] == pytest.approx(
        f1_score(label, score > 0.45, sample_weight=weight), rel=1e-4
    )
