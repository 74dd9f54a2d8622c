"""TFT's operations on vocabularies, on lists of what Beam would hold as PCollections."""

from __future__ import annotations

import hashlib
import heapq
import os
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow_transform import analyzer_nodes
from tensorflow_transform.analyzers import _VocabOrderingType as Ordering
from tensorflow_transform.analyzers import calculate_recommended_min_diff_from_avg
from tensorflow_transform.beam import analyzer_impls

Elements = list[Any]


def merged(operation: analyzer_nodes.VocabularyMerge, accumulated: Elements) -> Elements:
    """Tokens with their counts or sums of weights, or with mutual information and sum, each before its token."""
    informative = (Ordering.MUTUAL_INFORMATION, Ordering.WEIGHTED_MUTUAL_INFORMATION)
    if operation.vocab_ordering_type not in informative:
        return [(value, token) for token, value in accumulated]
    tokens: Elements = []
    totals: Elements = []
    for pair in accumulated:
        for output in analyzer_impls._extract_sentinels(pair):
            (totals if output.tag == "global" else tokens).append(output.value)
    [total] = totals
    least = operation.min_diff_from_avg
    if least is None:
        least = calculate_recommended_min_diff_from_avg(total.count * total.weight)
    found = (
        analyzer_impls._calculate_mutual_information_for_feature_value(
            pair, total, operation.use_adjusted_mutual_info, least
        )
        for pair in tokens
    )
    return [((information, frequency), token) for token, (information, _, frequency) in found]


def counted(operation: analyzer_nodes.VocabularyCount, counts: Elements) -> Elements:
    """The number of tokens; an empty vocabulary is written with a token that stands for none."""
    return [np.int64(max(len(counts), 1))]


def pruned(operation: analyzer_nodes.VocabularyPrune, counts: Elements) -> Elements:
    """The tokens that reach the thresholds, numbers as text; the largest alone, sorted, where `top_k` is set."""
    least, informative = operation.frequency_threshold, operation.informativeness_threshold

    def is_kept(value: Any) -> bool:
        information, frequency = value if isinstance(value, tuple) else (float("inf"), value)
        return bool(frequency >= least and information >= informative)

    thresholds = least > 0 or informative > float("-inf")
    kept = [pair for pair in counts if is_kept(pair[0])] if thresholds else counts
    flat = [(value[0] if isinstance(value, tuple) else value, token) for value, token in kept]
    if operation.input_dtype != tf.string.name:
        flat = [(value, tf.compat.as_bytes(tf.compat.as_str_any(token))) for value, token in flat]
    if operation.top_k is None:
        return flat
    # As TFT's Beam graph does it, what is cut off is sorted, and never empty.
    largest = heapq.nlargest(operation.top_k, flat)
    return list(analyzer_impls.maybe_add_empty_vocabulary_dummy(largest, operation.input_dtype))


def written(
    operation: analyzer_nodes.VocabularyOrderAndWrite, folder: str, counts: Elements, reserved: Elements | None = None
) -> Elements:
    """Writes the file of a vocabulary in TFT's order, and returns its path.

    Args:
        operation: The operation.
        folder: Where to write it.
        counts: Tokens, each after what it is ordered by.
        reserved: The tokens that come before all others.
    """
    if operation.input_is_sorted and reserved is None:
        lines = (
            [analyzer_impls._count_and_token_to_bytes(*pair) for pair in counts]
            if operation.store_frequency
            else [token for _, token in counts]
        )
    else:
        order = {"key": _fingerprint} if operation.fingerprint_shuffle else {"reverse": True}
        ordered = analyzer_impls._OrderElementsFn(operation.store_frequency, order, operation.input_dtype)
        lines = list(ordered.process(None, [counts], reserved[0] if reserved else None))
    return [np.array(_write(os.path.join(folder, operation.vocab_filename), operation.file_format, lines))]


def _fingerprint(pair: tuple[Any, bytes]) -> bytes:
    return hashlib.sha1(pair[1]).digest()  # noqa: S324 (TFT's order, no secret)


def _write(path: str, file_format: str, lines: list[bytes]) -> str:
    if file_format == "tfrecord_gzip":
        path = f"{path}.tfrecord.gz"
        with tf.io.TFRecordWriter(path, "GZIP") as records:
            for line in lines:
                records.write(line)
        return path
    with tf.io.gfile.GFile(path, "wb") as text:
        text.write(b"".join(line + b"\n" for line in lines))
    return path
