"""The kinds of model that compete: each learns from rows in memory, and predicts logits."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tf_keras

from components.tabular import features as tabular
from components.tabular.labels import Amount, LabelColumn
from components.tabular.tree_columns import TreeColumns, as_table
from components.tabular.trees import Trees, forest_of, thresholds_between
from components.trainer.features import Feature
from components.trainer.own_training import Training

Logits = npt.NDArray[np.float32]
"""float32 (rows, units)."""

CHUNK = 8_192
FEW_ROWS = 10_000
"""With fewer, trees are as many as there are; with more, boosting ends when a tenth of the rows gains no more."""

SMALL_TABLE = 5_000_000
"""Up to so many cells one thread grows the trees: several mostly wait, on shared cores ten times as long."""

FEW_TREES, MOST_TREES = 300, 1_000
PATIENCE = 20
REGULARIZATIONS = (0.01, 0.1, 1.0, 10.0)
"""Inverse strengths of the linear model's penalty, of which cross-validation chooses."""

MOST_DENSE_COLUMNS = 1_000


@dataclass(frozen=True)
class Rows:
    """Rows in memory.

    Attributes:
        inputs: Transformed features by name.
        label: Ids of classes, or amounts in the label's own unit; (rows, ).
        weights: How much each row counts, without the weight of its class; (rows, ).
        class_weights: How much rows of each class count in training; empty: all the same.
    """

    inputs: Mapping[str, npt.NDArray[Any]]
    label: npt.NDArray[Any]
    weights: npt.NDArray[np.float64]
    class_weights: Sequence[float] = ()

    @property
    def counted(self) -> npt.NDArray[np.float64]:
        """How much each row counts in training."""
        return self.weights * np.asarray(self.class_weights)[self.label] if self.class_weights else self.weights

    def __len__(self) -> int:
        return len(self.label)

    def at(self, chosen: npt.NDArray[np.int64]) -> Rows:
        """The rows of these numbers."""
        inputs = {name: column[chosen] for name, column in self.inputs.items()}
        return replace(self, inputs=inputs, label=self.label[chosen], weights=self.weights[chosen])


class Candidate(Protocol):
    """A kind of model."""

    def fit(self, rows: Rows) -> tf_keras.Model:
        """Returns a model that has learned from these rows alone; its output is logits [batch, members, units]."""


def predicted(model: tf_keras.Model, rows: Rows) -> Logits:
    """The mean of the members' logits."""
    call = tf.function(lambda inputs: tf.reduce_mean(model(inputs, training=False), axis=1), reduce_retracing=True)
    parts = [
        call({name: column[start : start + CHUNK] for name, column in rows.inputs.items()}).numpy()
        for start in range(0, len(rows), CHUNK)
    ]
    return np.concatenate(parts)


class Network:
    """The recipe's network, trained as recipe.yaml says."""

    def __init__(self, training: Training) -> None:
        self._training = training
        self._model: tf_keras.Model | None = None
        self._start: list[npt.NDArray[Any]] = []

    def fit(self, rows: Rows) -> tf_keras.Model:
        """See `Candidate`; the same model each time, with other weights, so that its step is traced once."""
        if self._model is None:
            self._model = self._training.build(model="network")
            self._start = self._model.get_weights()
        self._model.set_weights(self._start)
        self._training.fit_rows(self._model, rows.inputs, rows.label, rows.weights, model="network")
        return self._model


class Boosted:
    """scikit-learn's gradient-boosted trees.

    Args:
        features: The model's inputs.
        label: What is predicted.
        seed: Of the columns that each split may look at.
    """

    def __init__(self, features: Sequence[Feature], label: LabelColumn, seed: int) -> None:
        self._features, self._label, self._seed = features, label, seed

    def fit(self, rows: Rows) -> tf_keras.Model:
        """See `Candidate`."""
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
        from threadpoolctl import threadpool_limits

        columns = TreeColumns.of(self._features, rows.inputs, "tree_columns")
        codes, numbers = columns.in_chunks(rows.inputs)
        few = len(rows) < FEW_ROWS
        options = {
            "learning_rate": 0.05,
            "max_iter": FEW_TREES if few else MOST_TREES,
            "max_leaf_nodes": 15 if few else 31,
            "max_features": 0.3,
            "early_stopping": not few,
            "n_iter_no_change": PATIENCE,
            "categorical_features": list(range(columns.categories)) or None,
            "random_state": self._seed,
        }
        kind: Any = HistGradientBoostingClassifier
        wanted = rows.label
        if isinstance(self._label, Amount):
            kind, wanted = HistGradientBoostingRegressor, self._label.standardized(rows.label)
        table = as_table(codes, numbers)
        with threadpool_limits(1 if table.size < SMALL_TABLE else None):
            grown = kind(**options).fit(table, wanted, sample_weight=rows.counted)
        inputs = new_inputs(self._features)
        trees = Trees(thresholds_between(forest_of(grown, columns.categories), numbers), "trees")
        return with_logits(inputs, trees(columns(inputs))[:, tf.newaxis, :], "trees")


