"""Trees in TensorFlow: what scikit-learn predicts with them, to the last row that stands on a threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

from components.tabular.tree_columns import TreeColumns, as_table, codes_of
from components.tabular.trees import MISSING_CODE, MOST_CATEGORIES, NODE_FIELDS, Trees, forest_of, thresholds_between
from components.trainer.features import Feature

ROWS = 2000


def rows(categories: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes, and numbers with ties, gaps, neighbours in float32 and some that float32 does not hold."""
    draw = np.random.default_rng(seed)
    codes = draw.integers(0, 12, (ROWS, categories)).astype(np.int32)
    codes[:12] = np.arange(12, dtype=np.int32)[:, np.newaxis]
    codes[draw.random(codes.shape) < 0.1] = MISSING_CODE
    ties = draw.integers(0, 5, ROWS)
    close = np.nextafter(np.float32(1.0), np.float32(2.0)) * (draw.random(ROWS) < 0.5) + 1.0 * (draw.random(ROWS) < 0.5)
    numbers = np.stack([ties / 3, close, draw.normal(size=ROWS), draw.normal(size=ROWS) * 1e30], axis=1)
    numbers[draw.random(numbers.shape) < 0.2] = np.nan
    return codes, numbers.astype(np.float32)


def target(codes: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    known = np.nan_to_num(numbers)
    signal = known[:, 0] + known[:, 2] ** 2 + np.isnan(numbers[:, 1]) + (known[:, 3] > 0)
    return signal + sum((column % 3 == 1) * 1.5 for column in codes.T)


def grown(model: Any, categories: int, wanted: Any) -> tuple[Any, np.ndarray]:
    codes, numbers = rows(categories, seed=1)
    model.set_params(categorical_features=list(range(categories)) or None, early_stopping=False, max_iter=25)
    return model.fit(as_table(codes, numbers), wanted(target(codes, numbers))), as_table(codes, numbers)


CASES = [
    (HistGradientBoostingRegressor(), lambda y: y),
    (HistGradientBoostingClassifier(), lambda y: y > np.median(y)),
    (HistGradientBoostingClassifier(), lambda y: np.digitize(y, np.quantile(y, [0.3, 0.6]))),
]


@pytest.mark.parametrize("categories", [0, 2])
@pytest.mark.parametrize(("model", "wanted"), CASES, ids=["amount", "two_classes", "three_classes"])
def test_the_layer_predicts_what_scikit_learn_does(model: Any, wanted: Any, categories: int) -> None:
    fitted, _ = grown(model, categories, wanted)
    codes, numbers = rows(categories, seed=2)
    for kinds, values in ((codes, numbers), rows(categories, seed=1)):
        expected = fitted._raw_predict(as_table(kinds, values))
        found = Trees(forest_of(fitted, categories), "trees")((tf.constant(kinds), tf.constant(values)))
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_thresholds_lie_between_the_numbers_of_training_rows() -> None:
    # Some of 2,000 numbers with two decimals are at a quantile, where scikit-learn puts a threshold.
    draw = np.random.default_rng(0)
    numbers = np.round(draw.normal(size=(2000, 2)), 2).astype(np.float32)
    numbers[:100, 1] = np.nan
    wanted = np.where(np.isnan(numbers), 0.5, numbers).sum(axis=1)
    fitted = HistGradientBoostingRegressor(early_stopping=False, max_iter=50).fit(numbers, wanted)
    plain = forest_of(fitted, 0)
    forest = thresholds_between(plain, numbers)
    is_split = (plain.left != np.arange(len(plain.left))) & (plain.threshold < 1e38)
    for column in range(2):
        nodes = is_split & (plain.feature == column)
        assert np.isin(plain.threshold[nodes], numbers[:, column]).any()
        assert not np.isin(forest.threshold[nodes], numbers[:, column]).any()
    none = tf.zeros([2000, 0], tf.int32)
    np.testing.assert_array_equal(
        Trees(forest, "trees")((none, tf.constant(numbers))), Trees(plain, "trees")((none, tf.constant(numbers)))
    )
    # The last bit of a number changes nothing.
    for direction in (-np.inf, np.inf):
        nudged = np.nextafter(numbers, np.float32(direction))
        np.testing.assert_array_equal(
            Trees(forest, "trees")((none, tf.constant(nudged))), Trees(plain, "trees")((none, tf.constant(numbers)))
        )


def test_numbers_on_a_threshold_go_left_in_float32_too() -> None:
    low, high = np.float32(1.0), np.nextafter(np.float32(1.0), np.float32(2.0))
    column = np.repeat([low, high], 50)[:, np.newaxis]
    fitted = HistGradientBoostingRegressor(early_stopping=False, max_iter=1, learning_rate=1.0).fit(
        column, np.repeat([0.0, 1.0], 50)
    )
    [threshold] = [t for t in fitted._predictors[0][0].nodes["num_threshold"] if t != 0]
    assert np.float32(threshold) in (low, high)
    found = Trees(forest_of(fitted, 0), "trees")((tf.zeros([2, 0], tf.int32), tf.constant([[low], [high]])))
    np.testing.assert_allclose(found[:, 0], [0.0, 1.0], atol=1e-6)


def test_the_fields_of_scikit_learn_s_nodes_are_those_that_are_read() -> None:
    assert set(NODE_FIELDS) <= set(PREDICTOR_RECORD_DTYPE.names)
    fitted, table = grown(*CASES[0][:1], 2, CASES[0][1])
    tree = fitted._predictors[0][0]
    assert tree.nodes.dtype.names == PREDICTOR_RECORD_DTYPE.names
    assert tree.raw_left_cat_bitsets.dtype == np.uint32
    assert tree.raw_left_cat_bitsets.shape[1] == 8
    assert fitted._baseline_prediction.shape == (1, 1)
    assert fitted.n_features_in_ == table.shape[1]


def test_tensorflow_lite_converts_them_with_its_own_operations_alone() -> None:
    fitted, _ = grown(*CASES[2][:1], 2, CASES[2][1])
    codes, numbers = rows(2, seed=3)
    inputs = (tf_keras.Input([2], dtype=tf.int32, name="codes"), tf_keras.Input([4], name="numbers"))
    model = tf_keras.Model(inputs, Trees(forest_of(fitted, 2), "trees")(inputs))
    function = tf.function(
        lambda codes, numbers: model((codes, numbers)),
        input_signature=[tf.TensorSpec([100, 2], tf.int32, "codes"), tf.TensorSpec([100, 4], tf.float32, "numbers")],
    )
    converted = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()], model).convert()
    interpreter = tf.lite.Interpreter(model_content=converted)
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        values = codes[:100] if detail["dtype"] == np.int32 else numbers[:100]
        interpreter.set_tensor(detail["index"], values)
    interpreter.invoke()
    [output] = interpreter.get_output_details()
    np.testing.assert_allclose(
        interpreter.get_tensor(output["index"]), fitted._raw_predict(as_table(codes[:100], numbers[:100])), atol=1e-5
    )


