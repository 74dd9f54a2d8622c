"""Drift: how far the data are from the previous run's, and the splits from each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup
from tensorflow_metadata.proto.v0 import schema_pb2

from contracts.file_names import SCHEMA_FILE
from metadata.records import ArtifactRecord
from ui.contents import drift, schema, statistics
from ui.contents.drift import ABSOLUTE_DIFFERENCE, JENSEN_SHANNON, L_INFINITY, Measured
from ui.contents.statistics import SplitStatistics
from ui.links import Links
from ui.parts import Column, Details, Heading, Parts, Table, Text
from ui.report import features
from ui.report.source import Source, Surroundings
from ui.texts import Inline, dim, line, link, number, state

TRAIN, EVAL = "train", "eval"
STATISTICS = ("StatisticsGen", "statistics")
EXAMPLES = ("ExampleGen", "examples")
BARS = Markup(
    "<p>The numbers are those of TensorFlow Data Validation: 0 where two distributions are equal, at most 1. The bars"
    " are those of the schema: <code>drift_comparator</code> for drift, <code>skew_comparator</code> for split skew,"
    " which is train against eval; what is asked of the model in service is not compared here.</p>"
)
DEFINITIONS = {
    L_INFINITY: Markup(
        "<dt>L-infinity distance, of texts</dt><dd><code>max<sub>v</sub> |p(v) − q(v)|</code>: the largest"  # noqa: RUF001
        " difference between the shares p and q that a value v has of the values before and of those now.</dd>"
    ),
    JENSEN_SHANNON: Markup(
        "<dt>Jensen-Shannon divergence</dt><dd><code>½ Σ p log₂(p / m) + ½ Σ q log₂(q / m)</code> with"
        " <code>m = (p + q) / 2</code>: over the values of texts; of numbers over the ten equally wide bins of each"
        " histogram, cut at the edges of both, with values spread evenly within a bin. A single value far out widens"
        " the bins, and so can raise the divergence of numbers alone.</dd>"
    ),
    ABSOLUTE_DIFFERENCE: Markup(
        "<dt>Normalized absolute difference, of texts</dt>"
        "<dd><code>max<sub>v</sub> |a(v) − b(v)| / (Σ a + Σ b)</code>: the largest difference between the"  # noqa: RUF001
        " counts a and b of a value, as a share of all of both.</dd>"
    ),
}


@dataclass(frozen=True)
class Comparison:
    """Two sets of rows compared, feature by feature.

    Attributes:
        title: Its heading.
        subject: Which rows are compared with which, as a sentence.
        run_id: The other run; empty if there is none.
        rows: The measures; those over their bars first, then the farthest apart.
        why_not: Why nothing was compared, or empty.
    """

    title: str
    subject: str = ""
    run_id: str = ""
    rows: Sequence[Measured] = ()
    why_not: str = ""


def drift_section(source: Source, surroundings: Surroundings) -> Parts:
    """How far the data are from the previous run's, and the splits from each other.

    Raises:
        ContentError: A file is missing or broken.
    """
    compared = comparisons(source)
    parts = [part for each in compared for part in (Heading(each.title), *distances_shown(each, surroundings.links))]
    return [*parts, formulas(compared)]


def comparisons(source: Source) -> list[Comparison]:
    """Drift, then split skew; empty if the run has no statistics yet.

    Raises:
        ContentError: A file is missing or broken.
    """
    artifact = source.artifact(*STATISTICS)
    if artifact is None:
        return []
    splits = statistics.read_statistics(artifact)
    bars = schema_of(source)
    return [_drift(source, artifact, splits, bars), _split_skew(splits, bars)]


def schema_of(source: Source) -> schema_pb2.Schema | None:
    """The schema of a run; None if it has none (yet)."""
    artifact = source.artifact("SchemaGen", "schema")
    return None if artifact is None else schema.read_schema(artifact.file(SCHEMA_FILE))


def compare_splits(
    before: SplitStatistics, after: SplitStatistics, bars: schema_pb2.Schema | None, run_id: str
) -> Comparison:
    """Compares a split of a run with the same split of another run."""
    subject = f"The {after.name} split ({after.rows:,} rows) against that of run {run_id} ({before.rows:,} rows)."
    return Comparison("Drift", subject, run_id, drift.measure(before, after, bars, "drift_comparator"))


def _drift(
    source: Source, current: ArtifactRecord, splits: dict[str, SplitStatistics], bars: schema_pb2.Schema | None
) -> Comparison:
    earlier = source.before(STATISTICS[0])
    other = None if earlier is None else earlier.artifact(*STATISTICS)
    if earlier is None or other is None:
        return Comparison("Drift", why_not="No run before this one has statistics to compare with.")
    run_id = earlier.run.id
    if current.id == other.id or same_examples(source, earlier):
        why_not = f"Run {run_id} before this one took the very same examples: nothing can have drifted."
        return Comparison("Drift", why_not=why_not)
    if not other.path.exists():
        return Comparison(
            "Drift", why_not=f"The statistics of run {run_id} before this one are not on the disk any more."
        )
    before = statistics.read_statistics(other)
    if TRAIN not in splits or TRAIN not in before:
        return Comparison("Drift", why_not="There is no train split in both runs.")
    return compare_splits(before[TRAIN], splits[TRAIN], bars, run_id)


def same_examples(source: Source, earlier: Source) -> bool:
    """Whether two runs used the same Examples artifact."""
    now, before = source.artifact(*EXAMPLES), earlier.artifact(*EXAMPLES)
    return now is not None and before is not None and now.id == before.id


def _split_skew(splits: dict[str, SplitStatistics], bars: schema_pb2.Schema | None) -> Comparison:
    if TRAIN not in splits or EVAL not in splits:
        return Comparison("Split skew", why_not="There are no train and eval splits to compare.")
    before, after = splits[TRAIN], splits[EVAL]
    subject = f"The eval split ({after.rows:,} rows) against the train split ({before.rows:,} rows) of this run."
    return Comparison("Split skew", subject, "", drift.measure(before, after, bars, "skew_comparator"))


def distances_shown(comparison: Comparison, links: Links) -> Parts:
    """The parts that show how far apart two sets of rows are, or why they were not compared."""
    if comparison.why_not:
        return [Text(comparison.why_not)]
    run_id = comparison.run_id
    elsewhere = link(f"Run {run_id}", links.run(run_id)) if run_id and links.run(run_id) else ""
    return [
        Text(line(comparison.subject, " ", *_in_short(comparison), elsewhere)),
        Table(
            f"{comparison.title} of all features",
            comparison.rows,
            [
                Column("Feature", lambda row: row.feature),
                Column("Measure", lambda row: row.measure),
                Column("Value", lambda row: number(row.value), "number", lambda row: row.value),
                Column("Bar", _bar, "number", lambda row: row.bar),
                Column(
                    "Farthest apart", lambda row: line(row.largest, " ", dim(row.note)) if row.note else row.largest
                ),
                Column("Verdict", _verdict),
            ],
            sortable=True,
            filter="features" if len(comparison.rows) > features.FEW else "",
        ),
    ]


def _in_short(comparison: Comparison) -> list[Inline]:
    over = sum(row.over for row in comparison.rows)
    lost = sum(row.lost for row in comparison.rows)
    bars = sum(row.bar is not None for row in comparison.rows)
    pieces: list[Inline] = []
    if over:
        pieces = [state(f"{over} over the bar", "bad"), " "]
    elif bars > lost:
        subject = "The bar is" if bars == 1 else "The other bars are" if lost else "All bars are"
        pieces = [state(f"{subject} kept", "good"), " "]
    elif not bars:
        pieces = [state("The schema sets no bar", ""), " "]
    return [*pieces, state(f"{lost} cannot be held to the bar", "bad"), " "] if lost else pieces


def _bar(row: Measured) -> Inline:
    return dim("no bar") if row.bar is None else number(row.bar)


def _verdict(row: Measured) -> Inline:
    if row.over:
        return state("over the bar", "bad")
    if row.lost:
        return state("not there", "bad")
    return "" if row.bar is None else state("kept", "good")


def formulas(compared: Sequence[Comparison]) -> Details | None:
    """The definitions of the measures that were used."""
    used = {row.measure for comparison in compared for row in comparison.rows}
    if not used:
        return None
    definitions = [text for measure, text in DEFINITIONS.items() if measure in used]
    return Details("How it is measured", [BARS, line(Markup("<dl>"), *definitions, Markup("</dl>"))])
