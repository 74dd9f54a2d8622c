"""The residual network: its shapes and sizes, its loss, and that it learns."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from pydantic import ValidationError

from components.trainer import optimization
from components.trainer.features import Feature
from contracts.errors import TrainingError
from recipes.cifar10.model import SmoothedSparseCrossentropy, build_model, compile_arguments, serving_outputs

CIFAR = Feature("image", tf.uint8, (32, 32, 3), None)
DIGIT = Feature("image", tf.uint8, (8, 8, 1), None)
SMALL = {"depth": 8, "width": 4, "num_classes": 3}


def seeded_model(feature: Feature = DIGIT, seed: int = 7, **params) -> tf_keras.Model:
    tf_keras.utils.set_random_seed(seed)
    return build_model([feature], params)


def batch(rows: int = 30) -> tuple[tf.Tensor, tf.Tensor]:
    """Synthetic images of three classes: light on the left, on the right, or nowhere."""
    random = np.random.default_rng(0)
    labels = np.arange(rows) % 3
    images = random.integers(0, 60, (rows, 8, 8, 1))
    images[labels == 0, :, :4] += 150
    images[labels == 1, :, 4:] += 150
    return tf.constant(images, tf.uint8), tf.constant(labels, tf.int64)


def test_resnet_20_is_the_paper_s():
    """0.27 million parameters in 20 layers, in three stages of three blocks."""
    model = seeded_model(CIFAR, depth=20)
    layers = [layer for layer in model._flatten_layers() if isinstance(layer, tf_keras.layers.Conv2D)]
    assert len(layers) + 1 == 20
    convolutions = 9 * (3 * 16 + 6 * 16**2 + 16 * 32 + 5 * 32**2 + 32 * 64 + 5 * 64**2)
    normalized_channels = 7 * 16 + 6 * 32 + 6 * 64
    top = 64 * 10 + 10
    trainable = sum(int(np.prod(weight.shape)) for weight in model.trainable_weights)
    assert trainable == convolutions + 2 * normalized_channels + top == 269_722
    assert model.count_params() == trainable + 2 * normalized_channels
    blocks = {layer.name: layer.output_shape[1:] for layer in model.layers if layer.name.startswith("block_")}
    first, second, third = ((32, 32, 16), (16, 16, 32), (8, 8, 64))
    assert blocks == {f"block_{i + 1}": shape for i, shape in enumerate([first] * 3 + [second] * 3 + [third] * 3)}
    assert model.get_layer("embedding").output_shape == (None, 64)


def test_input_and_output():
    model = seeded_model()
    assert [(tensor.name, tensor.shape.as_list(), tensor.dtype) for tensor in model.inputs] == [
        ("image", [None, 8, 8, 1], tf.uint8)
    ]
    assert model.output_names == ["probabilities"]
    probabilities = model(tf.zeros([2, 8, 8, 1], tf.uint8))
    assert (probabilities.shape, probabilities.dtype) == ((2, 10), tf.float32)
    np.testing.assert_allclose(tf.reduce_sum(probabilities, axis=1), [1.0, 1.0], rtol=1e-5)


def test_odd_sizes_are_halved_upwards():
    model = seeded_model(Feature("image", tf.uint8, (7, 9, 3), None), depth=8)
    shapes = [model.get_layer(f"block_{i}").output_shape[1:3] for i in (1, 2, 3)]
    assert shapes == [(7, 9), (4, 5), (2, 3)]


def test_a_shortcut_without_its_block_hands_the_image_on():
    """With the block's last scale at zero, only the shortcut remains: every second pixel, new channels at zero."""
    model = seeded_model(depth=8, width=2)
    block = model.get_layer("block_2")
    normalization = [layer for layer in block.layers if isinstance(layer, tf_keras.layers.BatchNormalization)][-1]
    normalization.gamma.assign(tf.zeros_like(normalization.gamma))
    maps = tf.random.stateless_uniform([1, 8, 8, 2], [1, 2])
    passed = block(maps)
    np.testing.assert_array_equal(passed[..., :2], maps[:, ::2, ::2])
    np.testing.assert_array_equal(passed[..., 2:], tf.zeros([1, 4, 4, 2]))


