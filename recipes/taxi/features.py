"""The taxi recipe's features: from raw trips to numbers, the same in training and in serving.

Every function takes and returns tensors of shape [batch]. Nothing stays sparse: a missing value gets a value or a
category of its own, so that a trip whose meter or GPS failed can still be predicted.

Deliberately left out: `trip_start_timestamp`, since in serving it always lies beyond what training saw, and
`pickup_census_tract`, which is known for one trip in 15,002.
"""

from __future__ import annotations

from collections.abc import Mapping

import tensorflow as tf
import tensorflow_transform as tft
from tensorflow_transform import schema_inference

from components.tabular import tensors
from components.tabular.tensors import RawFeature, as_float, dense

LABEL = "big_tip"

# Log-scaled: each has a long tail (skewness 16 to 94 in the raw data, at most 3 in size after the logarithm).
AMOUNTS = ("fare", "trip_miles", "trip_seconds")
COORDINATES = ("pickup_latitude", "pickup_longitude", "dropoff_latitude", "dropoff_longitude")
WORDS = ("payment_type", "company")
# Integers that are names, with the lowest and highest one: the calendar, and Chicago's 77 community areas.
CATEGORIES = {
    "trip_start_hour": (0, 23),
    "trip_start_day": (1, 7),
    "trip_start_month": (1, 12),
    "pickup_community_area": (1, 77),
    "dropoff_community_area": (1, 77),
}

NUM_AMOUNT_BUCKETS = 20
NUM_COORDINATE_BUCKETS = 10
# Too little can be learned about words rarer than this; they share one id, which thereby gets trained too.
MIN_ROWS_PER_WORD = 10
MISSING_WORD = "(missing)"
# There are 229 distinct tracts in 15,002 trips. Hashed, since unlike a vocabulary, a hash needs no pass over the data.
NUM_TRACTS = 1000
# There are 546 distinct pairs of community areas in 10,000 trips. Twice as many buckets keep most of them apart.
NUM_ROUTES = 1000


def preprocessing_fn(inputs: Mapping[str, RawFeature]) -> dict[str, tf.Tensor]:
    """Returns the model's features and the label, each of shape [batch].

    Args:
        inputs: The raw columns by name: sparse of shape [batch, 1] where the schema makes them optional, else dense.
            Only the label reads `tips`, so a serving signature can do without it.
    """
    outputs = {}
    for name in AMOUNTS:
        outputs[name] = z_scored_log(as_float(inputs[name]))
        # Besides the number itself: two tips in three are whole dollars, so the odds of more than 20 % move in steps.
        outputs[f"{name}_bucket"] = quantile_bucket(as_float(inputs[name]), NUM_AMOUNT_BUCKETS)
    for name in COORDINATES:
        outputs[name] = quantile_bucket(as_float(inputs[name]), NUM_COORDINATE_BUCKETS)
    for name in WORDS:
        outputs[name] = word_id(as_words(inputs[name]))
    outputs["dropoff_census_tract"] = hashed(as_words(inputs["dropoff_census_tract"]), NUM_TRACTS)
    for name, (lowest, highest) in CATEGORIES.items():
        outputs[name] = category(inputs[name], lowest, highest)
    outputs["hour_of_week"] = cross(outputs["trip_start_day"], 8, outputs["trip_start_hour"], 25)
    outputs["route"] = hashed_pair(outputs["pickup_community_area"], outputs["dropoff_community_area"], NUM_ROUTES)
    outputs[LABEL] = is_big_tip(as_float(inputs["fare"]), as_float(inputs["tips"]))
    return outputs


def as_words(values: RawFeature) -> tf.Tensor:
    """Returns text or integers as text [batch], `MISSING_WORD` where missing or empty."""
    return tensors.as_words(values, MISSING_WORD)


def z_scored_log(amounts: tf.Tensor) -> tf.Tensor:
    """Returns log(1 + amount) scaled to mean 0 and variance 1, float32 [batch]; 0, the mean, where it is unknown.

    A negative amount is an error of the meter and counts as unknown.
    """
    logarithms = tf.math.log1p(tf.where(amounts >= 0, amounts, float("nan")))
    scaled = tft.scale_to_z_score(logarithms)
    return tf.where(tf.math.is_finite(scaled), scaled, 0.0)


def quantile_bucket(values: tf.Tensor, num_buckets: int) -> tf.Tensor:
    """Returns which of `num_buckets` equally filled ranges a value is in, int64 [batch], from 1; 0 if missing."""
    buckets = tft.bucketize(values, num_buckets) + 1
    return with_domain(tf.where(tf.math.is_finite(values), buckets, 0), num_buckets + 1)


def word_id(words: tf.Tensor) -> tf.Tensor:
    """Returns a word's rank by frequency, int64 [batch]: 0 is the most common; all rare words share the id after the
    last.
    """
    return tft.compute_and_apply_vocabulary(words, frequency_threshold=MIN_ROWS_PER_WORD, num_oov_buckets=1)


def category(values: RawFeature, lowest: int, highest: int) -> tf.Tensor:
    """Returns `value - lowest + 1`, int64 [batch]; 0 where it is missing or not within `lowest` to `highest`."""
    filled = dense(values, lowest - 1)
    in_range = (filled >= lowest) & (filled <= highest)
    return with_domain(tf.where(in_range, filled - lowest + 1, 0), highest - lowest + 2)


def cross(outer: tf.Tensor, num_outer: int, inner: tf.Tensor, num_inner: int) -> tf.Tensor:
    """Returns one id for each pair of categories, `outer * num_inner + inner`, int64 [batch]."""
    return with_domain(outer * num_inner + inner, num_outer * num_inner)


def hashed_pair(first: tf.Tensor, second: tf.Tensor, num_buckets: int) -> tf.Tensor:
    """Returns a pair of categories hashed to 0..`num_buckets` - 1, int64 [batch]; for pairs too many to number."""
    pairs = tf.strings.join([tf.strings.as_string(first), tf.strings.as_string(second)], separator=">")
    return hashed(pairs, num_buckets)


def hashed(words: tf.Tensor, num_buckets: int) -> tf.Tensor:
    """Returns words hashed to 0..`num_buckets` - 1, int64 [batch]."""
    return with_domain(tft.hash_strings(words, num_buckets), num_buckets)


def with_domain(ids: tf.Tensor, num_categories: int) -> tf.Tensor:
    """Returns `ids`, int64 [batch], with their range set in the transformed schema, where the trainer reads it."""
    ids = tf.identity(ids)
    # What tft.apply_buckets and tft.apply_vocabulary do with their results; outside TFT's graphs it has no effect.
    schema_inference.set_tensor_schema_override(
        ids, tf.constant(0, tf.int64), tf.constant(num_categories - 1, tf.int64)
    )
    return ids


def is_big_tip(fare: tf.Tensor, tips: tf.Tensor) -> tf.Tensor:
    """Returns 1 where the tip is more than 20 % of the fare, else 0, int64 [batch]; -1 where either is unknown.

    The Trainer refuses -1, which is no class: a trip whose tip is unknown is no trip without a tip.
    """
    is_known = tf.math.is_finite(fare) & tf.math.is_finite(tips)
    fare_cents = _cents(tf.where(is_known, fare, 0.0))
    tip_cents = _cents(tf.where(is_known, tips, 0.0))
    # In whole cents: 1 trip in 75 has a tip of exactly 20 %, some of which float32 takes for more.
    big = (fare_cents > 0) & (5 * tip_cents > fare_cents)
    return tf.where(is_known, tf.cast(big, tf.int64), -1)


def _cents(dollars: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.round(dollars * 100.0), tf.int64)
