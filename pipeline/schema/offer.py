"""The changes that a run's data call for in a recipe's schema, from the files that the run left."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2, statistics_pb2

from contracts.data_verdict import DATA_SET
from contracts.errors import MillraceError
from contracts.file_names import ANOMALIES_FILE, SCHEMA_FILE, STATISTICS_FILE
from contracts.near_names import did_you_mean
from metadata.queries import Queries
from metadata.records import ArtifactRecord, RunRecord
from pipeline.plan import project
from pipeline.plan.preflight import UNUSED_STAGES, parse_schema
from pipeline.plan.recipe import Recipe
from pipeline.schema import changes, editing, reviewed_files
from pipeline.schema.changes import Proposal
from pipeline.schema.data import Rows, read_columns
from pipeline.schema.rules import Data, propose_changes

_Reason = anomalies_pb2.AnomalyInfo
COVERED = frozenset(
    {
        _Reason.UNEXPECTED_DATA_TYPE,
        _Reason.ENUM_TYPE_UNEXPECTED_STRING_VALUES,
        _Reason.FEATURE_TYPE_HIGH_NUMBER_VALUES,
        _Reason.FEATURE_TYPE_LOW_NUMBER_VALUES,
        _Reason.FEATURE_TYPE_LOW_FRACTION_PRESENT,
        _Reason.FEATURE_TYPE_LOW_NUMBER_PRESENT,
        _Reason.FEATURE_TYPE_NOT_PRESENT,
        _Reason.FLOAT_TYPE_BIG_FLOAT,
        _Reason.FLOAT_TYPE_SMALL_FLOAT,
        _Reason.INT_TYPE_BIG_INT,
        _Reason.INT_TYPE_SMALL_INT,
        _Reason.INVALID_FEATURE_SHAPE,
        _Reason.SCHEMA_MISSING_COLUMN,
        _Reason.SCHEMA_NEW_COLUMN,
    }
)
"""The anomalies for which there is a rule (see `rules`); TFDV's descriptions of others are passed on."""


def run_schema_text(store: Queries, run: RunRecord) -> str:
    """Reads the text of the schema that a run used.

    Raises:
        MillraceError: The run has none, or it is gone.
    """
    schema = _outputs(store, run).get("schema")
    path = schema.file(SCHEMA_FILE) if schema else None
    if path is None or not path.exists():
        raise _missing(run, "schema", schema)
    return path.read_text(encoding="utf-8")


def _read_data(store: Queries, run: RunRecord, absent: Mapping[str, str], schema: schema_pb2.Schema) -> Data:
    """Reads what a run recorded about its data.

    Raises:
        MillraceError: The run has no statistics, or they are gone.
    """
    used = editing.parse_schema(run_schema_text(store, run))
    outputs = _outputs(store, run)
    statistics, examples = outputs.get("statistics"), outputs.get("examples")
    by_split = {path.parent.name.removeprefix("Split-"): path for path in _split_files(statistics, STATISTICS_FILE)}
    if not by_split:
        raise _missing(run, "statistics", statistics)
    parse = statistics_pb2.DatasetFeatureStatisticsList.FromString
    data_sets = {split: parse(path.read_bytes()).datasets[0] for split, path in by_split.items()}
    return Data(
        columns=read_columns(data_sets),
        num_rows={split: int(data_set.num_examples) for split, data_set in data_sets.items()},
        rows=Rows(_split_files(examples, "*.gz")),
        absent=absent,
        anomalies=_anomalies(outputs.get("anomalies"), used, schema),
    )


def _missing(run: RunRecord, name: str, artifact: ArtifactRecord | None) -> MillraceError:
    problem = f"has no {name}" if artifact is None else f"has no {name} any more: {artifact.uri} is gone"
    return MillraceError(f"run {run.id} {problem}.", "Name another run with --run.")


def _outputs(store: Queries, run: RunRecord) -> dict[str, ArtifactRecord]:
    outputs = store.outputs_of(node.id for node in run.nodes if node.succeeded)
    return {name: artifacts[0] for by_name in outputs.values() for name, artifacts in by_name.items()}


def _split_files(artifact: ArtifactRecord | None, pattern: str) -> Sequence[Path]:
    return sorted(artifact.path.glob(f"Split-*/{pattern}")) if artifact else []


