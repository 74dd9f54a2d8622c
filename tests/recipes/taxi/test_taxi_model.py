"""The model on synthetic trips: its inputs and outputs, and that it learns."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from pydantic import ValidationError

from components.trainer.features import Feature
from recipes.taxi.model import build_model, compile_arguments

# Once seeded, tf_keras draws its own seeds with random.randint(1, 1e9), a float.
pytestmark = pytest.mark.filterwarnings("ignore:non-integer arguments to randrange:DeprecationWarning")

FEATURES = [
    Feature("company", tf.int64, (), 3),
    Feature("fare", tf.float32, (), None),
    Feature("payment_type", tf.int64, (), 2),
    Feature("trip_miles", tf.float32, (), None),
]


def batch(rows: int = 40) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """Synthetic trips whose tip is big where payment type and fare disagree: no linear model can tell."""
    random = np.random.default_rng(0)
    paid = random.integers(0, 2, rows)
    fare = random.normal(size=rows).astype(np.float32)
    trips = {
        "company": tf.constant(random.integers(0, 3, rows)),
        "fare": tf.constant(fare),
        "payment_type": tf.constant(paid),
        "trip_miles": tf.constant(random.normal(size=rows).astype(np.float32)),
    }
    return trips, tf.constant((paid == 1) != (fare > 0), tf.int64)


def seeded_model(seed: int = 7, **params) -> tf_keras.Model:
    tf_keras.utils.set_random_seed(seed)
    return build_model(FEATURES, params)


def test_inputs_are_the_features_by_name():
    model = seeded_model()
    assert {tensor.name: (tensor.shape.as_list(), tensor.dtype) for tensor in model.inputs} == {
        "company": ([None], tf.int64),
        "fare": ([None], tf.float32),
        "payment_type": ([None], tf.int64),
        "trip_miles": ([None], tf.float32),
    }
    assert model.output_names == ["probability"]


@pytest.mark.parametrize("names", [{"company"}, {"fare", "trip_miles"}])
def test_categories_or_numbers_alone_are_enough(names):
    model = build_model([feature for feature in FEATURES if feature.name in names], {})
    trips = {name: column for name, column in batch()[0].items() if name in names}
    assert model(trips).shape == [40, 1]


@pytest.mark.parametrize("feature", [feature.name for feature in FEATURES])
def test_every_feature_is_needed(feature):
    trips, _ = batch()
    del trips[feature]
    with pytest.raises((KeyError, ValueError), match=feature):
        seeded_model()(trips)


@pytest.mark.parametrize("feature", [feature.name for feature in FEATURES])
def test_every_feature_reaches_the_output(feature):
    trips, _ = batch()
    model = seeded_model()
    changed = trips | {feature: (trips[feature] + 1) if feature in ("fare", "trip_miles") else 1 - trips[feature] % 2}
    assert np.abs(model(trips) - model(changed)).max() > 1e-6


def test_a_training_step_changes_every_weight_and_gives_probabilities():
    trips, labels = batch()
    model = seeded_model()
    model.compile(**compile_arguments({}))
    before = [weight.numpy() for weight in model.trainable_weights]
    losses = model.train_on_batch(trips, labels, return_dict=True)
    assert set(losses) == {"loss", "accuracy", "auc"}
    for old, new in zip(before, model.trainable_weights, strict=True):
        assert np.abs(new.numpy() - old).max() > 0, new.name
    probabilities = model(trips)
    assert (probabilities.shape, probabilities.dtype) == ((40, 1), tf.float32)
    assert 0 < np.min(probabilities) < np.max(probabilities) < 1


def test_it_learns_what_no_linear_model_can():
    trips, labels = batch(400)
    params = {"learning_rate": 0.02, "dropout": 0.0}
    model = seeded_model(**params)
    model.compile(**compile_arguments(params))
    model.fit(trips, labels, batch_size=40, epochs=40, verbose=0)
    assert model.evaluate(trips, labels, verbose=0, return_dict=True)["accuracy"] > 0.9


def test_hidden_layers_are_not_linear():
    """A logit f linear in the numbers has f(a) + f(-a) = 2 f(0); each hidden layer must break this by itself."""
    model = seeded_model(hidden_units=(8, 8))
    for name in ("hidden_1", "hidden_2"):
        layer = model.get_layer(name)
        ones = tf.ones([1, layer.input_shape[-1]])
        assert np.abs(layer(ones) + layer(-ones) - 2 * layer(0 * ones)).max() > 1e-3


def test_each_feature_has_its_own_rows_of_the_table():
    """Company 2 is row 2, and payment type 0 the next: moving one row moves only the trips that have it."""
    model = seeded_model()
    trips, _ = batch()
    table = model.get_layer("wide_categories").embeddings
    assert table.shape == (5, 1)
    before = model(trips).numpy()
    table.assign([[0.0], [0.0], [0.0], [1.0], [0.0]])
    moved = (np.abs(model(trips).numpy() - before) > 1e-6)[:, 0]
    np.testing.assert_array_equal(moved, trips["payment_type"].numpy() == 0)


def test_same_seed_same_weights():
    first, again, other = seeded_model(1), seeded_model(1), seeded_model(2)
    for one, two in zip(first.weights, again.weights, strict=True):
        np.testing.assert_array_equal(one, two)
    assert np.abs(first.get_layer("hidden_1").kernel - other.get_layer("hidden_1").kernel).max() > 0


def test_output_is_float32_under_mixed_precision():
    tf_keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        model = seeded_model()
        assert model.get_layer("hidden_1").compute_dtype == "bfloat16"
        assert model(batch()[0]).dtype == tf.float32
    finally:
        tf_keras.mixed_precision.set_global_policy("float32")


def test_an_unknown_parameter_is_refused():
    with pytest.raises(ValidationError, match="hiden_units"):
        build_model(FEATURES, {"hiden_units": [8]})


def test_compile_arguments_carry_the_learning_rate():
    arguments = compile_arguments({"learning_rate": 0.5})
    assert arguments["optimizer"].learning_rate.numpy() == 0.5
    assert arguments["loss"]([[1.0]], [[0.5]]).numpy() == pytest.approx(np.log(2), abs=1e-5)
