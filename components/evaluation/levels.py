"""The rows of an evaluation as the weights of both classes at each score: all that areas under curves depend on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from components.evaluation.predictions import Array


@dataclass(frozen=True)
class Levels:
    """The scores of a model in a group of rows.

    Attributes:
        scores: Different ones, ascending, float32 [levels].
        above: The weight of the rows of class 1 with each score, float64 [levels].
        below: That of the rows of class 0.
    """

    scores: Array
    above: Array
    below: Array

    def rows(self) -> tuple[Array, Array, Array]:
        """Rows with the same areas under curves: whether each is of class 1, its score, and its weight above 0."""
        positive = np.repeat([True, False], len(self.scores))
        weights = np.concatenate([self.above, self.below])
        weighty = weights > 0
        return positive[weighty], np.tile(self.scores, 2)[weighty], weights[weighty]


LevelsBySlice: TypeAlias = Mapping[tuple[tuple[tuple[str, str], ...], bool], Levels]
"""By the key of a slice, its values as text, and whether the scores are the baseline's."""
