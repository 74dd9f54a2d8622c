"""Splits by time: older rows to learn from, newer ones to be judged on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from components.example_gen.contract import Batch
from components.example_gen.conversion import iso_seconds
from components.example_gen.encoding import Column
from components.example_gen.kinds import Kind
from components.example_gen.settings import TimeSplitSettings
from contracts.errors import DataError
from contracts.near_names import did_you_mean

Moments = npt.NDArray[np.float64]


class TimeSplit:
    """Places rows by their moments.

    Args:
        settings: `data.split_by_time`.
    """

    def __init__(self, settings: TimeSplitSettings) -> None:
        self.column, self.starts = settings.column, settings.starts
        self.moments = np.array(settings.moments, np.float64)

    def check_column(self, kinds: Mapping[str, Kind]) -> None:
        """Checks that the data have the column, and that it can hold moments.

        Raises:
            DataError: They do not, or it holds something else.
        """
        if self.column not in kinds:
            raise DataError(
                f"data.split_by_time.column is {self.column!r}, which the data do not have. "
                f"{did_you_mean(self.column, list(kinds))}",
                "Correct data.split_by_time.",
            )
        if kinds[self.column] is Kind.BYTES and not any(isinstance(start, str) for start in self.starts.values()):
            raise DataError(
                f"data.split_by_time.starts are numbers, {dict(self.starts)}, and column {self.column!r} holds text.",
                f"Start the splits at dates, such as {{{next(iter(self.starts))}: 2024-06-01}}.",
            )

    def unplaced(self, batch: Batch) -> Iterator[tuple[int, str, str]]:
        """Yields the rows that belong to no split, since they have no moment, with the column and the reason."""
        column = _column(batch, self.column)
        for row in np.flatnonzero(np.isnan(self._moments_of(batch))):
            start, end = column.offsets[row : row + 2]
            if column.values is None or end == start:
                reason = "found nothing"
            elif end > start + 1:
                reason = f"found {end - start} values"
            else:
                text = column.values[int(start)].as_py()
                reason = f"found {text.decode('utf-8', 'replace') if isinstance(text, bytes) else text!r}"
            yield int(row), self.column, f"{reason}, expected a moment that data.split_by_time can place"

    def places(self, batch: Batch) -> npt.NDArray[np.int64]:
        """The split of each row, by its position in `data.splits`: (rows,)."""
        return np.searchsorted(self.moments, self._moments_of(batch), side="right").astype(np.int64)

    def _moments_of(self, batch: Batch) -> Moments:
        """(rows,), NaN where a row has no value, or several, or none that is a moment."""
        column = _column(batch, self.column)
        moments = np.full(len(column.offsets) - 1, np.nan)
        if column.values is None:
            return moments
        if column.kind is Kind.BYTES:
            known = iso_seconds(column.values.cast(pa.string()))
        else:
            known = column.values.to_numpy(zero_copy_only=False).astype(np.float64)
        single = np.diff(column.offsets) == 1
        moments[single] = known[column.offsets[:-1][single]]
        moments[np.isinf(moments)] = np.nan
        return moments


def _column(batch: Batch, name: str) -> Column:
    return next(column for column in batch.columns if column.name == name)
