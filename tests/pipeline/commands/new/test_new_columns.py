"""What columns hold: each type and each trap, on small columns."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import DataError
from pipeline.commands.new.columns import Found, has_decimal_commas, look_at
from pipeline.commands.new.table import Cells
from pipeline.commands.new.task import Task, task_of, tells_label


def column(*cells: object) -> Cells:
    """A column of these cells."""
    held = np.full(len(cells), None)
    held[:] = cells
    return held


def test_paths_of_images_are_images() -> None:
    found = look_at("picture", column("img/1.png", "img/2.JPG", "my own pictures of last week/2.JPG"))
    assert (found.use, found.holds, found.type) == ("image", "images", "image")


def test_numbers_with_na_tokens_are_numbers() -> None:
    found = look_at("mass", column("3.5", "NA", "4.1", "?", None, "2"))
    assert (found.use, found.holds, found.missing, set(found.na_values)) == ("number", "numbers", 3, {"NA", "?"})


def test_a_word_for_missing_among_words_stays_a_word() -> None:
    assert look_at("state", column("solid", "unknown", "liquid")).na_values == ()


def test_thousands_and_decimal_commas_are_found() -> None:
    assert look_at("price", column("1,234", "999", "12,000.5")).thousands == ","
    found = look_at("price", column("1.234,5", "0,25"), decimal_comma=True)
    assert (found.use, found.thousands, found.decimal) == ("number", ".", ",")


def test_a_comma_means_the_same_in_all_columns() -> None:
    price, hue = column("14,23", "NA", "1.000,5"), column("0,906", "1,025")
    assert has_decimal_commas([hue, price])
    assert not has_decimal_commas([hue, column("12,000.5", "3,000")])
    assert not has_decimal_commas([hue, column("a, b", "14,23")])
    found = look_at("hue", hue, decimal_comma=True)
    assert (found.thousands, found.decimal, found.why) == (None, ",", "0.906 to 1.025")


def test_digits_with_zeros_first_stay_text() -> None:
    found = look_at("zip", column("02139", "10115", "02139"))
    assert (found.use, found.type) == ("category", "text")


@pytest.mark.parametrize(
    ("cells", "type_"),
    [
        (["2024-02-29", "2024-03-01"], None),
        (["2024-02-29T10:00:00Z", "2024-03-01T11:30:00Z"], None),
        (["29.02.2024", "01.03.2024"], "date %d.%m.%Y"),
        (["02/29/2024", "03/01/2024"], "date %m/%d/%Y"),
        (["29/02/2024 10:15", "01/03/2024 11:00"], "datetime %d/%m/%Y %H:%M"),
    ],
)
def test_dates_are_found_as_they_are_written(cells: list[str], type_: str | None) -> None:
    found = look_at("day", column(*cells))
    assert (found.use, found.type) == ("date", type_)


def test_booleans_in_words_are_categories_and_zeros_and_ones_flags() -> None:
    assert look_at("paid", column("yes", "no", "yes")).use == "category"
    assert look_at("paid", column(0, 1, 1)).holds == "flags"


def test_ids_constants_and_empty_columns_are_left_out() -> None:
    assert look_at("row", column(*range(100, 140))).why == "every row has another"
    assert look_at("code", column(*(f"K{n}" for n in range(40)))).use == "left out"
    assert look_at("unit", column("kg", "kg")).why == "every row has 'kg'"
    assert look_at("nothing", column(None, None)).why == "no row has a value"
    assert look_at("tract", column(*([None] * 999), 17.0)).why == "1 of 1,000 rows have a value"


def test_an_id_that_repeats_is_left_out_and_may_divide_the_splits() -> None:
    found = look_at("customer_id", column(*(n // 3 * 7 for n in range(90))))
    assert (found.use, found.repeats) == ("left out", True)


def test_different_whole_numbers_that_do_not_count_rows_are_numbers() -> None:
    assert look_at("area", column(*(n * n for n in range(40)))).use == "number"


def test_many_words_are_hashed_and_sentences_are_text() -> None:
    many = [f"street {n % 300}" for n in range(600)]
    assert look_at("street", column(*many)).use == "hash"
    assert look_at("note", column("the cat sat on the mat", "a dog ran far away from it")).use == "text"


def found(use: str = "category") -> Found:
    """A label's column."""
    return Found("y", use, "words")  # type: ignore[arg-type]


def test_tasks_are_seen_in_the_labels() -> None:
    assert task_of(found(), column("no", "yes", "no")).classes == ("no", "yes")
    assert task_of(found(), column("benign", "malignant", "benign", None)).classes == ("benign", "malignant")
    assert task_of(found("number"), column(1.0, 0.0, 1.0)).classes == ("0", "1")
    assert task_of(found("number"), column(2, 0, 1, 2)).classes == ("0", "1", "2")
    amount = task_of(found("number"), column(1.5, 2.5, 3.5))
    assert (amount.classes, amount.mean) == ((), 2.5)
    assert task_of(found("number"), column(*range(0, 1000, 7))).classes == ()


def test_of_two_words_the_rarer_is_looked_for() -> None:
    assert task_of(found(), column("ham", "fraud", "ham")).classes == ("ham", "fraud")


def test_one_class_is_refused() -> None:
    with pytest.raises(DataError, match="'a' in every row, expected at least two different"):
        task_of(found(), column("a", "a", None))


def test_rare_classes_are_named() -> None:
    assert Task("y", ("a", "b"), (99, 1)).rare == ["b"]


def test_copies_of_the_label_are_found() -> None:
    labels = ["no", "yes"] * 20
    assert tells_label(column(*labels), labels, False)
    assert tells_label(column(*([1.0, 9.0] * 20)), labels, False)
    assert not tells_label(column(*range(40)), labels, False)
    assert not tells_label(column(*(["a", "a", "b", "b"] * 10)), labels, False)
    amounts = [float(n) for n in range(40)]
    assert tells_label(column(*(2 * n + 1 for n in range(40))), amounts, True)
    assert not tells_label(column(*(n % 7 for n in range(40))), amounts, True)
