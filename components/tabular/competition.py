"""Which kind of model suits the data: trees, the network, the linear model, or the mean of several.

Judged on training rows alone: each candidate learns from one part of them and is judged on another. The evaluation
split is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tf_keras

from components.tabular.candidates import Boosted, Candidate, Linear, Logits, Network, Rows, averaged, predicted
from components.tabular.labels import Amount, LabelColumn, SeveralOf
from components.tabular.losses import member_mean
from components.tabular.models import Params
from components.trainer.own_training import Training
from contracts import atomic
from contracts.competition import COMPETITION_FILE, Competition
from contracts.competition import Candidate as Judged
from contracts.errors import TrainingError

MOST_ROWS = 100_000
"""Rows that the candidates are judged by, and learn from, before the winner learns from all."""

FEW_ROWS, VERY_FEW_ROWS = 1_000, 500
"""With fewer rows all of them are judged, in 3 folds or 5, so that the choice is not that of a few."""

HELD_OUT = 0.25
"""The part that is judged where there are more rows."""

RESAMPLES = 300
AVERAGE = "average"


def train(training: Training, label: LabelColumn) -> tf_keras.Model:
    """The training of a recipe for a table: `train` in its model.py.

    Where `trainer.params.model` is `best`, the candidates named by `models` are compared, and the winner is trained on
    all training rows; else that one is trained. The comparison is written to the ModelRun.

    Args:
        training: What model.py is given.
        label: What is predicted.

    Returns:
        The compiled model to export.

    Raises:
        TrainingError: Several labels at once, and another model than the network.
    """
    settings = Params(**training.params)
    winner: str = settings.model
    if isinstance(label, SeveralOf) and winner != "network":
        raise TrainingError(
            f"trainer.params.model is {winner!r}, and {label.column!r} is several labels at once, which the network "
            "alone learns here.",
            "Set trainer.params.model: network; or leave out train in model.py for model: linear.",
        )
    if winner == "best":
        competition = _remembered(training, lambda: compete(training, label, settings))
        for line in competition.described():
            training.log(line)
        winner = competition.winner
    model = _trained(training, label, settings, winner)
    if winner != "network":
        training.compile(model)
    return model


def _remembered(training: Training, run: Callable[[], Competition]) -> Competition:
    """The competition, which a training that was interrupted does not repeat."""
    memory = training.state_dir and training.state_dir / COMPETITION_FILE
    if memory and memory.exists():
        competition = Competition.model_validate_json(memory.read_text(encoding="utf-8"))
    else:
        competition = run()
    text = competition.model_dump_json(indent=2)
    for folder in filter(None, (training.state_dir, training.run_dir)):
        atomic.write_text(folder / COMPETITION_FILE, text)
    return competition


def _trained(training: Training, label: LabelColumn, settings: Params, kind: str) -> tf_keras.Model:
    """A model of a kind that learned from all training rows."""
    if kind == AVERAGE:
        # The network first: what was trained of it is there again after an interruption.
        kinds = sorted(settings.models, key=lambda name: name != "network")
        return averaged([_trained(training, label, settings, name) for name in kinds], training.features)
    if kind == "network":
        return training.fit(training.build(model="network"), model="network")
    training.log(f"Training {kind} on {training.rows():,} rows")
    return _candidate(kind, training, label).fit(_rows(training, settings, label, None))


def _candidate(kind: str, training: Training, label: LabelColumn) -> Candidate:
    if kind == "trees":
        return Boosted(training.features, label, training.settings.seed)
    return Network(training) if kind == "network" else Linear(training, label)


def _rows(training: Training, settings: Params, label: LabelColumn, most: int | None) -> Rows:
    inputs, labels, weights = training.arrays("train", most)
    values = np.asarray(labels).reshape(-1)
    counted = np.ones(len(values)) if weights is None else weights.astype(np.float64)
    return Rows(inputs, values, counted, () if isinstance(label, Amount) else settings.class_weights)


def compete(training: Training, label: LabelColumn, settings: Params) -> Competition:
    """Compares the candidates on training rows.

    Args:
        training: The training.
        label: What is predicted.
        settings: `trainer.params`; `models` are the candidates, and with several their mean is one, too.
    """
    rows = _rows(training, settings, label, MOST_ROWS)
    folds = _folds(rows, isinstance(label, Amount), training.settings.seed)
    judged = np.concatenate([others for _, others in folds])
    logits: dict[str, Logits] = {}
    for kind in settings.models:
        candidate = _candidate(kind, training, label)
        parts = []
        for learned, others in folds:
            parts.append(predicted(candidate.fit(rows.at(learned)), rows.at(others)))
        logits[kind] = np.concatenate(parts)
    if len(logits) > 1:
        logits[AVERAGE] = np.mean(list(logits.values()), axis=0)
    served = {
        kind: member_mean(tf.constant(values[:, np.newaxis, :]), label, settings.class_weights).numpy()
        for kind, values in logits.items()
    }
    return judge(label, rows.label[judged], served, rows.weights[judged], len(folds))


def _folds(rows: Rows, is_amount: bool, seed: int) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """The rows to learn from and those to be judged, in each fold."""
    from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit

    smallest = 2 if is_amount else int(np.unique(rows.label, return_counts=True)[1].min())
    plain = is_amount or smallest < 2
    if len(rows) >= FEW_ROWS:
        kind: Any = ShuffleSplit if plain else StratifiedShuffleSplit
        return list(kind(1, test_size=HELD_OUT, random_state=seed).split(np.zeros(len(rows)), rows.label))
    parts = 5 if len(rows) < VERY_FEW_ROWS else 3
    kind = KFold if plain or smallest < parts else StratifiedKFold
    return list(kind(parts, shuffle=True, random_state=seed).split(np.zeros(len(rows)), rows.label))


def judge(
    label: LabelColumn,
    wanted: npt.NDArray[Any],
    served: Mapping[str, npt.NDArray[Any]],
    weights: npt.NDArray[Any],
    folds: int,
) -> Competition:
    """Compares predictions by the task's main metric, each difference with its interval.

    Rows are resampled for all candidates alike (a paired bootstrap; Efron and Tibshirani, 1993), which shows
    differences far smaller than the intervals of the metrics themselves.

    Args:
        label: What is predicted.
        wanted: Ids of classes, or amounts; (rows, ).
        served: By candidate, (rows, units): probabilities, or amounts.
        weights: How much each row counts; (rows, ).
        folds: For the record.
    """
    metric, higher_is_better, measure = _metric(label, wanted)
    draw = np.random.default_rng(0)
    rows = len(wanted)
    counts = [weights, *(np.bincount(draw.integers(0, rows, rows), minlength=rows) * weights for _ in range(RESAMPLES))]
    values = {kind: measure(scores, counts) for kind, scores in served.items()}
    sign = 1.0 if higher_is_better else -1.0
    ranked = sorted(values, key=lambda kind: -sign * values[kind][0])
    winner, why = _chosen(ranked, {k: _interval(sign * (values[ranked[0]] - values[k])) for k in ranked})
    candidates = []
    for kind in ranked:
        differences = sign * (values[winner] - values[kind])
        low, high = _interval(differences)
        candidates.append(
            Judged(name=kind, value=values[kind][0], ahead=differences[0], ahead_low=float(low), ahead_high=float(high))
        )
    return Competition(
        metric=metric,
        higher_is_better=higher_is_better,
        rows=rows,
        folds=folds,
        candidates=candidates,
        winner=winner,
        why=why,
    )


def _interval(differences: npt.NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.quantile(differences[1:], [0.025, 0.975])
    return float(low), float(high)


def _chosen(ranked: Sequence[str], behind: Mapping[str, tuple[float, float]]) -> tuple[str, str]:
    """The winner, and why.

    Args:
        ranked: The candidates, the best value first.
        behind: How far each is behind the first one: the bounds of the interval.
    """
    first = ranked[0]
    level = [kind for kind in ranked[1:] if behind[kind][0] <= 0]
    if AVERAGE in level:
        return AVERAGE, f"since nothing separates it from {first}, and several kinds of model err less together"
    if level:
        return first, f"the best value, though nothing separates it from {' and '.join(level)}"
    return first, "ahead of all others" if len(ranked) > 1 else "the only one"


Measure = Callable[[npt.NDArray[Any], Sequence[npt.NDArray[Any]]], npt.NDArray[np.float64]]
"""The metric of scores, (rows, units), for each set of rows' counts."""


