"""Sums over the rows of many batches, by slice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from components.evaluation.columnar.scores import SCORES
from components.evaluation.columnar.slices import Groups, SliceKey
from components.evaluation.columnar.sums import Histogram, Judged, MetricsDict, Sums, sums_of
from components.evaluation.levels import Levels
from components.evaluation.predictions import Array

MAX_BINS = 2**20
"""How many bins may wait to be merged, if not more are merged already: so each is merged a few times only."""

Computation: TypeAlias = Any
"""TFMA's MetricComputation."""


@dataclass(frozen=True)
class Binned:
    """Sums by slice and bin.

    Attributes:
        places: Slice times the number of bins plus bin; ascending, int64 [n].
        sums: float64 [n, sums].
    """

    places: Array
    sums: Array


@dataclass(frozen=True)
class Part:
    """What one batch adds.

    Attributes:
        keys: The slices that it has rows of.
        sums: float64 [slices, sums of all plain computations].
        binned: One for each histogram.
        scored: One for each prediction of a model that TFMA has a histogram of.
    """

    keys: list[SliceKey]
    sums: Array
    binned: list[Binned]
    scored: list[Binned]


@dataclass(frozen=True)
class About:
    """What a computation of TFMA's is about: the predictions of a model, and whether the rows' weights count."""

    model: str
    weighted: bool

    def chosen(self, judged: Mapping[str, Judged]) -> Judged:
        """The predictions to add up."""
        # What is about the rows alone, such as their number, names no model.
        of_model = judged.get(self.model) or next(iter(judged.values()))
        return of_model if self.weighted else replace(of_model, weights=np.ones(len(of_model.weights)))


class Adder:
    """Adds up what computations of TFMA need.

    Args:
        computations: TFMA's, those that need rows.

    Raises:
        NotColumnar: One is not known here.
    """

    def __init__(self, computations: Sequence[Computation]) -> None:
        every = [(_about(computation), sums_of(computation.combiner)) for computation in computations]
        self._plain = [(about, sums) for about, sums in every if isinstance(sums, Sums)]
        self._histograms = [(about, sums) for about, sums in every if isinstance(sums, Histogram)]
        self._scored = list(dict.fromkeys(about for about, _ in self._histograms))

    def part(self, judged: Mapping[str, Judged], groups: Groups) -> Part:
        """What a batch adds; several batches may be added up at once.

        Args:
            judged: The predictions of each model.
            groups: The slices.

        Raises:
            NotColumnar: Labels or predictions are of a kind that is not known here.
        """
        slices = len(groups.keys)
        columns = [column for about, sums in self._plain for column in sums.columns(about.chosen(judged))]
        sums = [np.bincount(groups.slices, column[groups.rows], slices) for column in columns]
        binned = [_binned(histogram, about.chosen(judged), groups) for about, histogram in self._histograms]
        scored = [_binned(SCORES, about.chosen(judged), groups) for about in self._scored]
        return Part(groups.keys, np.stack(sums, axis=1), binned, scored)

    def total(self) -> Totals:
        """Sums over no rows yet."""
        return Totals([sums for _, sums in self._plain], [histogram for _, histogram in self._histograms], self._scored)


