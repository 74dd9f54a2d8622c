"""The honest baseline: a linear model, judged on training rows that it has not seen; its interval gives the bars."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.commands.new.columns import Found
from pipeline.commands.new.table import Cells
from pipeline.commands.new.task import Task, names_in

FOLDS = 5
MAX_ROWS = 10_000
MAX_WORDS = 50
"""Words of a column that the baseline knows."""

RESAMPLES = 200
SHARES = ("BinaryAccuracy", "SparseCategoricalAccuracy")
CONFIDENCE = 1.96
Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """A metric of the baseline.

    Attributes:
        name: As in `evaluator.metrics`.
        value: On training rows that it was not trained on.
        deviation: The standard deviation of that value, by resampling.
        higher_is_better: Which way is better.
        rows: On how many rows.
        constant: Whether it says the same of all rows, as where there are images alone.
    """

    name: str
    value: float
    deviation: float
    higher_is_better: bool
    rows: int
    constant: bool = False

    @property
    def by(self) -> str:
        """The baseline, in words."""
        return "the same answer for all rows" if self.constant else "a linear model"

    def bar(self, evaluated: int) -> float:
        """The worst value that a model as good as the baseline has on so many other rows, 39 times in 40.

        What a constant has is itself the bar: whoever learned anything does better.
        """
        if self.constant:
            return float(f"{self.value:.3g}")
        margin = CONFIDENCE * self.deviation * (1 + self.rows / max(evaluated, 1)) ** 0.5
        value = _shrunk(self.value, self.rows) - margin if self.higher_is_better else self.value + margin
        return float(f"{max(value, 0.0):.3g}")

    def max_loss(self, evaluated: int) -> float:
        """Half the width of the metric's interval on so many rows: less cannot be told from chance."""
        return float(f"{CONFIDENCE * self.deviation * (self.rows / max(evaluated, 1)) ** 0.5:.2g}")


def measure(
    columns: Sequence[Found], cells: dict[str, Cells], task: Task, moments: Matrix | None = None
) -> list[Measured]:
    """Trains a linear model on each four fifths of the rows and judges it on the fifth.

    Where rows are split by time, it is trained on the oldest half, two thirds and five sixths, each time judged on the
    sixth that follows: what it loses by looking into the future is part of what it can do.

    Args:
        columns: What is learned from.
        cells: The training rows of these and of the label, as ingest reads them; each has a label.
        task: What is predicted.
        moments: When each row was made, (rows,); None where rows are drawn at random.

    Returns:
        The task's metrics, the most telling one first.
    """
    labels = cells[task.label]
    chosen = np.random.default_rng(0).permutation(len(labels))[:MAX_ROWS]
    if moments is not None:
        chosen = chosen[np.argsort(moments[chosen], kind="stable")]
    known = [as_numbers(found, cells[found.name][chosen]) for found in columns if found.use != "image"]
    if not known:
        return [replace(figure, constant=True) for figure in _of_constant(labels[chosen], task)]
    features = np.concatenate(known, axis=1)
    if task.several:
        wanted = _names_of(labels[chosen], task)
        predicted = [_cross_predicted(features, column, 2, moments is not None) for column in wanted.T.astype(int)]
        judged = ~np.isnan(predicted[0][:, 0])
        scores = np.stack([of_name[judged, 1] for of_name in predicted], axis=1)
        return _measured_several(wanted[judged], scores)
    wanted = _wanted(labels[chosen], task)
    predictions = _cross_predicted(features, wanted, len(task.classes), moments is not None)
    judged = ~np.isnan(predictions[:, 0])
    return _measured(task, wanted[judged], predictions[judged])


def _of_constant(labels: Cells, task: Task) -> list[Measured]:
    """What predicting the mean, or the share of each class, for all rows is worth."""
    if task.several:
        has_name = _names_of(labels, task)
        return _measured_several(has_name, np.tile(has_name.mean(axis=0), (len(labels), 1)))
    wanted = _wanted(labels, task)
    known = np.eye(len(task.classes))[wanted].mean(axis=0) if task.classes else wanted.mean(keepdims=True)
    figures = _measured(task, wanted, np.tile(known, (len(labels), 1)))
    if task.is_binary:
        # Equal scores have an area of 0.5 in every sample; scores drawn at random deviate (Mann and Whitney, 1947).
        ones = int(wanted.sum())
        chance = ((len(wanted) + 1) / (12 * ones * (len(wanted) - ones))) ** 0.5
        figures[0] = replace(figures[0], deviation=chance)
    return figures


def _names_of(labels: Cells, task: Task) -> Any:
    """Whether each row has each name, [rows, names]."""
    return np.array([[name in names_in(cell, task.separator) for name in task.classes] for cell in labels])


def _wanted(labels: Cells, task: Task) -> Any:
    """Ids of classes, or amounts, [rows]."""
    if task.classes:
        return np.array([task.classes.index(task.class_of(label)) for label in labels])
    return labels.astype(np.float64)


