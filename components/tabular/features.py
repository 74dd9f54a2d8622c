"""Features by type: declared by column, computed as a few stacked tensors.

All numbers are one tensor, all categories another, so that 500 columns cost one analyzer and one input of the model
instead of 500. Nothing is missing in what comes out: a missing number, word or date has a code of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import tensorflow as tf
import tensorflow_transform as tft

from components.images.pixels import pixels_of
from components.tabular.analysis import Analysis, InPipeline
from components.tabular.dates import date_parts
from components.tabular.labels import LabelColumn, label_values
from components.tabular.tensors import RawFeature, as_words, dense, numbers_of

NUMBERS, RANKS, CATEGORIES, HASHES, WORDS = "number_values", "number_ranks", "category_ids", "hash_ids", "word_ids"
"""The transformed features, each of all columns that it suits."""

PIXELS = "image_pixels"
"""The transformed feature of the one column of images."""

BLACK_PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b55"
    "0000000a4944415478da6360000000020001e527defc0000000049454e44ae426082"
)
"""What is seen where an image is missing."""

MISSING = "(missing)"
MISSING_RANK = -1.0
NUM_BUCKETS = 64
"""Buckets of equally many rows that give a number's rank; within a bucket it is interpolated."""

NORMAL_QUARTILES = 1.349
"""How far apart the quartiles of a normal distribution are, in standard deviations."""

SOFT_LIMIT = 3.0
"""Numbers approach this many deviations from the median, never more: one outlier shall not outweigh the rest."""


@dataclass(frozen=True)
class Numbers:
    """Columns of numbers, and of flags written as 0 and 1."""

    columns: Sequence[str]


@dataclass(frozen=True)
class Dates:
    """Columns of dates or times; see `dates.date_parts` for how they are written and what is made of them."""

    columns: Sequence[str]


@dataclass(frozen=True)
class Categories:
    """Columns of which the words are learned one by one.

    Attributes:
        columns: Their names.
        min_rows: Words in fewer training rows share one id in each column: too little can be learned about them.
    """

    columns: Sequence[str]
    min_rows: int = 5


@dataclass(frozen=True)
class Hashes:
    """Columns of too many words for a vocabulary: words that fall into the same bucket are not told apart.

    Attributes:
        columns: Their names.
        buckets: For each column.
    """

    columns: Sequence[str]
    buckets: int = 1000


@dataclass(frozen=True)
class Texts:
    """Columns of written text, as bags of words.

    Attributes:
        columns: Their names.
        length: Words of a text that count; the rest of a longer one is ignored.
        min_rows: Words that occur less often are ignored.
        most: The most words in the vocabulary.
    """

    columns: Sequence[str]
    length: int = 64
    min_rows: int = 5
    most: int = 10_000


@dataclass(frozen=True)
class Image:
    """A column of encoded images: PNG, JPEG, GIF or BMP.

    Attributes:
        column: Its name.
        height: Pixels; images of another height are resized.
        width: Pixels; images of another width are resized.
        channels: 3 for color, 1 for grayscale; images of the other kind are converted.
    """

    column: str
    height: int = 32
    width: int = 32
    channels: Literal[1, 3] = 3


Columns: TypeAlias = Numbers | Dates | Categories | Hashes | Texts | Image


def transformed(
    inputs: Mapping[str, RawFeature],
    columns: Sequence[Columns],
    label: LabelColumn,
    analysis: Analysis | None = None,
) -> dict[str, tf.Tensor]:
    """Returns the features of all declared columns, and the label under its column's name.

    | Feature | |
    |---|---|
    | `number_values` | float32 [batch, numbers]: scaled by median and quartiles, softly clipped; 0 if missing |
    | `number_ranks` | float32 [batch, numbers]: the share of training rows below, 0 to 1; -1 if missing |
    | `category_ids` | int64 [batch, columns]: one vocabulary, an id for rare words in each column |
    | `hash_ids` | int64 [batch, columns] |
    | `word_ids` | int64 [batch, words]: 0 where a text has no more words, or only rare ones |
    | `image_pixels` | int64 [batch, height, width, channels], 0 to 255; black if missing |

    Args:
        inputs: As `preprocessing_fn` gets them.
        columns: Which columns become what; each kind at most once.
        label: The label.
        analysis: What is known of all rows; None asks TFT's analyzers.
    """
    analysis = analysis or InPipeline()
    outputs: dict[str, tf.Tensor] = {}
    numbers = [number for group in columns for number in _numbers(inputs, group)]
    if numbers:
        outputs |= _scaled(tf.concat(numbers, axis=1), analysis)
    for group in columns:
        if isinstance(group, Categories):
            outputs[CATEGORIES] = _category_ids(inputs, group, analysis)
        elif isinstance(group, Hashes):
            outputs[HASHES] = _hash_ids(inputs, group, analysis)
        elif isinstance(group, Texts):
            outputs[WORDS] = _word_ids(inputs, group, analysis)
        elif isinstance(group, Image):
            pixels = pixels_of(dense(inputs[group.column], BLACK_PNG), group.height, group.width, group.channels)
            outputs[PIXELS] = analysis.with_range(PIXELS, pixels, 256)
    outputs[label.column] = label_values(label, inputs)
    return outputs