class Totals:
    """Sums over all rows so far; see `Adder.total`."""

    def __init__(self, plain: Sequence[Sums], histograms: Sequence[Histogram], scored: Sequence[About]) -> None:
        self._plain = plain
        self._positions: dict[SliceKey, int] = {}
        self._sums: Array = np.zeros((0, sum(sums.size for sums in plain)))
        self._histograms = [_Merging(histogram) for histogram in histograms]
        self._scores = {about: _Merging(SCORES) for about in scored}

    def add(self, part: Part) -> None:
        """Adds what a batch adds. In the same order of batches, the sums are the same to the last digit."""
        positions = np.array([self._positions.setdefault(key, len(self._positions)) for key in part.keys], np.int64)
        new = len(self._positions) - len(self._sums)
        self._sums = np.concatenate([self._sums, np.zeros((new, self._sums.shape[1]))])
        self._sums[positions] += part.sums
        merging = [*self._histograms, *self._scores.values()]
        for waiting, binned in zip(merging, [*part.binned, *part.scored], strict=True):
            waiting.add(binned, positions)

    def metrics(self) -> Iterator[tuple[SliceKey, MetricsDict]]:
        """What TFMA's combiners make of the sums, slice by slice."""
        ends = np.cumsum([sums.size for sums in self._plain])[:-1]
        for key, position in self._positions.items():
            metrics: MetricsDict = {}
            for sums, totals in zip(self._plain, np.split(self._sums[position], ends), strict=True):
                metrics |= sums.output(totals)
            for merging in self._histograms:
                metrics |= merging.histogram.output(*merging.of_slice(position))
            yield key, metrics

    def levels(self, model: str) -> dict[SliceKey, Levels]:
        """The scores of a model by slice, where TFMA counts them for areas under curves."""
        found = {
            key: SCORES.output(*merging.of_slice(place))
            for about, merging in self._scores.items()
            if about.model == model
            for key, place in self._positions.items()
        }
        return {key: levels["levels"] for key, levels in found.items() if levels}


@dataclass
class _Merging:
    """Bins that wait to be merged.

    Attributes:
        histogram: Theirs.
        parts: The bins; what is merged already comes first.
        dropped_bits: How many of the lowest bits of a bin's number no longer count.
    """

    histogram: Histogram
    parts: list[Binned] = field(default_factory=list)
    dropped_bits: int = 0

    def add(self, binned: Binned, positions: Array) -> None:
        """Adds the bins of a batch; `positions` are those of its slices among all."""
        slices, bins = np.divmod(binned.places, self.histogram.num_bins)
        self.parts.append(Binned(positions[slices] * self.histogram.num_bins + bins, binned.sums))
        if sum(len(part.places) for part in self.parts[1:]) > max(MAX_BINS, len(self.parts[0].places)):
            self._merge()

    def of_slice(self, position: int) -> tuple[Array, Array]:
        """The bins that the rows of a slice are in, ascending, and the sums in each."""
        merged = self._merge()
        lowest = position * self.histogram.num_bins
        first, end = np.searchsorted(merged.places, [lowest, lowest + self.histogram.num_bins])
        return merged.places[first:end] - lowest, merged.sums[first:end]

    def _merge(self) -> Binned:
        if len(self.parts) > 1:
            self.parts = [self._rounded(_merged(self.parts))]
            while self.histogram.most_kept and len(self.parts[0].places) > self.histogram.most_kept:
                self.dropped_bits += 1
                self.parts = [self._rounded(self.parts[0])]
        return self.parts[0]

    def _rounded(self, binned: Binned) -> Binned:
        if not self.dropped_bits:
            return binned
        return _added(binned.places >> self.dropped_bits << self.dropped_bits, binned.sums)


def _about(computation: Computation) -> About:
    key = computation.keys[0]
    return About(key.model_name, bool(key.example_weighted))


def _binned(histogram: Histogram, judged: Judged, groups: Groups) -> Binned:
    places = groups.slices * histogram.num_bins + histogram.bins(judged)[groups.rows]
    return _added(places, np.stack([column[groups.rows] for column in histogram.columns(judged)], axis=1))


def _merged(parts: Sequence[Binned]) -> Binned:
    return _added(np.concatenate([part.places for part in parts]), np.concatenate([part.sums for part in parts]))


def _added(places: Array, values: Array) -> Binned:
    """The sums of the values of each place."""
    used, inverse = np.unique(places, return_inverse=True)
    sums = [np.bincount(inverse, column, len(used)) for column in values.T]
    return Binned(used, np.stack(sums, axis=1))
