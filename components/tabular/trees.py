"""Gradient-boosted trees as a layer of plain TensorFlow operations.

scikit-learn's HistGradientBoosting grows them; what it grew is put into arrays, which the layer's weights are. All
trees are walked at once, a level a step, by gathers and comparisons, so that the SavedModel needs nothing besides
TensorFlow, and TensorFlow Lite converts it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tf_keras

NODE_FIELDS = (
    "value",
    "feature_idx",
    "num_threshold",
    "missing_go_to_left",
    "left",
    "right",
    "depth",
    "is_leaf",
    "is_categorical",
    "bitset_idx",
)
"""What is read of scikit-learn's nodes, which are not public: a test compares them with the installed version's."""

MOST_CATEGORIES = 255
"""Codes of a column at most: scikit-learn keeps a column in 255 bins."""

MISSING_CODE = 255
"""The code of a category that is missing, or was not there in training."""

LARGEST, BEYOND = 1e38, 3e38
"""The largest number that is told from a missing one, and where missing ones are put: not at infinity, which TensorFlow
Lite 2.21 takes for the largest float32."""

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]


GOLDEN_SECTION = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Forest:
    """Trees of an additive model; nodes of all trees in one row, the right child of a node after its left one.

    Attributes:
        roots: (trees, ) int32: where each tree begins; tree `i` adds to output `i % outputs`.
        feature: (nodes, ) int32: the column that a node looks at, counted over categories first and then numbers; that
            of a leaf is 0.
        threshold: (nodes, ) float32: rows whose number is not above it go left. A leaf sends every row left.
        left: (nodes, ) int32: the left child; a leaf is its own.
        missing_left: (nodes, ) bool: whether a missing value goes left.
        value: (nodes, ) float32: what a leaf adds; 0 in other nodes.
        table: (nodes, ) int32: the row in `goes_left` of a node that looks at a category; 0 in other nodes.
        goes_left: (rows, 256) bool: by code of a category; the last is `MISSING_CODE`. Row 0 is of no node.
        baseline: (outputs, ) float32: what every row begins with.
        depth: The longest way from a root to a leaf.
        categories: The number of columns that hold categories.
        numbers: The number of the columns after them.
    """

    roots: Ints
    feature: Ints
    threshold: Floats
    left: Ints
    missing_left: npt.NDArray[np.bool_]
    value: Floats
    table: Ints
    goes_left: npt.NDArray[np.bool_]
    baseline: Floats
    depth: int
    categories: int
    numbers: int


def forest_of(model: Any, categories: int) -> Forest:
    """The trees of a fitted HistGradientBoostingClassifier or -Regressor.

    Args:
        model: Fitted on columns of which the first `categories` are categories, coded 0, 1, … without gaps in its
            training rows, or NaN.
        categories: Their number.
    """
    trees = [tree for trees in model._predictors for tree in trees]
    parts: list[dict[str, npt.NDArray[Any]]] = []
    tables = [np.zeros((1, MISSING_CODE + 1), np.bool_)]
    start, rows = 0, 1
    for tree in trees:
        part, table = _tree(tree, start, rows)
        parts.append(part)
        tables.append(table)
        start += len(part["left"])
        rows += len(table)
    sizes = [len(part["left"]) for part in parts]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return Forest(
        roots=np.cumsum([0, *sizes[:-1]]).astype(np.int32),
        **joined,
        goes_left=np.concatenate(tables),
        baseline=np.asarray(model._baseline_prediction, np.float32).reshape(-1),
        depth=max(int(tree.nodes["depth"].max()) for tree in trees),
        categories=categories,
        numbers=model.n_features_in_ - categories,
    )


def _tree(tree: Any, start: int, first_table: int) -> tuple[dict[str, npt.NDArray[Any]], npt.NDArray[np.bool_]]:
    """A tree's nodes, breadth first, and the tables of its nodes that look at a category."""
    nodes = tree.nodes
    order = [0]
    for node in order:
        if not nodes["is_leaf"][node]:
            order += [int(nodes["left"][node]), int(nodes["right"][node])]
    placed = np.empty(len(order), np.int64)
    placed[order] = np.arange(len(order))
    nodes = nodes[order]
    is_leaf = nodes["is_leaf"].astype(bool)
    is_category = nodes["is_categorical"].astype(bool) & ~is_leaf
    table = np.cumsum(is_category) + first_table - 1
    part = {
        "feature": np.where(is_leaf, 0, nodes["feature_idx"]),
        "threshold": np.where(is_leaf, BEYOND, _not_above(nodes["num_threshold"])),
        "left": start + np.where(is_leaf, np.arange(len(order)), placed[np.where(is_leaf, 0, nodes["left"])]),
        "missing_left": is_leaf | nodes["missing_go_to_left"].astype(bool),
        "value": np.where(is_leaf, nodes["value"], 0.0),
        "table": np.where(is_category, table, 0),
    }
    types = {"threshold": np.float32, "value": np.float32, "missing_left": np.bool_}
    typed = {name: column.astype(types.get(name, np.int32)) for name, column in part.items()}
    return typed, _left_codes(tree.raw_left_cat_bitsets, nodes[is_category])


def _not_above(thresholds: npt.NDArray[np.float64]) -> Floats:
    """The largest float32 that is not above each threshold: numbers of float32 then go the same way.

    A split into known and missing has the threshold infinity; here it is `LARGEST`, beyond which the layer puts what is
    missing.
    """
    rounded = np.minimum(thresholds, LARGEST).astype(np.float32)
    above = rounded.astype(np.float64) > thresholds
    return np.where(above, np.nextafter(rounded, np.float32(-np.inf)), rounded)