def _numbers(inputs: Mapping[str, RawFeature], group: Columns) -> list[tf.Tensor]:
    """The numbers of a group, each float32 [batch, …]; NaN where missing or not finite."""
    if isinstance(group, Dates):
        return [date_parts(inputs[name]) for name in group.columns]
    if not isinstance(group, Numbers):
        return []
    stacked = numbers_of(inputs, group.columns)
    return [tf.where(tf.math.is_finite(stacked), stacked, float("nan"))]


def _scaled(numbers: tf.Tensor, analysis: Analysis) -> dict[str, tf.Tensor]:
    boundaries = analysis.quantiles(numbers, NUM_BUCKETS)
    known = tf.math.is_finite(numbers)
    median = boundaries[:, NUM_BUCKETS // 2 - 1]
    filled = tf.where(known, numbers, median)
    values = soft_clip((filled - median) / _spread(boundaries))
    ranks = tf.where(known, rank(filled, boundaries), MISSING_RANK)
    return {NUMBERS: tf.where(known, values, 0.0), RANKS: ranks}


def _spread(boundaries: tf.Tensor) -> tf.Tensor:
    """The standard deviation of most rows, [columns]; where half of all rows are equal, of the range; never 0."""
    quartiles = boundaries[:, 3 * NUM_BUCKETS // 4 - 1] - boundaries[:, NUM_BUCKETS // 4 - 1]
    half_range = (boundaries[:, -1] - boundaries[:, 0]) / 2
    spread = tf.where(quartiles > 0, quartiles / NORMAL_QUARTILES, half_range)
    return tf.where(spread > 0, spread, 1.0)


def soft_clip(values: tf.Tensor) -> tf.Tensor:
    """Returns `values` pressed into -3 to 3 (Holzmüller et al., 2024, arXiv:2407.04491); small ones hardly change."""
    return values / tf.sqrt(1.0 + tf.square(values / SOFT_LIMIT))


def rank(numbers: tf.Tensor, boundaries: tf.Tensor) -> tf.Tensor:
    """Returns where numbers stand among boundaries, from 0 to 1: interpolated, or the middle of those that equal them.

    Args:
        numbers: float32 [batch, columns].
        boundaries: float32 [columns, boundaries], ascending.
    """
    by_column = tf.transpose(numbers)
    last = boundaries.shape[1] - 1
    first_not_below = tf.minimum(tf.searchsorted(boundaries, by_column, side="left"), last)
    last_not_above = tf.maximum(tf.searchsorted(boundaries, by_column, side="right") - 1, 0)
    low = tf.gather(boundaries, last_not_above, batch_dims=1)
    high = tf.gather(boundaries, first_not_below, batch_dims=1)
    fraction = tf.clip_by_value(tf.math.divide_no_nan(by_column - low, high - low), 0.0, 1.0)
    between = tf.cast(last_not_above, tf.float32) + fraction
    equal = tf.cast(first_not_below + last_not_above, tf.float32) / 2
    return tf.transpose(tf.where(high > low, between, equal)) / last


def _category_ids(inputs: Mapping[str, RawFeature], group: Categories, analysis: Analysis) -> tf.Tensor:
    return analysis.ids(CATEGORIES, _named_words(inputs, group.columns), len(group.columns), group.min_rows, most=None)


def _hash_ids(inputs: Mapping[str, RawFeature], group: Hashes, analysis: Analysis) -> tf.Tensor:
    hashed = tft.hash_strings(_named_words(inputs, group.columns), group.buckets)
    offsets = tf.range(len(group.columns), dtype=tf.int64) * group.buckets
    return analysis.with_range(HASHES, hashed + offsets, group.buckets * len(group.columns))


def _named_words(inputs: Mapping[str, RawFeature], columns: Sequence[str]) -> tf.Tensor:
    """Text [batch, columns] such as `island=Dream`: the same word means something else in another column."""
    return tf.stack([tf.strings.join([f"{name}=", as_words(inputs[name], MISSING)]) for name in columns], axis=1)


def _word_ids(inputs: Mapping[str, RawFeature], group: Texts, analysis: Analysis) -> tf.Tensor:
    texts = [split_words(as_words(inputs[name], " "), group.length) for name in group.columns]
    return analysis.ids(WORDS, tf.concat(texts, axis=1), 1, group.min_rows, group.most)


def split_words(texts: tf.Tensor, length: int) -> tf.Tensor:
    """Returns the first words of each text in lower case, without punctuation, text [batch, length]; "" after the last.

    Args:
        texts: Text [batch], UTF-8.
        length: The number of words.
    """
    plain = tf.strings.regex_replace(tf.strings.lower(texts, encoding="utf-8"), r"[^\pL\pN]+", " ")
    return tf.strings.split(plain).to_tensor("", shape=[None, length])
