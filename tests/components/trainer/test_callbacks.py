"""What watches a training: made from settings, and made to tell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from components.trainer import callbacks
from components.trainer.callback_settings import CallbackSettings
from contracts.errors import TrainingError


def made(folder: Path, **keys: Any) -> dict[str, Any]:
    settings = CallbackSettings.model_validate(keys)
    return {type(callback).__name__: callback for callback in callbacks.from_settings(settings, str(folder))}


def test_only_tensorboard_s_scalars_without_settings(tmp_path: Path) -> None:
    found = made(tmp_path)
    assert list(found) == ["TensorBoard"]
    assert (found["TensorBoard"].histogram_freq, found["TensorBoard"].log_dir) == (0, f"{tmp_path}/tensorboard")
    assert made(tmp_path, tensorboard=None) == {}


def test_settings_reach_keras(tmp_path: Path) -> None:
    found = made(
        tmp_path,
        early_stopping={"monitor": "val_auc", "patience": 4, "min_delta": 0.1, "mode": "max", "baseline": 0.7},
        reduce_lr_on_plateau={"factor": 0.5, "patience": 7, "min_lr": 1e-5, "cooldown": 2},
        best_checkpoint={"monitor": "val_auc", "mode": "max"},
        tensorboard={"histograms_every": 2, "update_freq": 100},
    )
    stopping, plateau = found["EarlyStopping"], found["ReduceLROnPlateau"]
    assert (stopping.monitor, stopping.patience, stopping.min_delta) == ("val_auc", 4, 0.1)
    assert (stopping.baseline, stopping.start_from_epoch) == (0.7, 0)
    assert stopping.restore_best_weights
    assert stopping.monitor_op(2, 1)
    assert (plateau.factor, plateau.patience, plateau.min_lr) == (0.5, 7, 1e-5)
    assert (plateau.cooldown, plateau.min_delta) == (2, 1e-4)
    assert found["ModelCheckpoint"].save_best_only
    assert (found["TensorBoard"].histogram_freq, found["TensorBoard"].update_freq) == (2, 100)


class Curve(tf_keras.callbacks.Callback):
    """A callback of a recipe's own."""


def test_a_recipe_may_have_callbacks_of_its_own(tmp_path: Path) -> None:
    def own(params: dict[str, Any], folder: str) -> list[tf_keras.callbacks.Callback]:
        assert (params, folder) == ({"curve": 1}, str(tmp_path))
        return [Curve()]

    [curve] = callbacks.of_recipe(SimpleNamespace(callbacks=own), {"curve": 1}, str(tmp_path))
    assert type(curve) is Curve
    # What model.py imports by that name is no function of its own.
    assert callbacks.of_recipe(SimpleNamespace(callbacks=tf_keras.callbacks), {}, "") == []
    assert callbacks.of_recipe(SimpleNamespace(), {}, "") == []


@pytest.mark.parametrize(("returned", "received"), [(Curve(), "Curve"), ([Curve(), "curve"], "list of Curve, str")])
def test_what_is_no_list_of_callbacks_is_refused(returned: Any, received: str) -> None:
    with pytest.raises(TrainingError) as caught:
        callbacks.of_recipe(SimpleNamespace(callbacks=lambda _params, _folder: returned), {}, "")
    assert str(caught.value) == (
        f"callbacks in model.py returned {received}, expected a list of tf_keras.callbacks.Callback.\n"
        "Return such objects from it, or an empty list."
    )


@pytest.mark.parametrize("steps", [(0, 3), (5, 4)])
def test_a_profile_needs_steps_in_order(tmp_path: Path, steps: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"received \[\d, \d\], expected \[first, last\] with 1 <= first <= last"):
        made(tmp_path, tensorboard={"profile_steps": steps})


def test_progress_tells_epoch_and_metrics_as_they_are_now(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    callback = callbacks.StepwiseProgressFile(path, epochs=3, note="float32")
    seen = []
    for epoch in range(2):
        callback.on_epoch_begin(epoch)
        callback.on_train_batch_end(49, {"loss": np.float32(0.5)})
        seen.append(json.loads(path.read_text()))
    callback.on_epoch_end(1, {"loss": 0.25, "val_loss": 0.75})
    assert seen == [{"epoch": epoch, "epochs": 3, "metrics": {"loss": 0.5}, "note": "float32"} for epoch in (1, 2)]
    assert json.loads(path.read_text())["metrics"] == {"loss": 0.25, "val_loss": 0.75}
    assert [file.name for file in tmp_path.iterdir()] == ["progress.json"]


def test_progress_is_written_only_where_a_run_wants_it(tmp_path: Path) -> None:
    none, some = callbacks.watchers(3, "", True, None), callbacks.watchers(3, "", False, str(tmp_path / "p.json"))
    assert [type(watcher).__name__ for watcher in none] == ["StepwiseNaNGuard"]
    assert [type(watcher).__name__ for watcher in some] == ["NaNGuard", "ProgressFile"]


@pytest.mark.parametrize("stepwise", [True, False])
def test_a_loss_that_is_no_number_ends_the_training(stepwise: bool) -> None:
    model = tf_keras.Sequential([tf_keras.layers.Dense(1)])
    model.compile(tf_keras.optimizers.SGD(1e30), "mse")
    guard = callbacks.StepwiseNaNGuard() if stepwise else callbacks.NaNGuard()
    with pytest.raises(TrainingError) as caught:
        model.fit(np.ones([8, 2]), np.ones([8, 1]), batch_size=2, epochs=9, callbacks=[guard], verbose=0)
    assert str(caught.value).replace("inf", "nan") == (
        "The loss became nan in epoch 1.\n"
        "Lower the learning rate, set trainer.optimization.clip_norm, or find the cause with --set trainer.debug=true."
    )


def batches(shape: list[int]) -> tf.data.Dataset:
    values = np.arange(6 * np.prod(shape), dtype=np.uint8).reshape([6, *shape])
    return tf.data.Dataset.from_tensor_slices(({"pixels": values}, np.zeros(6))).batch(3).repeat()


def images(folder: Path) -> Iterator[tuple[int, Any]]:
    for path in sorted((folder / "tensorboard" / "train").iterdir()):
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            event = tf.compat.v1.Event.FromString(record)
            for value in event.summary.value:
                encoded = tf.make_ndarray(value.tensor)[2:]
                yield event.step, np.stack([tf.io.decode_png(image).numpy() for image in encoded])


def test_example_images_are_the_batches_as_they_come(tmp_path: Path) -> None:
    callback = callbacks.ExampleImages(batches([4, 4, 1]), 2, str(tmp_path))
    for epoch in range(2):
        callback.on_epoch_end(epoch)
    found = sorted(images(tmp_path), key=lambda entry: entry[0])
    assert [step for step, _ in found] == [0, 1]
    np.testing.assert_array_equal(found[1][1], np.arange(48, 80).reshape([2, 4, 4, 1]))


def test_example_images_need_an_image(tmp_path: Path) -> None:
    with pytest.raises(TrainingError) as caught:
        callbacks.ExampleImages(batches([4, 5]), 2, str(tmp_path))
    assert str(caught.value) == (
        "trainer.callbacks.tensorboard.example_images is 2, but none of the features pixels is an image of shape "
        "[height, width, channels].\n"
        "Set example_images to 0."
    )
