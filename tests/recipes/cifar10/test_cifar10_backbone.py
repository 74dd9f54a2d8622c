"""A backbone from tf_keras.applications: its weights, its batch normalization, and what two training phases change."""

import logging

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from components.trainer import building
from components.trainer.features import Feature
from components.trainer.schedule import Plan
from components.trainer.settings import TrainerSettings
from contracts.errors import TrainingError
from recipes.cifar10 import model as recipe

GRAY = [Feature("image", tf.uint8, (8, 8, 1), None)]
COLOR = [Feature("image", tf.uint8, (8, 8, 3), None)]


def backbone(**settings) -> dict:
    """Params with a small backbone at the smallest size."""
    return {"num_classes": 3, "backbone": {"name": "MobileNet", "weights": None, "image_size": 32} | settings}


@pytest.fixture(scope="module")
def weights_file(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("weights") / "mobilenet_no_top.h5"
    tf_keras.applications.MobileNet(include_top=False, weights=None, input_shape=(32, 32, 3)).save_weights(path)
    return str(path)


def test_two_phases_freeze_exactly_the_backbone_then_nothing(weights_file):
    params = backbone(weights=weights_file)
    # Eager, since tracing takes longer than two steps.
    settings = TrainerSettings(epochs=1, batch_size=6, debug=True, params=params)
    model = building.build(recipe, GRAY, settings)
    random = np.random.default_rng(0)
    images, labels = random.integers(0, 256, (6, 8, 8, 1), np.uint8), np.array([0, 1, 2] * 2)

    def moved(plan: Plan) -> dict[str, bool]:
        building.compile_model(model, recipe, settings, plan, (images, labels))
        before = {weight.name: weight.numpy() for weight in model.weights}
        model.train_on_batch(images, labels)
        return {weight.name: bool((weight.numpy() != before[weight.name]).any()) for weight in model.weights}

    frozen = moved(Plan(0, 1, 1, freeze=["backbone"]))
    assert {name for name, did in frozen.items() if did} == {"logits/kernel:0", "logits/bias:0"}
    free = moved(Plan(1, 2, 1, learning_rate=0.0001))
    assert model.optimizer.learning_rate.numpy() == pytest.approx(0.0001)
    averages = {name for name in free if "moving_" in name}
    # Batch normalization keeps its trained averages even while its scales learn.
    assert len(averages) == 2 * sum("gamma" in name for name in free)
    assert not any(free[name] for name in averages)
    assert all(did for name, did in free.items() if name not in averages)


def test_weights_come_from_the_file(weights_file):
    model = recipe.build_model(COLOR, backbone(weights=weights_file))
    network = tf_keras.applications.MobileNet(include_top=False, weights=None, input_shape=(32, 32, 3))
    network.load_weights(weights_file)
    for ours, theirs in zip(model.get_layer("backbone").weights, network.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_averages_are_learned_where_there_are_no_weights():
    model = recipe.build_model(COLOR, backbone())
    averages = [weight for weight in model.weights if "moving_mean" in weight.name]
    model(np.random.default_rng(0).integers(0, 256, (2, 8, 8, 3), np.uint8), training=True)
    assert averages
    assert all(np.abs(weight.numpy()).max() > 0 for weight in averages)


def test_images_are_resized_and_scaled_as_the_backbone_was_trained(weights_file):
    model = recipe.build_model(COLOR, backbone(weights=weights_file))
    image = np.random.default_rng(0).integers(0, 256, (1, 8, 8, 3), np.uint8)
    scaled = tf.image.resize(image, [32, 32]) / 127.5 - 1
    expected = tf.reduce_mean(model.get_layer("backbone")(scaled, training=False), axis=[1, 2])
    embedding = tf_keras.Model(model.inputs, model.get_layer("embedding").output)(image)
    np.testing.assert_allclose(embedding, expected, rtol=1e-4, atol=1e-5)


def test_gray_images_are_given_three_times():
    model = recipe.build_model(GRAY, backbone())
    assert model.get_layer("gray_to_rgb").output_shape == (None, 32, 32, 3)


def test_random_weights_are_said_out_loud(caplog):
    with caplog.at_level(logging.WARNING):
        recipe.build_model(COLOR, backbone())
    assert "The backbone MobileNet begins with random weights: its weights are set to null." in caplog.messages


def test_a_missing_file_is_told_with_where_to_get_it(tmp_path):
    path = f"{tmp_path}/mobilenet.h5"
    with pytest.raises(TrainingError) as caught:
        recipe.build_model(COLOR, backbone(weights=path))
    assert str(caught.value).startswith(
        f"trainer.params.backbone.weights is {path}, and there is no such file.\n"
        "Download the …_no_top.h5 of MobileNet from https://storage.googleapis.com/tensorflow/keras-applications/"
    )


def test_imagenet_is_a_file_too_and_not_leave_to_download():
    with pytest.raises(TrainingError, match=r"backbone\.weights is imagenet, and there is no such file"):
        recipe.build_model(COLOR, backbone(weights="imagenet"))


def test_weights_of_another_model(tmp_path, weights_file):
    garbage = tmp_path / "garbage.h5"
    garbage.write_bytes(b"nothing")
    for name, path in (("VGG16", weights_file), ("MobileNet", str(garbage))):
        with pytest.raises(TrainingError, match=f"does not hold the weights of {name} without its top"):
            recipe.build_model(COLOR, backbone(name=name, weights=path))


def test_a_model_that_there_is_not():
    with pytest.raises(TrainingError, match=r"backbone\.name is 'MobileNetV9', expected one of ConvNeXtBase, .*VGG16"):
        recipe.build_model(COLOR, backbone(name="MobileNetV9"))