def test_a_training_step_changes_every_weight():
    images, labels = batch()
    model = seeded_model(**SMALL)
    model.compile(**compile_arguments(SMALL))
    before = [weight.numpy() for weight in model.weights]
    results = model.train_on_batch(images, labels, return_dict=True)
    assert set(results) == {"loss", "accuracy", "top_5_accuracy"}
    for old, new in zip(before, model.weights, strict=True):
        assert np.abs(new.numpy() - old).max() > 0, new.name


def test_it_learns():
    images, labels = batch(60)
    params = SMALL | {"learning_rate": 0.01}
    model = seeded_model(**params)
    model.compile(**compile_arguments(params), steps_per_execution=4)
    model.fit(images, labels, batch_size=15, epochs=12, verbose=0)
    assert model.evaluate(images, labels, verbose=0, return_dict=True)["accuracy"] > 0.95


def test_same_seed_same_weights():
    first, again, other = (seeded_model(seed=seed, **SMALL) for seed in (1, 1, 2))
    for one, two in zip(first.weights, again.weights, strict=True):
        np.testing.assert_array_equal(one, two)
    assert np.abs(first.get_layer("logits").kernel - other.get_layer("logits").kernel).max() > 0


def test_output_is_float32_under_mixed_precision():
    tf_keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        model = seeded_model(**SMALL)
        assert model.get_layer("block_2").output.dtype == tf.bfloat16
        assert model(batch()[0]).dtype == tf.float32
    finally:
        tf_keras.mixed_precision.set_global_policy("float32")


def test_recomputed_blocks_give_the_same_gradients():
    images, labels = batch()
    model, recomputed = seeded_model(**SMALL), seeded_model(**SMALL)
    optimization.recompute_blocks(recomputed, ["block_*"])
    gradients = []
    for trained in (model, recomputed):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(
                tf_keras.losses.sparse_categorical_crossentropy(labels, trained(images, training=True))
            )
        gradients.append(tape.gradient(loss, trained.trainable_variables))
    for kept, again in zip(*gradients, strict=True):
        np.testing.assert_allclose(kept, again, atol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_keras_s_of_one_hot_labels(smoothing):
    labels = tf.constant([0, 2, 1])
    probabilities = tf.constant([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.5, 0.3, 0.2]])
    weights = tf.constant([1.0, 0.0, 3.0])
    keras = tf_keras.losses.CategoricalCrossentropy(label_smoothing=smoothing)
    ours = SmoothedSparseCrossentropy(smoothing)
    one_hot = tf.one_hot(labels, 3)
    for targets in (labels, labels[:, tf.newaxis]):
        assert ours(targets, probabilities).numpy() == pytest.approx(keras(one_hot, probabilities).numpy())
    weighted = ours(labels, probabilities, sample_weight=weights).numpy()
    assert weighted == pytest.approx(keras(one_hot, probabilities, sample_weight=weights).numpy())
    assert weighted != pytest.approx(ours(labels, probabilities).numpy())


def test_what_is_served_are_probabilities_and_the_class_of_the_greatest():
    served = serving_outputs({"probabilities": tf.constant([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3]])}, {})
    assert set(served) == {"probabilities", "class_ids"}
    assert (served["class_ids"].dtype, served["class_ids"].numpy().tolist()) == (tf.int64, [1, 0])


def test_optimizer_is_adamw_as_set():
    optimizer = compile_arguments({"learning_rate": 0.5, "weight_decay": 0.25})["optimizer"]
    assert isinstance(optimizer, tf_keras.optimizers.AdamW)
    assert (optimizer.learning_rate.numpy(), optimizer.weight_decay) == (0.5, 0.25)


def test_another_feature_is_refused():
    age = Feature("age", tf.float32, (), None)
    with pytest.raises(TrainingError) as caught:
        build_model([DIGIT, age], {})
    assert str(caught.value) == (
        "The model received the features image (uint8 [8, 8, 1]), age (float32 []), expected one image (uint8 "
        "[height, width, channels]).\nLet preprocessing_fn return the image and the label alone."
    )


def test_wrong_parameters_are_refused():
    with pytest.raises(ValidationError, match=r"received 10, expected 6n \+ 2: 8, 14, 20"):
        build_model([DIGIT], {"depth": 10})
    with pytest.raises(ValidationError, match="num_clases"):
        build_model([DIGIT], {"num_clases": 3})
