"""Drift: how far the data are from those of the run before, and the splits from each other."""

from __future__ import annotations

from dataclasses import dataclass

from tensorflow_metadata.proto.v0 import schema_pb2

from metadata.contents import drift, schema, statistics
from metadata.contents.drift import Comparator, Measured
from metadata.contents.places import SCHEMA_FILE
from metadata.contents.statistics import SplitStatistics
from metadata.records import ArtifactRecord
from metadata.report.source import Source, Surroundings

TRAIN, EVAL = "train", "eval"
STATISTICS = ("StatisticsGen", "statistics")
EXAMPLES = ("ExampleGen", "examples")


@dataclass(frozen=True)
class Comparison:
    """Two sets of rows compared, feature by feature.

    Attributes:
        title: What it is called.
        what: Which rows are compared with which, as a sentence.
        run_id: The other run, or an empty text where there is none.
        rows: The measures; what is over its bar first, then the farthest apart.
        why_not: Why nothing was compared; empty where it was.
    """

    title: str
    what: str
    run_id: str
    rows: list[Measured]
    why_not: str = ""

    @property
    def over(self) -> int:
        """How many are over their bar."""
        return sum(row.over for row in self.rows)

    @property
    def lost(self) -> int:
        """How many have a bar, and nothing that could be held to it."""
        return sum(row.lost for row in self.rows)

    @property
    def measures(self) -> set[str]:
        """The names of the measures that are among them."""
        return {row.measure for row in self.rows}

    @property
    def bars(self) -> int:
        """How many have a bar."""
        return sum(row.bar is not None for row in self.rows)


@dataclass(frozen=True)
class Drift:
    """Drift and split skew.

    Attributes:
        comparisons: Drift, then split skew.
    """

    comparisons: list[Comparison]

    @property
    def measures(self) -> set[str]:
        """The names of the measures that are among them."""
        return {name for comparison in self.comparisons for name in comparison.measures}


def read(source: Source, surroundings: Surroundings) -> Drift | None:
    """Reads it; None where the run has no statistics yet.

    Raises:
        ContentError: A file is missing or broken.
    """
    made = source.artifact(*STATISTICS)
    if made is None:
        return None
    splits = statistics.read(made)
    bars = schema_of(source)
    return Drift([_drift(source, made, splits, bars), _split_skew(splits, bars)])


def schema_of(source: Source) -> schema_pb2.Schema | None:
    """The schema of a run, or None where it has none (yet)."""
    artifact = source.artifact("SchemaGen", "schema")
    return None if artifact is None else schema.read(artifact.file(SCHEMA_FILE))


def between(before: SplitStatistics, after: SplitStatistics, bars: schema_pb2.Schema | None, run_id: str) -> Comparison:
    """How far a split of a run is from the same split of another run."""
    what = f"The {after.name} split ({after.rows:,} rows) against that of run {run_id} ({before.rows:,} rows)."
    return _comparison("Drift", what, run_id, before, after, bars, "drift_comparator")


def _drift(
    source: Source, made: ArtifactRecord, splits: dict[str, SplitStatistics], bars: schema_pb2.Schema | None
) -> Comparison:
    earlier = source.before(STATISTICS[0])
    other = None if earlier is None else earlier.artifact(*STATISTICS)
    if earlier is None or other is None:
        return Comparison("Drift", "", "", [], "No run before this one has statistics to compare with.")
    if made.id == other.id or same_examples(source, earlier):
        why_not = f"Run {earlier.run.id} before this one took the very same examples: nothing can have drifted."
        return Comparison("Drift", "", earlier.run.id, [], why_not)
    if not other.path.exists():
        why_not = f"The statistics of run {earlier.run.id} before this one are not on the disk any more."
        return Comparison("Drift", "", earlier.run.id, [], why_not)
    before = statistics.read(other)
    if TRAIN not in splits or TRAIN not in before:
        return Comparison("Drift", "", earlier.run.id, [], "There is no train split in both runs.")
    return between(before[TRAIN], splits[TRAIN], bars, earlier.run.id)


def same_examples(source: Source, earlier: Source) -> bool:
    """Whether two runs took the very same Examples artifact."""
    now, before = source.artifact(*EXAMPLES), earlier.artifact(*EXAMPLES)
    return now is not None and before is not None and now.id == before.id


def _split_skew(splits: dict[str, SplitStatistics], bars: schema_pb2.Schema | None) -> Comparison:
    title = "Split skew"
    if TRAIN not in splits or EVAL not in splits:
        return Comparison(title, "", "", [], "There are no train and eval splits to compare.")
    before, after = splits[TRAIN], splits[EVAL]
    what = f"The eval split ({after.rows:,} rows) against the train split ({before.rows:,} rows) of this run."
    return _comparison(title, what, "", before, after, bars, "skew_comparator")


def _comparison(
    title: str,
    what: str,
    run_id: str,
    before: SplitStatistics,
    after: SplitStatistics,
    bars: schema_pb2.Schema | None,
    comparator: Comparator,
) -> Comparison:
    return Comparison(title, what, run_id, drift.measure(before, after, bars, comparator))
