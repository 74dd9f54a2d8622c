"""Rows with every kind of feature, and functions that together use every analyzer of TFT that recipes may."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_transform as tft

SCHEMA = """
feature { name: "dense" type: FLOAT presence { min_fraction: 1.0 } shape { dim { size: 1 } } }
feature { name: "vector" type: FLOAT presence { min_fraction: 1.0 } shape { dim { size: 3 } } }
feature { name: "count" type: INT presence { min_fraction: 1.0 } shape { dim { size: 1 } } }
feature { name: "weight" type: FLOAT presence { min_fraction: 1.0 } shape { dim { size: 1 } } }
feature { name: "label" type: INT presence { min_fraction: 1.0 } shape { dim { size: 1 } } }
feature { name: "key" type: BYTES presence { min_fraction: 1.0 } shape { dim { size: 1 } } }
feature { name: "sparse" type: FLOAT value_count { min: 0 max: 1 } }
feature { name: "numbers" type: INT value_count { min: 0 } }
feature { name: "words" type: BYTES value_count { min: 0 } }
"""

WORDS = ["a", "be", "café", "", "two\nlines", "x y", *(f"rare{i}" for i in range(40))]


def rows(number: int) -> list[dict[str, Any]]:
    """Rows with missing values, several words, empty ones, such as contain a line's end, and repeated numbers."""
    random = np.random.default_rng(7)
    weights = 1 / np.arange(1, len(WORDS) + 1)
    chosen = [random.choice(WORDS, random.integers(0, 6), p=weights / weights.sum()).tolist() for _ in range(number)]
    return [
        {
            "dense": float(random.gamma(1.0)),
            "vector": random.normal(size=3).tolist(),
            "count": int(random.integers(5)),
            "weight": float(random.integers(1, 5)) / 4,
            "label": int(random.integers(3)),
            "key": ["one", "two", "three"][int(random.integers(3))],
            "sparse": float(random.normal()) if random.random() < 0.7 else None,
            "numbers": random.integers(0, 30, random.integers(1, 4)).tolist() if random.random() < 0.8 else None,
            "words": words,
        }
        for words in chosen
    ]


def _flat(values: tf.Tensor) -> tf.Tensor:
    return tf.reshape(values, [-1])


def numbers_fn(inputs: Mapping[str, Any]) -> dict[str, tf.Tensor]:
    """Sums, scales and buckets."""
    dense, count, sparse, key = _flat(inputs["dense"]), _flat(inputs["count"]), inputs["sparse"], _flat(inputs["key"])
    weight, vector = _flat(inputs["weight"]), inputs["vector"]
    zero = tf.zeros_like(dense)
    covariance = tft.covariance(vector, tf.float32)
    components = tft.pca(vector, 2, tf.float32)
    histogram, _ = tft.histogram(dense, boundaries=5)
    return {
        "mean": zero + tft.mean(dense),
        "var": zero + tft.var(dense),
        "min": zero + tft.min(dense),
        "max": tf.zeros_like(count) + tft.max(count),
        "sum": zero + tft.sum(dense),
        "size": tf.zeros_like(count) + tft.size(dense),
        "means": tf.zeros_like(vector) + tft.mean(vector, reduce_instance_dims=False),
        "covariance": tf.matmul(vector, covariance),
        "pca": tf.matmul(vector, components),
        "histogram": tf.zeros_like(count) + histogram[0],
        "z_score": tft.scale_to_z_score(dense),
        "z_scores": tft.scale_to_z_score(vector, elementwise=True),
        "z_score_of_sparse": tft.scale_to_z_score(sparse),
        "z_score_per_key": tft.scale_to_z_score_per_key(dense, key),
        "0_1": tft.scale_to_0_1(dense),
        "0_1_per_key": tft.scale_to_0_1_per_key(dense, key, elementwise=False, key_vocabulary_filename=None),
        "gaussian": tft.scale_to_gaussian(dense),
        "min_max": tft.scale_by_min_max(dense, -1.0, 1.0),
        "buckets": tft.bucketize(dense, 4),
        "weighted_buckets": tft.bucketize(dense, 4, weights=weight),
        "buckets_of_vector": tft.bucketize(vector, 3, elementwise=True),
        "buckets_of_sparse": tft.bucketize(sparse, 4),
        "buckets_per_key": tft.bucketize_per_key(dense, key, 3),
        "quantiles": zero + tf.reduce_sum(tft.quantiles(dense, 10, epsilon=0.01)),
        # Known only after a pass.
        "after": tft.scale_to_z_score(tf.math.log1p(dense - tft.min(dense))),
    }


def words_fn(inputs: Mapping[str, Any]) -> dict[str, tf.Tensor]:
    """Vocabularies, of which the second pass looks words up, and what needs none."""
    words, numbers, label, weight = inputs["words"], inputs["numbers"], _flat(inputs["label"]), _flat(inputs["weight"])
    key, count = _flat(inputs["key"]), _flat(inputs["count"])
    zero = tf.zeros_like(count)
    tft.vocabulary(words, vocab_filename="all", store_frequency=True)
    tft.vocabulary(words, vocab_filename="largest", top_k=5, store_frequency=True)
    tft.vocabulary(words, vocab_filename="frequent", frequency_threshold=4)
    tft.vocabulary(words, vocab_filename="none", frequency_threshold=100_000)
    tft.vocabulary(words, vocab_filename="shuffled", fingerprint_shuffle=True)
    tft.vocabulary(numbers, vocab_filename="numbers", top_k=7)
    tft.vocabulary(key, vocab_filename="weighted", weights=weight, store_frequency=True)
    tft.vocabulary(key, vocab_filename="informative", labels=label, store_frequency=True, min_diff_from_avg=0)
    tft.vocabulary(key, vocab_filename="adjusted", labels=label, use_adjusted_mutual_info=True, store_frequency=True)
    tft.vocabulary(key, vocab_filename="both", labels=label, weights=weight, store_frequency=True)
    tft.vocabulary(words, vocab_filename="reserved", top_k=3, reserved_tokens=["[PAD]", "a"])
    tft.vocabulary(words, vocab_filename="records", file_format="tfrecord_gzip")
    tft.count_per_key(key, key_vocabulary_filename="per_key")
    ids = tft.compute_and_apply_vocabulary(words, top_k=20, num_oov_buckets=1, vocab_filename="applied")
    asset = tft.vocabulary(key, vocab_filename="looked_up")
    indices, frequencies = tft.tfidf(ids, 22)
    return {
        "ids": ids,
        "ids_of_numbers": tft.compute_and_apply_vocabulary(numbers),
        "looked_up": tft.apply_vocabulary(key, asset),
        "tfidf_indices": indices,
        "tfidf": frequencies,
        "bag": tft.bag_of_words(words, (1, 2), " "),
        "hashed": tft.hash_strings(key, 10),
        "size": zero + tf.cast(tft.experimental.get_vocabulary_size_by_name("applied"), tf.int64),
        "z_score_of_ids": tft.scale_to_z_score(tf.cast(tft.apply_vocabulary(key, asset), tf.float32)),
    }
