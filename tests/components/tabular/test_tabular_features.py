"""Features by type, on rows in memory: what each raw cell becomes."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from components.tabular.analysis import InMemory
from components.tabular.dates import date_parts
from components.tabular.features import (
    Categories,
    Dates,
    Hashes,
    Image,
    Numbers,
    Texts,
    rank,
    soft_clip,
    split_words,
    transformed,
)
from components.tabular.labels import Amount, Classes, Flags
from components.tabular.tensors import side_by_side

NAN = float("nan")


def optional(values: list[float | None]) -> tf.SparseTensor:
    """A column as TFT gives it where the schema makes it optional."""
    known = [(row, value) for row, value in enumerate(values) if value is not None]
    return tf.SparseTensor([[row, 0] for row, _ in known], [value for _, value in known], [len(values), 1])


def test_numbers_are_scaled_by_median_and_quartiles_and_missing_ones_have_a_rank_of_their_own() -> None:
    numbers = [float(number) for number in range(101)]
    outputs = transformed(
        {"size": optional([*numbers, None]), "y": tf.zeros(102)}, [Numbers(["size"])], Amount("y"), InMemory()
    )
    values, ranks = outputs["number_values"].numpy()[:, 0], outputs["number_ranks"].numpy()[:, 0]
    deviation = 50 / 1.349
    assert values[50] == pytest.approx(0.0, abs=1e-5)
    assert values[60] == pytest.approx(soft_clip(tf.constant(10 / deviation)).numpy(), abs=1e-5)
    assert ranks[50] == pytest.approx(0.5)
    assert (ranks[0], ranks[100]) == (0.0, 1.0)
    assert (values[101], ranks[101]) == (0.0, -1.0)


def test_infinite_numbers_count_as_missing() -> None:
    outputs = transformed(
        {"x": tf.constant([1.0, 2.0, NAN, float("inf")]), "y": tf.zeros(4)}, [Numbers(["x"])], Amount("y"), InMemory()
    )
    np.testing.assert_allclose(outputs["number_ranks"].numpy()[2:], [[-1.0], [-1.0]])


def test_a_constant_number_and_one_without_values_do_no_harm() -> None:
    inputs = {"same": tf.constant([7.0, 7.0]), "none": tf.constant([NAN, NAN]), "y": tf.zeros(2)}
    outputs = transformed(inputs, [Numbers(["same", "none"])], Amount("y"), InMemory())
    np.testing.assert_allclose(outputs["number_values"].numpy(), np.zeros((2, 2)))
    np.testing.assert_allclose(outputs["number_ranks"].numpy(), [[0.5, -1.0], [0.5, -1.0]])


def test_an_outlier_is_pressed_to_three_deviations() -> None:
    np.testing.assert_allclose(soft_clip(tf.constant([1e6, -1e6, 0.1])).numpy(), [3.0, -3.0, 0.1], rtol=1e-3)


def test_ranks_are_interpolated_and_ties_get_their_middle() -> None:
    boundaries = tf.constant([[0.0, 1.0, 1.0, 1.0, 2.0]])
    ranks = rank(tf.constant([[-5.0], [0.5], [1.0], [1.5], [9.0]]), boundaries).numpy()[:, 0]
    np.testing.assert_allclose(ranks, [0.0, 0.125, 0.5, 0.875, 1.0])


def test_columns_of_several_types_stand_side_by_side_in_their_order() -> None:
    columns = [
        optional([1.5, None]),
        tf.constant([3, 4], tf.int64),
        tf.SparseTensor([[1, 0]], tf.constant([7], tf.int64), [2, 1]),
        tf.SparseTensor(tf.zeros([0, 2], tf.int64), tf.zeros([0], tf.float32), [2, 0]),
    ]
    np.testing.assert_array_equal(side_by_side(columns).numpy(), [[1.5, 3, NAN, NAN], [NAN, 4, 7, NAN]])


def test_the_same_word_in_two_columns_has_two_ids_and_rare_words_one_a_column() -> None:
    inputs = {
        "from": tf.constant(["A"] * 6 + ["rare"]),
        "to": tf.constant(["A"] * 5 + ["", ""]),
        "y": tf.zeros(7),
    }
    analysis = InMemory()
    ids = transformed(inputs, [Categories(["from", "to"], min_rows=5)], Amount("y"), analysis)["category_ids"].numpy()
    assert ids[0].tolist() == [2, 3]
    assert ids[6].tolist() == [0, 1]
    assert analysis.sizes == {"category_ids": 4}


def test_hashes_of_two_columns_do_not_meet() -> None:
    inputs = {"a": tf.constant(["x", "y"]), "b": tf.constant(["x", "y"]), "y": tf.zeros(2)}
    analysis = InMemory()
    ids = transformed(inputs, [Hashes(["a", "b"], buckets=10)], Amount("y"), analysis)["hash_ids"].numpy()
    assert (ids[:, 0] < 10).all()
    assert (ids[:, 1] >= 10).all()
    assert analysis.sizes == {"hash_ids": 20}


def test_words_of_texts_are_lower_case_without_punctuation() -> None:
    words = split_words(tf.constant(["Très bon, vraiment!", ""]), 4).numpy()
    assert [word.decode() for word in words[0]] == ["très", "bon", "vraiment", ""]
    assert words[1].tolist() == [b""] * 4


def test_rare_words_of_texts_and_places_after_the_last_word_are_0() -> None:
    inputs = {"t": tf.constant(["good good bad"] * 3 + [""]), "y": tf.zeros(4)}
    ids = transformed(inputs, [Texts(["t"], length=4, min_rows=4)], Amount("y"), InMemory())["word_ids"].numpy()
    assert ids.tolist() == [[1, 1, 0, 0]] * 3 + [[0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1970-01-01", [0, 1, 1, 3, 0]),
        ("2024-02-29T23:15:00", [19782, 2, 29, 3, 23]),
        ("2026-11-22 11:45", [20779, 11, 22, 6, 11]),
        ("1969-12-31", [-1, 12, 31, 2, 0]),
    ],
)
def test_dates_are_days_month_day_weekday_and_hour(text: str, parts: list[int]) -> None:
    assert date_parts(tf.constant([text])).numpy()[0].tolist() == parts


def test_seconds_since_1970_are_dates_and_what_is_no_date_is_missing() -> None:
    seconds = tf.constant([1709248500, -1], tf.int64)
    assert date_parts(seconds).numpy().tolist() == [[19782, 2, 29, 3, 23], [-1, 12, 31, 2, 23]]
    assert np.isnan(date_parts(tf.constant(["", "yesterday"])).numpy()).all()


def test_dates_stand_among_the_numbers() -> None:
    inputs = {"day": tf.constant(["2024-01-01", "2024-07-01"]), "x": tf.constant([1.0, 2.0]), "y": tf.zeros(2)}
    outputs = transformed(inputs, [Numbers(["x"]), Dates(["day"])], Amount("y"), InMemory())
    assert outputs["number_values"].shape == [2, 6]


def test_labels_are_ids_by_name_and_what_is_no_class_is_minus_one() -> None:
    classes = Classes("y", ["no", "yes"])
    assert classes.values(tf.constant(["yes", " no ", "maybe", ""])).numpy().tolist() == [1, 0, -1, -1]
    numbered = Classes("y", ["0", "1"])
    assert numbered.values(tf.constant([1.0, 0.0])).numpy().tolist() == [1, 0]
    assert numbered.values(tf.constant([1, 0, 2], tf.int64)).numpy().tolist() == [1, 0, -1]


def test_an_image_becomes_pixels_and_a_missing_one_black() -> None:
    png = tf.io.encode_png(tf.constant([[[10, 20, 30], [40, 50, 60]]], tf.uint8)).numpy()
    raw = tf.sparse.from_dense(tf.constant([[png], [b""]]))
    inputs = {"photo": raw, "y": tf.constant(["a", "b"])}
    outputs = transformed(inputs, [Image("photo", height=1, width=2)], Classes("y", ["a", "b"]), InMemory())
    assert outputs["image_pixels"].numpy().tolist() == [[[[10, 20, 30], [40, 50, 60]]], [[[0, 0, 0], [0, 0, 0]]]]


def test_flags_stand_side_by_side() -> None:
    inputs = {"x": tf.constant([1.0, 2.0]), "b": tf.constant([1, 0], tf.int64), "a": tf.constant([0, 0], tf.int64)}
    outputs = transformed(inputs, [Numbers(["x"])], Flags("labels", ["b", "a"]), InMemory())
    assert outputs["labels"].numpy().tolist() == [[1.0, 0.0], [0.0, 0.0]]
    assert outputs["labels"].shape[1:] == [2]
