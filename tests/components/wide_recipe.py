"""A recipe of forty columns of numbers, some of them integers, with gaps, or taken by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_transform as tft

from components.tabular.features import Categories, Numbers, transformed
from components.tabular.labels import Classes
from components.tabular.tensors import as_float

FLOATS = [f"float{number}" for number in range(34)]
INTEGERS = [f"integer{number}" for number in range(4)]
REQUIRED, ALONE, LABEL = "required", "alone", "label"
TOGETHER = [*FLOATS, *INTEGERS, REQUIRED]
COLUMNS = [Numbers([*INTEGERS, *FLOATS, REQUIRED, ALONE]), Categories(["word"])]

_OPTIONAL = "presence { min_count: 1 } value_count { min: 1 max: 1 }"
_ALWAYS = "presence { min_fraction: 1.0 min_count: 1 } shape { dim { size: 1 } }"
SCHEMA = "\n".join(
    [
        *(f'feature {{ name: "{name}" type: FLOAT {_OPTIONAL} }}' for name in FLOATS),
        *(f'feature {{ name: "{name}" type: INT {_OPTIONAL} }}' for name in [*INTEGERS, ALONE]),
        f'feature {{ name: "word" type: BYTES {_OPTIONAL} }}',
        f'feature {{ name: "{REQUIRED}" type: INT {_ALWAYS} }}',
        f'feature {{ name: "{LABEL}" type: BYTES {_ALWAYS} not_in_environment: "SERVING" }}',
        'default_environment: "TRAINING" default_environment: "SERVING"',
    ]
)


def rows(seed: int, number: int) -> list[dict[str, Any]]:
    """Rows of which every tenth cell is missing."""
    draw = np.random.default_rng(seed)

    def cell(value: Any) -> Any:
        return None if draw.random() < 0.1 else value

    return [
        {name: cell(float(draw.normal())) for name in FLOATS}
        | {name: cell(int(draw.integers(-9, 9))) for name in [*INTEGERS, ALONE]}
        | {"word": cell("red" if draw.random() < 0.4 else "blue")}
        | {REQUIRED: int(draw.integers(5)), LABEL: "yes" if draw.random() < 0.5 else "no"}
        for _ in range(number)
    ]


TRAIN, EVAL = rows(1, 120), rows(2, 30)


def preprocessing_fn(inputs: Mapping[str, Any]) -> dict[str, tf.Tensor]:
    """The features of a table, and one column by itself as well."""
    alone = tft.scale_to_0_1(as_float(inputs[ALONE]))
    return {**transformed(inputs, COLUMNS, Classes(LABEL, ["no", "yes"])), "alone": tf.where(alone == alone, alone, 0)}
