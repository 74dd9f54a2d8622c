"""F1 against scikit-learn's, over batches, weights and replicas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tf_keras
from sklearn.metrics import f1_score

from components.trainer.metrics import SparseF1Score

RANDOM = np.random.default_rng(4)
LABELS = RANDOM.integers(0, 3, 50)
SCORES = RANDOM.dirichlet(np.ones(3), 50).astype(np.float32)
WEIGHTS = RANDOM.random(50).astype(np.float32)


def streamed(metric: Any, labels: Any, scores: Any, weights: Any = None) -> Any:
    for start in range(0, 50, 7):
        part = slice(start, start + 7)
        metric.update_state(labels[part], scores[part], None if weights is None else weights[part])
    return metric.result().numpy()


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("average", ["micro", "macro", "weighted", None])
def test_classes(average: str | None, weights: Any) -> None:
    expected = f1_score(LABELS, SCORES.argmax(1), average=average, sample_weight=weights)
    np.testing.assert_allclose(streamed(SparseF1Score(3, average), LABELS, SCORES, weights), expected, rtol=1e-5)


@pytest.mark.parametrize("threshold", [None, 0.3])
def test_one_probability(threshold: float | None) -> None:
    labels, scores = (LABELS == 1).astype(np.int64), SCORES[:, 1:2]
    expected = f1_score(labels, scores[:, 0] > (threshold or 0.5), sample_weight=WEIGHTS)
    found = streamed(SparseF1Score(1, "micro", threshold), labels[:, None], scores, WEIGHTS[:, None])
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_new_epoch_begins_at_nothing() -> None:
    metric = SparseF1Score(3, "macro")
    streamed(metric, LABELS[::-1], SCORES)
    metric.reset_state()
    expected = f1_score(LABELS, SCORES.argmax(1), average="macro")
    np.testing.assert_allclose(streamed(metric, LABELS, SCORES), expected, rtol=1e-5)


def test_it_is_made_again_from_its_config() -> None:
    copied = SparseF1Score.from_config(SparseF1Score(3, "weighted", 0.4).get_config())
    assert copied.get_config() == SparseF1Score(3, "weighted", 0.4).get_config()


def test_in_a_fit_with_weights() -> None:
    inputs = tf_keras.Input([3])
    model = tf_keras.Model(inputs, tf_keras.layers.Activation("linear")(inputs))
    model.compile(loss="sparse_categorical_crossentropy", weighted_metrics=[SparseF1Score(3)])
    found = model.evaluate(SCORES, LABELS, batch_size=9, sample_weight=WEIGHTS, verbose=0, return_dict=True)
    expected = f1_score(LABELS, SCORES.argmax(1), average="macro", sample_weight=WEIGHTS)
    assert found["f1_score"] == pytest.approx(expected, rel=1e-5)