def _metric(label: LabelColumn, wanted: npt.NDArray[Any]) -> tuple[str, bool, Measure]:
    if isinstance(label, Amount):
        return (
            "RootMeanSquaredError",
            False,
            lambda scores, counts: np.sqrt(_means((scores[:, 0] - wanted) ** 2, counts)),
        )
    if len(label.names) > 2:
        return "SparseCategoricalAccuracy", True, lambda scores, counts: _means(scores.argmax(axis=1) == wanted, counts)
    return "AUC", True, lambda scores, counts: _areas(scores[:, 0], wanted, counts)


def _means(values: npt.NDArray[Any], counts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.float64]:
    return np.array([float(count @ values / count.sum()) for count in counts])


def _areas(
    scores: npt.NDArray[Any], wanted: npt.NDArray[Any], counts: Sequence[npt.NDArray[Any]]
) -> npt.NDArray[np.float64]:
    """Areas under the ROC curve, ties counted half; 0.5 where only one class was drawn."""
    order = np.argsort(scores, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(scores[order]) > 0])
    positive = wanted[order] == 1
    areas = []
    for count in counts:
        ordered = count[order]
        right = np.add.reduceat(ordered * positive, starts)
        wrong = np.add.reduceat(ordered * ~positive, starts)
        pairs = right.sum() * wrong.sum()
        areas.append(float(right @ (wrong.cumsum() - wrong / 2) / pairs) if pairs else 0.5)
    return np.array(areas)