class Linear:
    """Logistic or ridge regression, solved by scikit-learn, in the recipe's linear model.

    Args:
        training: Builds it.
        label: What is predicted.
    """

    def __init__(self, training: Training, label: LabelColumn) -> None:
        self._training, self._label = training, label
        self._regularization: float | None = None

    def fit(self, rows: Rows) -> tf_keras.Model:
        """See `Candidate`; how much is regularized is found with the first rows."""
        parts = design(self._training.features, rows.inputs)
        with warnings.catch_warnings():
            # A fit that would gain by more steps, or options that SciPy no longer knows: judged by what it predicts.
            warnings.simplefilter("ignore")
            weights, intercept = self._solved(parts, rows)
        model = self._training.build(model="linear")
        start = 0
        for name, matrix in parts.items():
            layer = model.get_layer(f"linear_{name}")
            kernel = weights[start : start + matrix.shape[1]].astype(np.float32)
            start += matrix.shape[1]
            if name == "numbers":
                layer.set_weights([kernel, intercept.astype(np.float32)])
                intercept = np.zeros_like(intercept)
            else:
                layer.set_weights([kernel])
        if intercept.any():
            _add_intercept(model, parts, intercept)
        return model

    def _solved(self, parts: Mapping[str, Any], rows: Rows) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Weights, (columns, units), and intercept, (units, )."""
        from scipy import sparse
        from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, Ridge, RidgeCV

        matrix = sparse.hstack(list(parts.values()), format="csr")
        if isinstance(self._label, Amount):
            wanted = self._label.standardized(rows.label)
            few = matrix.shape[1] <= MOST_DENSE_COLUMNS
            ridge = RidgeCV(np.logspace(-2, 4, 13)) if few else Ridge(solver="sparse_cg")
            ridge.fit(matrix.toarray() if few else matrix, wanted, sample_weight=rows.counted)
            return ridge.coef_[:, np.newaxis], np.array([ridge.intercept_])
        if self._regularization is None:
            chosen = LogisticRegressionCV(
                Cs=list(REGULARIZATIONS), cv=3, scoring="neg_log_loss", max_iter=300, random_state=0
            ).fit(matrix, rows.label, sample_weight=rows.counted)
            self._regularization = float(chosen.C_[0])
            model = chosen
        else:
            model = LogisticRegression(C=self._regularization, max_iter=1_000)
            model.fit(matrix, rows.label, sample_weight=rows.counted)
        return model.coef_.T, model.intercept_


def design(features: Sequence[Feature], inputs: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """The sparse columns that the linear model has a weight for, by its layers' names without `linear_`."""
    from scipy import sparse

    parts: dict[str, Any] = {}
    for feature in features:
        values = inputs[feature.name]
        if feature.name == tabular.NUMBERS:
            parts["numbers"] = sparse.csr_matrix(values)
        elif feature.name == tabular.RANKS:
            parts["missing"] = sparse.csr_matrix((values < 0).astype(np.float32))
        else:
            rows = np.repeat(np.arange(len(values)), values.shape[1])
            shares = np.ones(values.shape)
            if feature.name == tabular.WORDS:
                known = values > 0
                shares = known / np.maximum(known.sum(axis=1, keepdims=True), 1)
            shape = (len(values), feature.num_categories)
            parts[feature.name] = sparse.csr_matrix((shares.ravel(), (rows, values.ravel())), shape)
    return parts


def _add_intercept(model: tf_keras.Model, parts: Mapping[str, Any], intercept: npt.NDArray[Any]) -> None:
    """Adds it to the weights of ids, of which each row has as many as there are columns."""
    for name in (tabular.CATEGORIES, tabular.HASHES):
        if name in parts:
            layer = model.get_layer(f"linear_{name}")
            columns = parts[name].sum(axis=1).max()
            layer.set_weights([layer.get_weights()[0] + (intercept / columns).astype(np.float32)])
            return


def averaged(models: Sequence[tf_keras.Model], features: Sequence[Feature]) -> tf_keras.Model:
    """One model whose logits are the mean of those of several."""
    inputs = new_inputs(features)
    logits = [tf.reduce_mean(model(inputs), axis=1, keepdims=True) for model in models]
    return with_logits(inputs, tf.add_n(logits) / float(len(logits)), "average")


def new_inputs(features: Sequence[Feature]) -> dict[str, tf.Tensor]:
    """The model's inputs, by feature."""
    return {f.name: tf_keras.Input(shape=f.shape, name=f.name, dtype=f.dtype) for f in features}


def with_logits(inputs: Mapping[str, tf.Tensor], logits: tf.Tensor, name: str) -> tf_keras.Model:
    """A model with the one output `logits`."""
    output = tf_keras.layers.Activation("linear", dtype="float32", name="logits")(logits)
    return tf_keras.Model(dict(inputs), output, name=name)
