"""The files of a run that say what its data are like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2, statistics_pb2

from components.errors import MillraceError
from metadata.queries import Queries
from metadata.records import ArtifactRecord, RunRecord
from pipeline.schema_changes import editing
from pipeline.schema_changes.columns import columns
from pipeline.schema_changes.rows import Rows
from pipeline.schema_changes.rules import DATA_SET, Data

STATISTICS_FILE = "FeatureStats.pb"
ANOMALIES_FILE = "SchemaDiff.pb"
SCHEMA_FILE = "schema.pbtxt"

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
"""The anomalies for which there is a rule (see `rules`); what TFDV says of others is passed on."""


@dataclass(frozen=True)
class Evidence:
    """What a run left.

    Attributes:
        run: The run's id.
        schema_text: The schema that it used.
        data: What its data are like.
    """

    run: str
    schema_text: str
    data: Data


def of(store: Queries, run: RunRecord, schema: schema_pb2.Schema | None, absent: Mapping[str, str]) -> Evidence:
    """What a run left of its data.

    Args:
        store: Where the run is recorded.
        run: The run.
        schema: The schema as it is now; None for the run's own.
        absent: Columns that the files of today lack, with where they were looked for.

    Raises:
        MillraceError: It came to no statistics, or they are gone.
    """
    made = _made(store, run)
    schema_text = schema_of(store, run)
    if "statistics" not in made:
        raise _nothing(run, "statistics", None)
    paths = _of_splits(made["statistics"].path, STATISTICS_FILE)
    if not paths:
        raise _nothing(run, "statistics", made["statistics"])
    statistics = {path.parent.name.removeprefix("Split-"): _statistics(path) for path in paths}
    examples = made["examples"].path if "examples" in made else None
    return Evidence(
        run=run.id,
        schema_text=schema_text,
        data=Data(
            columns=columns(statistics),
            num_rows={split: int(found.num_examples) for split, found in statistics.items()},
            rows=Rows(_of_splits(examples, "*.gz") if examples and examples.exists() else []),
            absent=absent,
            anomalies=_anomalies(made.get("anomalies"), editing.parse(schema_text), schema),
        ),
    )


def schema_of(store: Queries, run: RunRecord) -> str:
    """The text of the schema that a run used.

    Raises:
        MillraceError: It came to none, or it is gone.
    """
    made = _made(store, run).get("schema")
    path = made.file(SCHEMA_FILE) if made else None
    if path is None or not path.exists():
        raise _nothing(run, "schema", made)
    return path.read_text(encoding="utf-8")


def _nothing(run: RunRecord, name: str, made: ArtifactRecord | None) -> MillraceError:
    what = f"came to no {name}" if made is None else f"has no {name} any more: {made.uri} is gone"
    return MillraceError(f"run {run.id} {what}.", "Name another run with --run.")


def _made(store: Queries, run: RunRecord) -> dict[str, ArtifactRecord]:
    outputs = store.outputs_of(node.id for node in run.nodes if node.succeeded)
    return {name: found[0] for by_name in outputs.values() for name, found in by_name.items()}


def _of_splits(folder: Path, pattern: str) -> Sequence[Path]:
    return sorted(folder.glob(f"Split-*/{pattern}"))


def _statistics(path: Path) -> statistics_pb2.DatasetFeatureStatistics:
    found = statistics_pb2.DatasetFeatureStatisticsList.FromString(path.read_bytes())
    return found.datasets[0]


def _anomalies(
    made: ArtifactRecord | None, used: schema_pb2.Schema, now: schema_pb2.Schema | None
) -> Mapping[str, tuple[str, ...]]:
    """What TFDV said that no rule covers, of features whose schema is still what the run used."""
    if made is None:
        return {}
    before = {feature.name: feature for feature in used.feature}
    after = {feature.name: feature for feature in (now or used).feature}
    found: dict[str, dict[str, None]] = {}
    for path in _of_splits(made.path, ANOMALIES_FILE):
        anomalies = anomalies_pb2.Anomalies.FromString(path.read_bytes())
        if anomalies.HasField("dataset_anomaly_info"):
            found.setdefault(DATA_SET, {})[anomalies.dataset_anomaly_info.description] = None
        for name, info in anomalies.anomaly_info.items():
            if name in before and before[name] == after.get(name):
                said = {reason.description: None for reason in info.reason if reason.type not in COVERED}
                found.setdefault(name, {}).update(said)
    return {name: tuple(said) for name, said in found.items()}
