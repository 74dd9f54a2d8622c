"""The input pipeline: transformed TFRecords to batches of tensors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft

PARSE_ROWS = 8_192
"""Rows parsed at once; one call of the parser a row costs more than the parsing."""

IN_MEMORY_FRACTION = 0.25
"""A split is kept in memory when its parsed size is surely below this part of the machine's memory."""

INFLATION = 10
"""Parsed tensors are at most about this many times the size of gzip TFRecords of narrow rows."""


def read_split(files: Sequence[str], transform_output: tft.TFTransformOutput) -> tf.data.Dataset:
    """Reads gzip TFRecords of transformed tf.Examples, in the files' order.

    Returns:
      A dataset of dicts of tensors, each of shape [<= PARSE_ROWS, ...].
    """
    spec = transform_output.transformed_feature_spec()
    records = tf.data.TFRecordDataset(list(files), compression_type="GZIP")
    return records.batch(PARSE_ROWS).map(lambda serialized: tf.io.parse_example(serialized, spec))


def training_batches(
    files: Sequence[str], transform_output: tft.TFTransformOutput, label: str, batch_size: int, seed: int
) -> tf.data.Dataset:
    """Endless shuffled batches `(features, label)` of exactly `batch_size` rows.

    A split that fits in memory is parsed once and shuffled as a whole, anew in every pass; a larger one is streamed
    through a shuffle buffer.
    """
    if fits_in_memory(files):
        batches = _shuffled_in_memory(files, transform_output, batch_size, seed)
    else:
        rows = read_split(files, transform_output).unbatch().shuffle(100_000, seed=seed)
        batches = rows.repeat().batch(batch_size, drop_remainder=True)
    return batches.map(_splitter(label)).prefetch(tf.data.AUTOTUNE)


def evaluation_batches(files: Sequence[str], transform_output: tft.TFTransformOutput, label: str) -> tf.data.Dataset:
    """One pass over a split in batches `(features, label)` of at most PARSE_ROWS rows, in order."""
    return read_split(files, transform_output).map(_splitter(label)).prefetch(tf.data.AUTOTUNE)


def count_rows(files: Sequence[str]) -> int:
    """The number of records in gzip TFRecord files."""
    counted = tf.data.TFRecordDataset(list(files), compression_type="GZIP").batch(PARSE_ROWS)
    return int(counted.reduce(tf.constant(0, tf.int64), lambda total, batch: total + tf.size(batch, tf.int64)).numpy())


def fits_in_memory(files: Sequence[str]) -> bool:
    """Whether the parsed rows of gzip TFRecord files surely fit the machine's memory beside everything else."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return sum(map(os.path.getsize, files)) * INFLATION < memory * IN_MEMORY_FRACTION


def _shuffled_in_memory(
    files: Sequence[str], transform_output: tft.TFTransformOutput, batch_size: int, seed: int
) -> tf.data.Dataset:
    parts = list(read_split(files, transform_output))
    columns = {name: tf.concat([part[name] for part in parts], axis=0) for name in parts[0]}
    rows = len(next(iter(columns.values())))
    # Shuffling row numbers and gathering whole batches costs a fraction of passing single rows through tf.data.
    order = tf.data.Dataset.range(rows).shuffle(rows, seed=seed).repeat().batch(batch_size, drop_remainder=True)
    return order.map(lambda chosen: {name: tf.gather(column, chosen) for name, column in columns.items()})


def _splitter(label: str) -> Any:
    def split(rows: dict[str, tf.Tensor]) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        return {name: tensor for name, tensor in rows.items() if name != label}, rows[label]

    return split
