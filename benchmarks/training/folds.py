"""Cross-validation: each row judged by a model that did not learn from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.training.sides import Training, new_job, opened
from components.trainer import fitting, precision
from components.trainer.inputs import Rows, Split


def judged(module: str, data: Mapping[str, str], settings: Mapping[str, Any], seeds: int, folds: int) -> list[bool]:
    """Whether the predicted class is right, for each row of both splits, once a seed.

    Args:
        module: See `sides.new_job`.
        data: See `sides.new_job`.
        settings: The recipe's `trainer` section; the seed is replaced by 1 to `seeds`.
        seeds: How many; each also deals the rows into folds anew.
        folds: A model learns from all folds but one.
    """
    right: list[bool] = []
    for seed in range(1, seeds + 1):
        job = new_job(module, data, {**settings, "seed": seed})
        with precision.policy(job.settings.precision):
            training = opened(job)
            found = [_judged(training, fold) for fold in _folds(training.data, seed, folds)]
        # In an order that is the same for every precision: the seed's.
        right += [bool(value) for part in found for value in part]
    return right


def _judged(training: Training, data: fitting.Data) -> Any:
    one = dataclasses.replace(training, data=data)
    model = one.build()
    one.fit(model)
    inputs, labels = data.eval.layout.split(data.eval.columns or {})
    return np.argmax(model.predict(inputs, verbose=0), axis=1) == labels.numpy()  # type: ignore[union-attr]


def _folds(data: fitting.Data, seed: int, folds: int) -> Iterator[fitting.Data]:
    train, evaluation = data.train.columns or {}, data.eval.columns or {}
    columns = {name: tf.concat([train[name], evaluation[name]], axis=0) for name in train}
    parts = np.array_split(np.random.default_rng(seed).permutation(data.train.rows + data.eval.rows), folds)
    for number, part in enumerate(parts):
        rest = np.concatenate([*parts[:number], *parts[number + 1 :]])
        yield fitting.Data(_taken(data.train, columns, rest), _taken(data.eval, columns, part))


def _taken(split: Split, columns: Rows, rows: Any) -> Split:
    return Split([], split.layout, len(rows), {name: tf.gather(column, rows) for name, column in columns.items()})