def _anomalies(
    artifact: ArtifactRecord | None, used: schema_pb2.Schema, now: schema_pb2.Schema
) -> Mapping[str, tuple[str, ...]]:
    """TFDV's descriptions that no rule covers, of features whose schema has not changed since the run."""
    before = {feature.name: feature for feature in used.feature}
    after = {feature.name: feature for feature in now.feature}
    # Dictionaries, so that an anomaly in several splits is listed once, in order.
    descriptions: dict[str, dict[str, None]] = {}
    for path in _split_files(artifact, ANOMALIES_FILE):
        anomalies = anomalies_pb2.Anomalies.FromString(path.read_bytes())
        if anomalies.HasField("dataset_anomaly_info"):
            descriptions.setdefault(DATA_SET, {})[anomalies.dataset_anomaly_info.description] = None
        for name, info in anomalies.anomaly_info.items():
            if name in before and before[name] == after.get(name):
                uncovered = {reason.description: None for reason in info.reason if reason.type not in COVERED}
                descriptions.setdefault(name, {}).update(uncovered)
    return {name: tuple(texts) for name, texts in descriptions.items()}


_INFERRED = """\
# The {recipe} recipe's schema. It began as what TFDV inferred from the data of {run};
# review it, for from now on data that differ stop the run.

"""


@dataclass(frozen=True)
class Offer:
    """The proposals for a schema.

    Attributes:
        path: Where the curated schema is, or will be.
        run: The run whose data were examined.
        before: The curated schema's text; None if there is none yet.
        text: The text that the proposals change: the curated schema's, or the inferred one's.
        proposals: In the schema's order.
        rejected: The features for which something is left out because it was rejected before.
    """

    path: Path
    run: str
    before: str | None
    text: str
    proposals: Sequence[Proposal]
    rejected: Sequence[str]

    @property
    def digest(self) -> str:
        """A short digest by which a later command can tell whether the schema is still the same."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:8]

    def chosen(self, names: Sequence[str]) -> list[Proposal]:
        """The proposals for these features.

        Raises:
            MillraceError: There is none for one of them.
        """
        by_name = {proposal.feature: proposal for proposal in self.proposals}
        for name in names:
            if name not in by_name:
                hint = did_you_mean(name, by_name)
                raise MillraceError(f"nothing is proposed for {name!r} by the data of {self.run}. {hint}")
        return [by_name[name] for name in dict.fromkeys(names)]

    def text_with(self, accepted: Sequence[Proposal]) -> str:
        """The schema's text with these proposals."""
        return editing.edit_text(self.text, changes.apply_changes(editing.parse_schema(self.text), accepted))

    def diff(self, accepted: Sequence[Proposal]) -> list[str]:
        """The lines of a unified diff from the curated schema to the one with these proposals."""
        shown = project.relative_path(self.path)
        before, after = (self.before or "").splitlines(), self.text_with(accepted).splitlines()
        origin = "/dev/null" if self.before is None else shown
        return list(difflib.unified_diff(before, after, origin, shown, lineterm=""))


def make_offer(store: Queries, recipe: Recipe, run: RunRecord, look_at_files: bool) -> Offer:
    """Compares the data of a run with a recipe's schema.

    Args:
        store: Where the run is recorded.
        recipe: The recipe.
        run: One of its runs.
        look_at_files: Whether a required column that the current data files lack counts as gone: a run on them would
            stop before there are statistics.

    Raises:
        MillraceError: The run left no data to compare, or the schema cannot be read.
    """
    path = recipe.schema_path
    before = reviewed_files.reviewed_text(path)
    schema = None if before is None else parse_schema(before, path)
    absent = _absent(recipe, schema) if look_at_files and schema is not None else {}
    text = before
    if text is None:
        text = _INFERRED.format(recipe=recipe.name, run=run.id) + run_schema_text(store, run)
    current = schema or editing.parse_schema(text)
    data = _read_data(store, run, absent, current)
    rejected = reviewed_files.read_rejections(path.with_name(reviewed_files.REJECTED_FILE))
    proposals = propose_changes(current, data, rejected)
    keys = {proposal.feature: proposal.keys for proposal in proposals}
    whole = propose_changes(current, data, {})
    left_out = [proposal.feature for proposal in whole if proposal.keys != keys.get(proposal.feature, ())]
    return Offer(path, run.id, before, text, proposals, left_out)


def _absent(recipe: Recipe, schema: schema_pb2.Schema) -> Mapping[str, str]:
    inputs = recipe.find_inputs()
    # Imported here because it imports pyarrow, which takes longer than all of `--help`.
    from components.example_gen import sources

    columns = set(sources.columns_of(inputs))
    names = (feature.name for feature in schema.feature if feature.lifecycle_stage not in UNUSED_STAGES)
    return {name: project.relative_path(inputs.files[0]) for name in names if name not in columns}
