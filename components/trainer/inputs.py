"""The input pipeline: transformed TFRecords to batches of tensors."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import tensorflow as tf
import tensorflow_transform as tft

from components.cores import on_all_cores
from components.trainer import disk_cache
from components.trainer.features import Feature
from components.trainer.settings import InputSettings
from contracts.errors import TrainingError
from contracts.labels import Label

PARSE_ROWS = 8_192
"""Rows parsed at once; calling the parser for each row costs more than the parsing."""

CHUNK_ELEMENTS = 1 << 22
"""The most numbers in a chunk of rows; rows as wide as images come in smaller chunks."""

IN_MEMORY_FRACTION = 0.25
"""A split is kept in memory if its parsed rows take at most this fraction of the machine's memory."""

TRIED_ROWS = 8
"""Rows that a model is tried on before training."""

PARALLEL_FILES = 4
"""Files read at a time where a split is streamed."""

Rows = dict[str, tf.Tensor]
Augment = Callable[[Rows, tf.Tensor], Mapping[str, tf.Tensor]]


@dataclass(frozen=True)
class Layout:
    """The roles of the columns of a transformed row.

    Attributes:
        spec: The parsing spec, by feature name.
        features: The model's inputs.
        label: The label or labels.
        sample_weight: The name of the weight, if there is one.
    """

    spec: Mapping[str, tf.io.FixedLenFeature]
    features: Sequence[Feature]
    label: Label
    sample_weight: str | None = None

    @classmethod
    def from_transform(
        cls,
        transform_output: tft.TFTransformOutput,
        features: Sequence[Feature],
        label: Label,
        sample_weight: str | None = None,
    ) -> Layout:
        """The layout of the examples that a Transform wrote."""
        return cls(transform_output.transformed_feature_spec(), features, label, sample_weight)

    @property
    def chunk_rows(self) -> int:
        """Rows that are parsed, or validated, at once."""
        elements = sum(tf.TensorShape(feature.shape).num_elements() or 1 for feature in self.spec.values())
        return max(1, min(PARSE_ROWS, CHUNK_ELEMENTS // elements))

    def parse(self, serialized: tf.Tensor) -> Rows:
        """Parses serialized tf.Examples, string [rows], into tensors [rows, ...], each in its feature's dtype."""
        rows: Rows = tf.io.parse_example(serialized, self.spec)
        return rows | {f.name: tf.cast(rows[f.name], f.dtype) for f in self.features if f.dtype == tf.uint8}

    def split(self, rows: Rows) -> tuple[tf.Tensor | Rows, ...]:
        """Splits rows into `(features, label)` or `(features, label, sample weight)`, as Keras takes them.

        Several labels are a dict by the model's outputs.
        """
        inputs = {feature.name: rows[feature.name] for feature in self.features}
        label = self.label
        labels = rows[label] if isinstance(label, str) else {head: rows[name] for head, name in label.items()}
        parts = (inputs, labels)
        return parts if self.sample_weight is None else (*parts, rows[self.sample_weight])


@dataclass(frozen=True)
class Split:
    """One split of the transformed examples, opened.

    Attributes:
        files: Gzip TFRecords, sorted.
        layout: Their columns.
        rows: The number of rows.
        columns: All rows by column if they are kept in memory, else None.
        cached: All columns in chunks if they are kept on disk, else None.
    """

    files: Sequence[str]
    layout: Layout
    rows: int
    columns: Rows | None
    cached: tf.data.Dataset | None = None

    def training_batches(
        self,
        batch_size: int,
        seed: int,
        settings: InputSettings,
        augment: Augment | None = None,
        start_step: int = 0,
    ) -> tf.data.Dataset:
        """Endless shuffled batches of exactly `batch_size` rows, as `Layout.split` gives them.

        Args:
            batch_size: Rows per batch.
            seed: The seed of the shuffling and of `augment`.
            settings: How large a shuffle buffer to use, and how to share the data among workers.
            augment: Changes the features of a batch after the cache, so differently in every epoch. It is given a seed,
                int64 [2], that differs from batch to batch.
            start_step: Batches to skip, as if they had been iterated over already. With `auto_shard: file`, where a
                worker takes only a part of a batch from its own files, it skips more rows of those files than it would
                have used.

        Raises:
            TrainingError: There are fewer rows than one batch needs.
        """
        batches_per_pass(self.rows, batch_size)
        if self.columns is not None:
            batches = self._from_memory(batch_size, seed, start_step)
        elif self.cached is not None:
            batches = self._from_cache(batch_size, seed, settings, start_step)
        else:
            batches = self._from_files(batch_size, seed, settings, start_step)
        if augment is not None:
            batches = batches.enumerate(start_step).map(self._augmented(augment, seed), tf.data.AUTOTUNE)
        return (
            batches.map(self.layout.split)
            .prefetch(tf.data.AUTOTUNE)
            .with_options(_options(settings.auto_shard if self.is_streamed else "data"))
        )

    def evaluation_batches(self, settings: InputSettings) -> tf.data.Dataset:
        """One pass in batches of at most `layout.chunk_rows` rows, in order, as `Layout.split` gives them."""
        return self.chunks().map(self.layout.split).prefetch(tf.data.AUTOTUNE).with_options(_options("data"))

    def chunks(self) -> tf.data.Dataset:
        """One pass over all columns in chunks of at most `layout.chunk_rows` rows, in order."""
        if self.cached is not None:
            return self.cached
        if self.columns is None:
            return _read_chunks(self.files, self.layout)
        columns, size = self.columns, self.layout.chunk_rows
        # Slices of columns: taking rows one by one and batching them again would cost more than training on them.
        return tf.data.Dataset.range(0, self.rows, size).map(
            lambda start: {name: column[start : start + size] for name, column in columns.items()}, tf.data.AUTOTUNE
        )

    def first_rows(self) -> tuple[tf.Tensor | Rows, ...]:
        """The first rows, as `Layout.split` gives them, to try a model on."""
        rows = next(iter(self.chunks()))
        return self.layout.split({name: column[:TRIED_ROWS] for name, column in rows.items()})

    @property
    def evaluation_steps(self) -> int:
        """The number of evaluation batches."""
        return -(-self.rows // self.layout.chunk_rows)

    @property
    def is_streamed(self) -> bool:
        """Whether every pass reads the files."""
        return self.columns is None and self.cached is None

    def _from_memory(self, batch_size: int, seed: int, start_step: int) -> tf.data.Dataset:
        columns = self.columns or {}
        # Shuffling row numbers and gathering whole batches is far cheaper than passing single rows through tf.data.
        order = tf.data.Dataset.range(self.rows).shuffle(self.rows, seed=seed).repeat()
        batches = order.skip(start_step * batch_size).batch(batch_size, drop_remainder=True)
        return batches.map(lambda chosen: {name: tf.gather(column, chosen) for name, column in columns.items()})

    def _from_cache(self, batch_size: int, seed: int, settings: InputSettings, start_step: int) -> tf.data.Dataset:
        shuffled = self.chunks().unbatch().shuffle(min(settings.shuffle_rows, self.rows), seed=seed).repeat()
        return shuffled.skip(start_step * batch_size).batch(batch_size, drop_remainder=True)

    def _from_files(self, batch_size: int, seed: int, settings: InputSettings, start_step: int) -> tf.data.Dataset:
        files = tf.data.Dataset.from_tensor_slices(list(self.files)).shuffle(len(self.files), seed=seed)
        records = files.interleave(_records, PARALLEL_FILES, num_parallel_calls=tf.data.AUTOTUNE)
        # Shuffled before they are parsed, since rows are smallest when serialized.
        shuffled = records.shuffle(min(settings.shuffle_rows, self.rows), seed=seed).repeat()
        batches = shuffled.skip(start_step * batch_size).batch(batch_size, drop_remainder=True)
        return batches.map(self.layout.parse, tf.data.AUTOTUNE)

    def _augmented(self, augment: Augment, seed: int) -> Callable[[tf.Tensor, Rows], Rows]:
        names = [feature.name for feature in self.layout.features]

        def change(step: tf.Tensor, rows: Rows) -> Rows:
            return rows | dict(augment({name: rows[name] for name in names}, tf.stack([seed, step])))

        return change


def batches_per_pass(rows: int, batch_size: int) -> int:
    """The number of whole batches in the rows of a training split.

    Raises:
        TrainingError: There are fewer rows than one batch needs.
    """
    if rows < batch_size:
        raise TrainingError(
            f"The training split has {rows} rows, fewer than one batch of {batch_size}.",
            "Set trainer.batch_size to at most the number of rows.",
        )
    return rows // batch_size


def open_split(
    files: Sequence[str], layout: Layout, settings: InputSettings, cache_dir: Path | None = None, name: str = "split"
) -> Split:
    """Counts the rows of a split, and keeps them in memory or on disk if `settings.cache` says so.

    Args:
        files: Gzip TFRecords.
        layout: Their columns.
        settings: The recipe's `trainer.input`.
        cache_dir: The folder for cache files; None reads the files in every pass instead.
        name: The name of the split's cache files.

    Raises:
        TrainingError: There are no rows, or the disk would be filled.
    """
    if settings.cache == "disk" and cache_dir is not None:
        cached, rows = disk_cache.fill(_read_chunks(files, layout), cache_dir, name)
        return Split(files, layout, rows, None, cached)
    limits = {"auto": IN_MEMORY_FRACTION * _machine_memory(), "memory": float("inf")}
    limit = limits.get(settings.cache, 0.0)
    columns = _load(files, layout, limit) if sum(map(os.path.getsize, files)) <= limit else None
    if columns is None:
        return Split(files, layout, count_rows(files), None)
    return Split(files, layout, len(next(iter(columns.values()))), columns)


def count_rows(files: Sequence[str]) -> int:
    """The number of records in gzip TFRecord files."""
    counted = _records(list(files)).batch(PARSE_ROWS)
    return int(counted.reduce(tf.constant(0, tf.int64), lambda total, batch: total + tf.size(batch, tf.int64)).numpy())


def _load(files: Sequence[str], layout: Layout, limit: float) -> Rows | None:
    """All rows by column, or None as soon as they take more than `limit` bytes."""
    parts: list[Rows] = []
    size = 0
    for of_file, bytes_of_file in on_all_cores(lambda file: _load_file(file, layout, limit), files):
        size += bytes_of_file
        if size > limit:
            return None
        parts += of_file
    if not parts:
        raise TrainingError(f"There are no rows in {', '.join(files) or 'the split'}.", "Look at ExampleGen's splits.")
    return {name: tf.concat([part[name] for part in parts], axis=0) for name in parts[0]}


def _load_file(file: str, layout: Layout, limit: float) -> tuple[list[Rows], int]:
    """The rows of a file in chunks, and their bytes; only a part of them, of more bytes than `limit`, if they have."""
    parts: list[Rows] = []
    size = 0
    for part in _read_chunks([file], layout):
        parts.append(part)
        size += sum(_num_bytes(column) for column in part.values())
        if size > limit:
            break
    return parts, size


def _read_chunks(files: Sequence[str], layout: Layout) -> tf.data.Dataset:
    return _records(list(files)).batch(layout.chunk_rows).map(layout.parse, tf.data.AUTOTUNE)


def _records(files: Sequence[str] | tf.Tensor) -> tf.data.Dataset:
    return tf.data.TFRecordDataset(files, compression_type="GZIP")


def _num_bytes(column: tf.Tensor) -> int:
    if column.dtype == tf.string:
        return int(tf.reduce_sum(tf.strings.length(column)))
    return int(tf.size(column, tf.int64)) * int(column.dtype.size)


def _machine_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _options(auto_shard: str) -> tf.data.Options:
    # TensorFlow's own `auto` shards by file, which loses rows, or fails in a worker without a file.
    options = tf.data.Options()
    policy = tf.data.experimental.AutoShardPolicy[auto_shard.upper()]
    options.experimental_distribute.auto_shard_policy = policy
    return options
