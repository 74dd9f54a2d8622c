"""How good the model is, beyond its metrics: what a report shows of an evaluation, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from components.evaluation import curves, scored, worst
from components.evaluation.kept import Kept
from components.evaluation.scored import Scored


def describe(kept: Kept, class_names: Sequence[str] | None = None) -> dict[str, Any]:
    """What is known from the rows that were kept.

    Args:
        kept: The evaluation's rows.
        class_names: The classes in the order of their ids, where they have names.

    Returns:
        `task`: `binary`, `multiclass`, `regression`, or `other` where labels and predictions are of no kind that is
        known here: all below `rows_kept` is then None or empty. `rows`: of the evaluation; `rows_kept`: those that the
        rest is computed from. `classes`: names or ids as text. `calibration`, `calibration_error`, `confusion`,
        `scores`, `roc`, `precision_recall`: see `curves`; None where the task has no such thing. `worst`: see
        `worst.rows`.
    """
    rows, sound = scored.score(kept)
    classes = _classes(rows, class_names)
    binary = rows.task == "binary"
    bins = curves.calibration(rows) if rows.task != "other" else []
    return {
        "task": rows.task,
        "rows": kept.rows,
        "rows_kept": len(sound.labels),
        "classes": classes,
        "calibration": bins,
        "calibration_error": curves.calibration_error(bins) if classes else None,
        "confusion": curves.confusion(rows, classes) if classes else None,
        "scores": curves.scores(rows) if binary else None,
        "roc": curves.roc(rows) if binary else None,
        "precision_recall": curves.precision_recall(rows) if binary else None,
        "worst": worst.rows(kept, rows.task, classes),
    }


def _classes(rows: Scored, names: Sequence[str] | None) -> list[str] | None:
    if rows.task not in {"binary", "multiclass"}:
        return None
    count = rows.predictions.shape[1] if rows.task == "multiclass" else 2
    return list(names) if names and len(names) == count else [str(number) for number in range(count)]
