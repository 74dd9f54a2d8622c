"""Three features, and two labels."""

from __future__ import annotations

from collections.abc import Mapping

import tensorflow as tf

from recipes.taxi.features import RawFeature, as_float, as_words, category, is_big_tip, z_scored_log


def preprocessing_fn(inputs: Mapping[str, RawFeature]) -> dict[str, tf.Tensor]:
    """Returns features and labels of shape [batch]; `paid_by` is 0 for cash, 1 for a credit card, 2 for all else."""
    paid_by = as_words(inputs["payment_type"])
    return {
        "fare": z_scored_log(as_float(inputs["fare"])),
        "miles": z_scored_log(as_float(inputs["trip_miles"])),
        "hour": category(inputs["trip_start_hour"], 0, 24),
        "big_tip": is_big_tip(as_float(inputs["fare"]), as_float(inputs["tips"])),
        "paid_by": 2 - 2 * tf.cast(paid_by == "Cash", tf.int64) - tf.cast(paid_by == "Credit Card", tf.int64),
    }
