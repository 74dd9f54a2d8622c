"""Each helper of the features by itself, run eagerly on small tensors."""

import pytest
import tensorflow as tf

from recipes.taxi import features

NAN = float("nan")


@pytest.fixture(autouse=True)
def clean_collections():
    """TFT records ranges in the default graph; called eagerly, it leaves tensors there that break a later Transform."""
    yield
    graph = tf.compat.v1.get_default_graph()
    for name in graph.get_all_collection_keys():
        graph.clear_collection(name)


def sparse(values: list) -> tf.SparseTensor:
    """A column of shape [batch, 1]; None is a missing value."""
    indices = [[row, 0] for row, value in enumerate(values) if value is not None]
    return tf.SparseTensor(indices, [value for value in values if value is not None], [len(values), 1])


def test_dense_fills_what_a_sparse_column_lacks():
    assert features.dense(sparse([1.5, None, 3.0]), -1.0).numpy().tolist() == [1.5, -1.0, 3.0]


def test_dense_takes_a_batch_without_any_value():
    empty = tf.SparseTensor(tf.zeros([0, 2], tf.int64), tf.zeros([0], tf.int64), [2, 0])
    assert features.dense(empty, 7).numpy().tolist() == [7, 7]


@pytest.mark.parametrize("column", [[4, 5], [[4], [5]]])
def test_dense_flattens_a_dense_column(column):
    assert features.dense(tf.constant(column), 0).numpy().tolist() == [4, 5]


def test_as_float_casts_integers_and_marks_missing_by_nan():
    result = features.as_float(sparse([2, None]))
    assert result.dtype == tf.float32
    assert result[0] == 2.0
    assert tf.math.is_nan(result[1])


def test_as_words_names_what_is_missing_or_empty():
    assert features.as_words(sparse(["Cash", None, ""])).numpy().tolist() == [b"Cash", b"(missing)", b"(missing)"]


def test_as_words_writes_integers_out():
    assert features.as_words(sparse([17031081401, None])).numpy().tolist() == [b"17031081401", b"(missing)"]
    assert features.as_words(tf.constant([[5]], tf.int64)).numpy().tolist() == [b"5"]


def test_category_counts_from_one_and_sends_strangers_to_zero():
    days = tf.constant([1, 7, 0, 8, -3], tf.int64)
    assert features.category(days, 1, 7).numpy().tolist() == [1, 7, 0, 0, 0]
    hours = sparse([0, 23, 24, None])
    assert features.category(tf.cast(hours, tf.int64), 0, 23).numpy().tolist() == [1, 24, 0, 0]


def test_cross_numbers_every_pair_once():
    outer, inner = tf.meshgrid(tf.range(3, dtype=tf.int64), tf.range(4, dtype=tf.int64), indexing="ij")
    ids = features.cross(tf.reshape(outer, [-1]), 3, tf.reshape(inner, [-1]), 4)
    assert ids.numpy().tolist() == list(range(12))


def test_hashed_pair_depends_on_both_and_on_their_order():
    first, second = tf.constant([8, 8, 32, 8], tf.int64), tf.constant([32, 32, 8, 7], tf.int64)
    forward, again, back, elsewhere = features.hashed_pair(first, second, 1000).numpy().tolist()
    assert forward == again == tf.strings.to_hash_bucket_fast("8>32", 1000)
    assert len({forward, back, elsewhere}) == 3


def test_with_domain_changes_no_id():
    assert features.with_domain(tf.range(1000, dtype=tf.int64), 1000).numpy().tolist() == list(range(1000))


@pytest.mark.parametrize(
    ("fare", "tips", "label"),
    [
        (10.0, 2.0, 0),  # exactly 20 %
        (10.0, 2.01, 1),  # just above
        (10.0, 1.99, 0),
        (NAN, 5.0, -1),  # a missing fare is not a fare of 0
        (10.0, NAN, -1),
        (NAN, NAN, -1),
        (0.0, 5.0, 0),
        (-3.0, 5.0, 0),
        (float("inf"), 5.0, -1),
        (10.0, 0.0, 0),
    ],
)
def test_is_big_tip(fare, tips, label):
    result = features.is_big_tip(tf.constant([fare]), tf.constant([tips]))
    assert result.dtype == tf.int64
    assert result.numpy().tolist() == [label]


def test_exactly_20_percent_is_never_big_whatever_the_fare():
    """For every fare up to 100 dollars in steps of 5 cents, where float32 arithmetic sometimes fails."""
    cents = tf.range(5, 10001, 5)
    fares, tips = tf.cast(cents, tf.float32) / 100, tf.cast(cents // 5, tf.float32) / 100
    assert tf.reduce_sum(features.is_big_tip(fares, tips)) == 0
    assert tf.reduce_all(features.is_big_tip(fares, tips + 0.01) == 1)
    assert tf.reduce_any(tips > fares * 0.2), "were floats exact, cents would be needless"
