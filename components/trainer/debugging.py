"""`trainer.debug`: finds the feature, the row and the operation with which training goes wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from components.errors import TrainingError
from components.trainer.features import Feature
from components.trainer.inputs import Split


def check_values(split: Split, files: Sequence[str]) -> None:
    """Looks at every value of a split.

    Raises:
        TrainingError: A number is NaN or infinite, or an id is outside its feature's range; names the feature, the row
            (counted from 0 over all files) and the value.
    """
    layout = split.layout
    row = 0
    for rows in split.chunks():
        for feature in layout.features:
            _check_feature(feature, rows[feature.name].numpy(), row, files)
        for name in filter(None, (layout.label, layout.sample_weight)):
            _check_finite(name, rows[name].numpy(), row, files)
        row += len(rows[layout.label])


@contextmanager
def checked_numerics(active: bool) -> Iterator[None]:
    """Lets the first operation that gives a NaN or an infinity end the training, if `active`.

    Raises:
        TrainingError: There was one; the message names the operation and the line of code that made it.
    """
    if not active:
        yield
        return
    tf.debugging.enable_check_numerics()
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        raise TrainingError(f"Training met a value that is no number:\n{error.message}") from error
    finally:
        tf.debugging.disable_check_numerics()


def _check_feature(feature: Feature, values: npt.NDArray[Any], first_row: int, files: Sequence[str]) -> None:
    _check_finite(feature.name, values, first_row, files)
    if feature.num_categories is None:
        return
    wrong = (values < 0) | (values >= feature.num_categories)
    if wrong.any():
        index = tuple(np.argwhere(wrong)[0])
        raise TrainingError(
            f"The feature {feature.name!r} is {values[index]} in row {first_row + index[0]} of {_shown(files)}, "
            f"expected an id from 0 to {feature.num_categories - 1}.",
            "Look at how preprocessing_fn makes it.",
        )


def _check_finite(name: str, values: npt.NDArray[Any], first_row: int, files: Sequence[str]) -> None:
    if not np.issubdtype(values.dtype, np.floating) or np.isfinite(values).all():
        return
    index = tuple(np.argwhere(~np.isfinite(values))[0])
    raise TrainingError(
        f"The feature {name!r} is {values[index]} in row {first_row + index[0]} of {_shown(files)}, "
        "expected a finite number.",
        "Fill in what is missing in preprocessing_fn.",
    )


def _shown(files: Sequence[str]) -> str:
    return files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
