"""Dates and times as numbers, computed in the graph: the same in training and in serving."""

from __future__ import annotations

import tensorflow as tf

from components.tabular.tensors import RawFeature, dense

SECONDS_PER_DAY = 86_400
PARTS = ("days", "month", "day", "weekday", "hour")
"""What `date_parts` returns, in this order."""

_ISO = r"(-?\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d))?.*)?"


def date_parts(values: RawFeature) -> tf.Tensor:
    """Returns days since 1970-01-01, month (1 to 12), day of the month, weekday (0 is Monday) and hour.

    Args:
        values: Text such as 2026-11-22 or 2026-11-22T11:45:00 (what follows the seconds is ignored), or integers,
            seconds since 1970-01-01; of a shape that `dense` takes.

    Returns:
        float32 [batch, 5], NaN where the date is missing or cannot be read.
    """
    if values.dtype != tf.string:
        known = dense(tf.cast(values, tf.float64), float("nan"))
        seconds = tf.cast(tf.where(tf.math.is_nan(known), tf.zeros_like(known), known), tf.int64)
        return _parts(seconds // SECONDS_PER_DAY, seconds % SECONDS_PER_DAY // 3600, ~tf.math.is_nan(known))
    text = tf.strings.strip(dense(values, ""))
    is_date = tf.strings.regex_full_match(text, _ISO)
    text = tf.where(is_date, text, "1970-01-01")
    year, month, day, hour = (
        tf.strings.to_number(
            tf.strings.regex_replace(tf.strings.regex_replace(text, _ISO, rf"\{group}"), "^$", "0"), tf.int64
        )
        for group in (1, 2, 3, 4)
    )
    return _parts(_days(year, month, day), hour, is_date)


def _parts(days: tf.Tensor, hour: tf.Tensor, known: tf.Tensor) -> tf.Tensor:
    month, day = _month_and_day(days)
    columns = tf.stack([days, month, day, (days + 3) % 7, hour], axis=1)
    return tf.where(known[:, tf.newaxis], tf.cast(columns, tf.float32), float("nan"))


# Howard Hinnant's "chrono-compatible low-level date algorithms": years begin in March, so that leap days end them.
def _days(year: tf.Tensor, month: tf.Tensor, day: tf.Tensor) -> tf.Tensor:
    year = tf.where(month <= 2, year - 1, year)
    era = year // 400
    year_of_era = year - era * 400
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def _month_and_day(days: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    day_of_era = (days + 719_468) % 146_097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    return (shifted + 2) % 12 + 1, day_of_year - (153 * shifted + 2) // 5 + 1