def thresholds_between(forest: Forest, numbers: Floats) -> Forest:
    """The same trees with each threshold between the training rows' numbers on its two sides, equal to neither.

    scikit-learn's may equal a number that many rows have: then the last bit of a scaled number, which differs between
    two computations of the same graph, decides which way those rows go. The middle may, too, where numbers are rounded;
    the golden section is far from all simple fractions. Training rows go the same ways as before.

    Args:
        forest: Of trees that learned from these rows.
        numbers: float32 (rows, numbers), NaN where missing.
    """
    threshold = forest.threshold.copy()
    for column in range(forest.numbers):
        known = np.unique(numbers[:, column][np.isfinite(numbers[:, column])])
        nodes = np.flatnonzero((forest.feature == forest.categories + column) & (threshold < LARGEST))
        above = np.searchsorted(known, threshold[nodes], side="right")
        between = (above > 0) & (above < len(known))
        low, high = known[above[between] - 1], known[above[between]]
        inside = (low + (high.astype(np.float64) - low) * GOLDEN_SECTION).astype(np.float32)
        threshold[nodes[between]] = np.where(inside < high, inside, low)
    return replace(forest, threshold=threshold)


def _left_codes(bitsets: npt.NDArray[np.uint32], nodes: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which codes of a category go left: bool (nodes, 256)."""
    bits = np.unpackbits(bitsets.view(np.uint8), axis=1, bitorder="little").astype(np.bool_)
    chosen = bits[nodes["bitset_idx"]] if len(nodes) else np.zeros((0, MISSING_CODE + 1), np.bool_)
    chosen[:, MISSING_CODE] = nodes["missing_go_to_left"].astype(bool)
    return chosen


@tf_keras.saving.register_keras_serializable("millrace")
class Trees(tf_keras.layers.Layer):
    """What the trees predict before any link function: float32 [batch, outputs].

    Args:
        forest: Grown trees.
        name: The layer's.
    """

    def __init__(self, forest: Forest, name: str) -> None:
        # Its numbers are compared with thresholds, which half precision would move.
        super().__init__(name=name, dtype="float32", trainable=False)
        self._depth, self._categories = forest.depth, forest.categories
        self._sizes = {name: len(getattr(forest, name)) for name in ("roots", "left", "goes_left", "baseline")}
        self._num_numbers = forest.numbers
        is_number = forest.feature >= forest.categories
        # Numbers stand twice among the columns, a missing one below all thresholds and then above: see `call`.
        goes_right = is_number & ~forest.missing_left
        self._column = self._constant("column", forest.feature + np.where(goes_right, forest.numbers, 0))
        self._roots = self._constant("roots", forest.roots)
        self._threshold = self._constant("threshold", forest.threshold)
        self._left = self._constant("left", forest.left)
        self._value = self._constant("value", forest.value)
        self._baseline = self._constant("baseline", forest.baseline)
        if forest.categories:
            self._table = self._constant("table", forest.table)
            self._goes_left = self._constant("goes_left", forest.goes_left.reshape(-1))

    def get_config(self) -> dict[str, Any]:
        """Keras's hook: the sizes of the weights, which are saved with the model."""
        counts = {"depth": self._depth, "categories": self._categories, "numbers": self._num_numbers}
        return {"name": self.name, "sizes": self._sizes, **counts}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Trees:
        """Keras's hook: the layer, before its weights are loaded."""
        sizes = config["sizes"]
        integers, floats = np.zeros(sizes["left"], np.int32), np.zeros(sizes["left"], np.float32)
        blank = Forest(
            roots=np.zeros(sizes["roots"], np.int32),
            feature=integers,
            threshold=floats,
            left=integers,
            missing_left=integers.astype(np.bool_),
            value=floats,
            table=integers,
            goes_left=np.zeros((sizes["goes_left"], MISSING_CODE + 1), np.bool_),
            baseline=np.zeros(sizes["baseline"], np.float32),
            depth=config["depth"],
            categories=config["categories"],
            numbers=config["numbers"],
        )
        return cls(blank, config["name"])

    def _constant(self, name: str, values: npt.NDArray[Any]) -> tf.Variable:
        dtype = {"f": "float32", "i": "int32", "b": "bool"}[values.dtype.kind]
        initial = tf_keras.initializers.Constant(values)
        return self.add_weight(name, values.shape, dtype, initial, trainable=False)

    def call(self, inputs: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        """Returns float32 [batch, outputs].

        Args:
            inputs: Codes of categories, int32 [batch, categories], and numbers, float32 [batch, numbers], NaN if
                missing.
        """
        codes, numbers = inputs
        is_missing = tf.math.is_nan(numbers)
        below, above = (tf.where(is_missing, limit, numbers) for limit in (-BEYOND, BEYOND))
        columns = tf.concat([tf.cast(codes, tf.float32), below, above], axis=1)
        rows = tf.shape(columns)[0]
        first = (tf.range(rows) * tf.shape(columns)[1])[:, tf.newaxis]
        columns = tf.reshape(columns, [-1])
        nodes = tf.tile(self._roots[tf.newaxis, :], [rows, 1])
        for _ in range(self._depth):
            values = tf.gather(columns, first + tf.gather(self._column, nodes))
            goes_left = values <= tf.gather(self._threshold, nodes)
            if self._categories:
                table = tf.gather(self._table, nodes)
                code = tf.cast(tf.where(table > 0, values, 0.0), tf.int32)
                by_table = tf.gather(self._goes_left, table * (MISSING_CODE + 1) + code)
                goes_left = tf.where(table > 0, by_table, goes_left)
            nodes = tf.gather(self._left, nodes) + tf.cast(~goes_left, tf.int32)
        by_round = tf.reshape(tf.gather(self._value, nodes), [rows, -1, self._baseline.shape[0]])
        return tf.reduce_sum(by_round, axis=1) + self._baseline
