"""One more stage among TFMA's extractors: it hands every batch on as it is, and writes on the way what is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
from apache_beam.transforms.combiners import TupleCombineFn


@dataclass(frozen=True)
class Keeper:
    """What to keep. All of it goes to Beam's workers: no part may hold what only this process has.

    Attributes:
        read: From a batch of TFMA's extracts to what is kept of it.
        merge: Puts such parts together.
        write: Writes the whole to a file.
    """

    read: Callable[[Mapping[str, Any]], Any]
    merge: beam.CombineFn
    write: Callable[[Any], None]


class Keep(beam.PTransform):
    """Keeps several things in one stage: at the size of the recipes here a stage costs more than what it does.

    Args:
        keepers: What to keep.
    """

    def __init__(self, keepers: Sequence[Keeper]) -> None:
        super().__init__()
        self._keepers = tuple(keepers)

    def expand(self, extracts: beam.PCollection) -> beam.PCollection:
        _ = (
            extracts
            | "Read" >> beam.Map(_read, self._keepers)
            | "Merge" >> beam.CombineGlobally(TupleCombineFn(*(one.merge for one in self._keepers))).without_defaults()
            | "Write" >> beam.Map(_write, self._keepers)
        )
        return extracts


def _read(batch: Mapping[str, Any], keepers: Sequence[Keeper]) -> tuple[Any, ...]:
    return tuple(keeper.read(batch) for keeper in keepers)


def _write(merged: Sequence[Any], keepers: Sequence[Keeper]) -> None:
    for keeper, whole in zip(keepers, merged, strict=True):
        keeper.write(whole)