def test_codes_are_without_gaps_and_rare_ids_share_one() -> None:
    ids = np.array([[5, 10], [5, 11], [3, 11], [3, 11], [3, 12], [2, 13]])
    assert codes_of(ids, 16)[[3, 5, 2]].tolist() == [0, 1, 2]
    assert codes_of(ids, 16)[[11, 10, 12, 13]].tolist() == [0, 1, 1, 1]
    assert codes_of(ids, 16)[0] == MISSING_CODE
    many = np.repeat(np.arange(400), 2)[:, np.newaxis]
    assert sorted(set(codes_of(many, 400).tolist())) == list(range(MOST_CATEGORIES))


def test_missing_numbers_are_nan_and_frequent_words_are_columns() -> None:
    features = [
        Feature("number_values", tf.float32, (2,), None),
        Feature("number_ranks", tf.float32, (2,), None),
        Feature("category_ids", tf.int64, (1,), 4),
        Feature("word_ids", tf.int64, (3,), 4),
    ]
    inputs = {
        "number_values": np.array([[0.0, 1.5], [0.0, -1.0]], np.float32),
        "number_ranks": np.array([[-1.0, 0.7], [0.5, 0.2]], np.float32),
        "category_ids": np.array([[3], [3]]),
        "word_ids": np.array([[1, 3, 0], [0, 0, 0]]),
    }
    layer = TreeColumns.of(features, inputs, "columns")
    codes, numbers = layer(inputs)
    assert layer.categories == 1
    assert codes.numpy().tolist() == [[0], [0]]
    np.testing.assert_array_equal(numbers, [[np.nan, 1.5, 1, 0, 1], [0.0, -1.0, 0, 0, 0]])
    assert layer({**inputs, "category_ids": np.array([[2], [3]])})[0].numpy().tolist() == [[MISSING_CODE], [0]]
