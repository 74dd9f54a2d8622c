"""The rows that the model got most wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from metadata.contents.evaluation import Insights, WorstExample
from metadata.report.source import Source, Surroundings

IMAGE = "data:image/"
LONGEST_TEXT = 200
MOST_VALUES = 8


@dataclass(frozen=True)
class Value:
    """What a feature holds in a row.

    Attributes:
        text: As text; empty where it is missing or an image.
        image: A `data:` address, or an empty text.
        number: Whether it is one number.
    """

    text: str
    image: str = ""
    number: bool = False


@dataclass(frozen=True)
class Row:
    """A row of the evaluation split.

    Attributes:
        loss: How wrong the model was.
        label: The truth.
        prediction: What the model gave.
        predicted: What that means; empty where it means nothing more.
        features: In the order of the headings.
    """

    loss: float
    label: Value
    prediction: Value
    predicted: Value
    features: list[Value]


@dataclass(frozen=True)
class WorstExamples:
    """Rows with the highest losses.

    Attributes:
        features: The headings.
        rows: Highest loss first.
        rows_kept: Of how many rows they are the worst.
    """

    features: list[str]
    rows: list[Row]
    rows_kept: int


def read(source: Source, _surroundings: Surroundings) -> WorstExamples | None:
    """Reads them; None where there are none."""
    found = source.insights
    return _shown(found) if found and found.worst else None


def _shown(found: Insights) -> WorstExamples:
    names = list(dict.fromkeys(name for example in found.worst for name in example.features))
    return WorstExamples(names, [_row(example, names) for example in found.worst], found.rows_kept)


def _row(example: WorstExample, names: list[str]) -> Row:
    return Row(
        loss=example.loss,
        label=_value([example.label]),
        prediction=_value(example.prediction if isinstance(example.prediction, list) else [example.prediction]),
        predicted=_value([] if example.predicted is None else [example.predicted]),
        features=[_value(example.features.get(name, [])) for name in names],
    )


def _value(values: list[Any]) -> Value:
    if len(values) == 1 and isinstance(values[0], dict):
        # Nothing but an image of its own may become an address that a browser opens.
        image = str(values[0].get("image", ""))
        return Value("", image) if image.startswith(IMAGE) else Value(_text(values[0]))
    texts = [_text(value) for value in values[:MOST_VALUES]]
    more = [f"… {len(values) - MOST_VALUES} more"] if len(values) > MOST_VALUES else []
    number = len(values) == 1 and isinstance(values[0], int | float) and not isinstance(values[0], bool)
    return Value(", ".join(texts + more), number=number)


def _text(value: Any) -> str:
    if isinstance(value, dict) and "bytes" in value:
        return f"{value['bytes']:,} bytes" if isinstance(value["bytes"], int) else str(value["bytes"])
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.6g}"
    text = str(value)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"
