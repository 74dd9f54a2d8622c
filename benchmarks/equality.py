"""How much the outputs of two runs differ: examples as sets, statistics, vocabularies, transformed values, metrics."""

from __future__ import annotations

import gzip
import hashlib
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_model_analysis as tfma
from google.protobuf.message import Message
from tensorflow_metadata.proto.v0 import statistics_pb2
from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder

VOCABULARIES = "transform_fn/assets"


def count_different_examples(left: str, right: str) -> int:
    """The number of rows that are in only one of two Examples artifacts; duplicates count."""
    rows = 0
    for split in splits(left) | splits(right):
        first, second = _digests(left, split), _digests(right, split)
        rows += sum((first - second).values()) + sum((second - first).values())
    return rows


def splits(uri: str) -> set[str]:
    """The folders of an artifact's splits."""
    return {folder.name for folder in Path(uri).glob("Split-*")}


def statistics_difference(left: str, right: str, histograms: bool = True) -> float:
    """The largest relative difference between numbers in the statistics of all splits; infinite if shapes differ.

    Args:
        left: The artifact.
        right: The other one.
        histograms: Whether to compare the histograms of numbers, too, whose counts TFDV interpolates.
    """
    return max(
        _message_difference(*(_statistics(uri, split, histograms) for uri in (left, right)))
        for split in splits(left) | splits(right)
    )


def different_vocabularies(left: str, right: str) -> list[str]:
    """The names of the vocabularies that are not byte for byte equal in two transform graphs."""
    first, second = (_contents(Path(uri, VOCABULARIES)) for uri in (left, right))
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))


def transformed_difference(left: str, right: str) -> float:
    """The largest difference between transformed values, relative if they are above 1; compares rows file by file.

    Infinite if files, rows, features or text values differ.
    """
    return max((_file_difference(left, right, split) for split in splits(left) | splits(right)), default=0.0)


def metrics_difference(left: str, right: str) -> float:
    """The largest relative difference between metrics of the same model and slice."""
    first, second = (_metrics(uri) for uri in (left, right))
    if first.keys() != second.keys():
        return math.inf
    return max(_number_difference(first[key], second[key]) for key in first)


def _digests(uri: str, split: str) -> Counter[bytes]:
    return Counter(hashlib.sha256(record).digest() for batch in _batches(uri, split) for record in batch)


def _batches(uri: str, split: str) -> Iterator[Any]:
    files = sorted(str(path) for path in Path(uri, split).iterdir())
    return iter(tf.data.TFRecordDataset(files, compression_type="GZIP").batch(2**14).as_numpy_iterator())


def _statistics(uri: str, split: str, histograms: bool) -> Message:
    statistics: Message = statistics_pb2.DatasetFeatureStatisticsList()
    statistics.ParseFromString(Path(uri, split, "FeatureStats.pb").read_bytes())
    # TFDV lists the features in the order in which workers reached them.
    for dataset in statistics.datasets:
        ordered = sorted(dataset.features, key=lambda feature: tuple(feature.path.step))
        del dataset.features[:]
        dataset.features.extend(ordered)
        for feature in dataset.features if not histograms else ():
            feature.num_stats.ClearField("histograms")
    return statistics


def _message_difference(left: Message, right: Message) -> float:
    first, second = ({field.name: value for field, value in message.ListFields()} for message in (left, right))
    # A number that is 0 equals one that is absent.
    empty = {name: getattr(type(left)(), name) for name in first.keys() ^ second.keys()}
    first, second = empty | first, empty | second
    return max((_value_difference(first[name], second[name]) for name in first), default=0.0)


def _value_difference(left: Any, right: Any) -> float:
    if isinstance(left, Message):
        return _message_difference(left, right)
    if isinstance(left, str | bytes | bool):
        return 0.0 if left == right else math.inf
    if isinstance(left, int | float):
        return _number_difference(left, right)
    if len(left) != len(right):
        return math.inf
    return max((_value_difference(*pair) for pair in zip(left, right, strict=True)), default=0.0)


def _number_difference(left: float, right: float) -> float:
    if left == right or (math.isnan(left) and math.isnan(right)):
        return 0.0
    return abs(left - right) / max(1.0, abs(left), abs(right))


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        path.name: gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for path in folder.iterdir()
    }


def _file_difference(left: str, right: str, split: str) -> float:
    decoder = ExamplesToRecordBatchDecoder()
    apart = 0.0
    first, second = _batches(left, split), _batches(right, split)
    for batch in first:
        matching = next(second, None)
        if matching is None or len(matching) != len(batch):
            return math.inf
        apart = max(apart, _row_difference(decoder.DecodeBatch(batch.tolist()), decoder.DecodeBatch(matching.tolist())))
    return math.inf if next(second, None) is not None else apart


def _row_difference(left: Any, right: Any) -> float:
    if set(left.schema.names) != set(right.schema.names):
        return math.inf
    apart = 0.0
    for name in left.schema.names:
        first, second = left.column(left.schema.names.index(name)), right.column(right.schema.names.index(name))
        if first.type != second.type or not first.offsets.equals(second.offsets):
            return math.inf
        values = [column.flatten().to_numpy(zero_copy_only=False) for column in (first, second)]
        apart = max(apart, _array_difference(*values))
    return apart


def _array_difference(left: Any, right: Any) -> float:
    if left.dtype == object:
        return 0.0 if (left == right).all() else math.inf
    first, second = left.astype(np.float64), right.astype(np.float64)
    apart = np.abs(first - second) / np.maximum(1.0, np.abs(first))
    apart[np.isnan(first) & np.isnan(second)] = 0.0
    return float(np.nan_to_num(apart, nan=math.inf).max(initial=0.0))


def _metrics(uri: str) -> dict[Any, float]:
    return {
        (str(record.slice_key), str(metric.key)): metric.value.double_value.value
        for record in tfma.load_metrics(uri)
        for metric in record.metric_keys_and_values
        if metric.value.WhichOneof("type") == "double_value"
    }