def _cross_predicted(features: Matrix, wanted: Any, classes: int, in_order: bool) -> Matrix:
    """What models predict that were trained on other rows: [rows, classes], or amounts [rows, 1] if there are none.

    NaN in the rows that none was judged on.

    Args:
        features: [rows, …].
        wanted: Ids of classes or amounts, [rows].
        classes: How many there are; 0 for an amount.
        in_order: Whether rows come one after the other in time.
    """
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.model_selection import KFold, StratifiedKFold, TimeSeriesSplit

    if classes:
        model: Any = LogisticRegression(max_iter=300)
        folds: Any = StratifiedKFold(max(2, min(FOLDS, *Counter(wanted.tolist()).values())))
    else:
        model, folds = RidgeCV(np.logspace(-2, 4, 13)), KFold(FOLDS)
    if in_order and (not classes or len(set(wanted[: len(wanted) // 2])) == classes):
        folds = TimeSeriesSplit(3, test_size=len(wanted) // 6)
    predicted = np.full((len(wanted), classes or 1), np.nan)
    with warnings.catch_warnings():
        # A class with too few rows for every fold, or a fit that would gain by more steps: the baseline is what it is.
        warnings.simplefilter("ignore")
        for trained, judged in folds.split(features, wanted):
            if classes and len(set(wanted[trained])) == 1:
                predicted[judged] = np.eye(classes)[wanted[trained][0]]
                continue
            model.fit(features[trained], wanted[trained])
            if classes:
                predicted[judged] = 0.0
                predicted[np.ix_(judged, model.classes_)] = model.predict_proba(features[judged])
            else:
                predicted[judged, 0] = model.predict(features[judged])
    return predicted


def _measured_several(wanted: Any, scores: Matrix) -> list[Measured]:
    """Micro-averaged, as TFMA does it: every pair of a row and a name counts once.

    Args:
        wanted: Whether each row has each name, [rows, names].
        scores: The probabilities of that.
    """
    from sklearn.metrics import roc_auc_score

    right = (scores > 0.5) == wanted

    def area(rows: Any) -> float:
        return float(roc_auc_score(wanted[rows].ravel(), scores[rows].ravel()))

    return [
        _resampled("AUC", True, len(wanted), area),
        _resampled("BinaryAccuracy", True, len(wanted), lambda rows: right[rows].mean()),
    ]


def _measured(task: Task, wanted: Matrix, predicted: Matrix) -> list[Measured]:
    from sklearn.metrics import roc_auc_score

    if not task.classes:
        errors = (predicted[:, 0] - wanted) ** 2
        return [_resampled("RootMeanSquaredError", False, len(wanted), lambda rows: errors[rows].mean() ** 0.5)]
    right = predicted.argmax(axis=1) == wanted
    if not task.is_binary:
        return [_resampled("SparseCategoricalAccuracy", True, len(wanted), lambda rows: right[rows].mean())]

    def area(rows: Any) -> float:
        return float(roc_auc_score(wanted[rows], predicted[rows, 1])) if 0 < wanted[rows].mean() < 1 else 0.5

    if task.rare:
        # Calling no row positive would be accurate, too.
        return [_resampled("AUC", True, len(wanted), area)]
    return [
        _resampled("AUC", True, len(wanted), area),
        _resampled("BinaryAccuracy", True, len(wanted), lambda rows: right[rows].mean()),
    ]


def _resampled(name: str, higher_is_better: bool, rows: int, value: Any) -> Measured:
    draw = np.random.default_rng(0)
    values = [float(value(draw.integers(0, rows, rows))) for _ in range(RESAMPLES)]
    measured, deviation = float(value(np.arange(rows))), float(np.std(values))
    if name in SHARES:
        # Resampling sees next to no deviation where nearly every row is right.
        share = _shrunk(measured, rows)
        deviation = max(deviation, (share * (1 - share) / rows) ** 0.5)
    return Measured(name, measured, deviation, higher_is_better, rows)


def _shrunk(share: float, rows: int) -> float:
    """A share of rows with two right and two wrong ones added (Agresti and Coull, 1998): 1 may be luck."""
    return (share * rows + 2) / (rows + 4)


def as_numbers(found: Found, cells: Cells) -> Matrix:
    """A column as numbers, float64 [rows, …]: standardized with a flag for missing, or one for each frequent word."""
    if found.use == "number":
        numbers = np.array([np.nan if cell is None else float(cell) for cell in cells])
        numbers[~np.isfinite(numbers)] = np.nan
        known = ~np.isnan(numbers)
        if not known.any():
            return np.zeros((len(cells), 1))
        centered = np.where(known, numbers - np.median(numbers[known]), 0.0)
        spread = centered.std() or 1.0
        scaled = np.clip(centered / spread, -5, 5)
        return np.stack([scaled, (~known).astype(float)], axis=1) if found.missing else scaled[:, np.newaxis]
    words = [[cell.lower()] if found.use != "text" else cell.lower().split() for cell in map(str, cells)]
    if found.use == "date":
        words = [[_month(cell)] for cell in cells]
    frequent = [word for word, _ in Counter(word for row in words for word in row).most_common(MAX_WORDS)]
    return np.array([[word in row for word in frequent] for row in words], np.float64)


def _month(cell: object) -> str:
    """The month of a date as ingest gives it: ISO 8601, or seconds since 1970."""
    if cell is None or isinstance(cell, str):
        return str(cell)[5:7]
    return f"{datetime.fromtimestamp(int(str(cell)), timezone.utc):%m}"
