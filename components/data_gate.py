"""The data gate: anomalies stop the run with a message of what is wrong, sample values and rows that show it."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2
from tfx.components.example_validator import executor as example_validator
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.types import Artifact, artifact_utils, standard_artifacts
from tfx.types.artifact import Property, PropertyType

from components.artifacts import read_schema, split_files
from components.example_gen.oddities import Oddity, count_texts
from components.statistics.columns import decode_files
from contracts.data_verdict import DATA_SET, INFINITE_PROPERTY, VERDICT_FILE
from contracts.errors import AnomalyError

MAX_ROWS = 3
MAX_VALUES = 10
LONGEST_TEXT = 200

ABSENCES = frozenset(
    {
        anomalies_pb2.AnomalyInfo.FEATURE_TYPE_LOW_FRACTION_PRESENT,
        anomalies_pb2.AnomalyInfo.FEATURE_TYPE_LOW_NUMBER_PRESENT,
        anomalies_pb2.AnomalyInfo.FEATURE_TYPE_NOT_PRESENT,
    }
)
"""The reasons for which rows without a value are to blame."""


def outside_domain(values: pa.Array, feature: schema_pb2.Feature, schema: schema_pb2.Schema) -> pa.BooleanArray | None:
    """Which values are outside the feature's domain; None if it has no string, int or float domain for their type.

    Args:
        values: The values of all rows, end to end.
        feature: The schema's feature.
        schema: Holds the string domains that features share.
    """
    is_text = pa.types.is_large_binary(values.type) or pa.types.is_binary(values.type)
    allowed = _string_domain(feature, schema)
    if allowed is not None:
        value_set = pa.array([value.encode() for value in allowed], values.type) if is_text else None
        return None if value_set is None else pc.invert(pc.is_in(values, value_set=value_set))
    domain = feature.WhichOneof("domain_info")
    if is_text or domain not in {"int_domain", "float_domain"}:
        return None
    return _outside_range(values, getattr(feature, domain))


def quoted_rows(
    rows: pa.RecordBatch, name: str, info: anomalies_pb2.AnomalyInfo, schema: schema_pb2.Schema
) -> list[dict[str, Any]]:
    """Up to three rows that show an anomaly: their positions in the split, from 0, and all columns as text.

    Args:
        rows: Decoded tf.Examples, one list column per feature, null where a row has no value.
        name: The feature's name.
        info: What is wrong with the feature.
        schema: What the feature should look like.
    """
    if name not in rows.schema.names:
        return []
    column = rows.column(rows.schema.get_field_index(name))
    feature = next((feature for feature in schema.feature if feature.name == name), None)
    broken = _broken_rows(column, feature, schema)
    absent = column.is_null() if {reason.type for reason in info.reason} & ABSENCES else None
    places = _row_positions(broken, absent)
    return [_quoted(rows, place) for place in places.to_pylist()]


def _quoted(rows: pa.RecordBatch, place: int) -> dict[str, Any]:
    [row] = rows.slice(place, 1).to_pylist()
    return {"row": place, "values": {column: _cell_text(values) for column, values in row.items()}}


def _row_positions(broken: pa.BooleanArray, absent: pa.BooleanArray | None) -> pa.Array:
    """The first broken and absent rows, ascending; one absent row, or more if there are too few broken ones."""
    bad = pc.indices_nonzero(broken)
    if absent is None:
        return bad[:MAX_ROWS]
    empty = pc.indices_nonzero(absent)
    chosen = pa.concat_arrays([bad[: MAX_ROWS - min(1, len(empty))], empty])[:MAX_ROWS]
    return chosen.take(pc.array_sort_indices(chosen))


def _broken_rows(column: pa.Array, feature: schema_pb2.Feature | None, schema: schema_pb2.Schema) -> pa.Array:
    """Which rows have values that the schema does not allow; false for rows without values."""
    present = column.is_valid()
    if pa.types.is_null(column.type) or feature is None or not _type_fits(column.type.value_type, feature):
        return present
    broken = pc.and_(present, _wrong_value_count(column, feature))
    outside = outside_domain(column.flatten(), feature, schema)
    if outside is None:
        return broken
    parents = pc.list_parent_indices(column).filter(outside)
    return pc.or_(broken, pc.is_in(pa.array(range(len(column)), parents.type), value_set=parents))


def _type_fits(values: pa.DataType, feature: schema_pb2.Feature) -> bool:
    kinds = {
        schema_pb2.BYTES: pa.types.is_large_binary(values) or pa.types.is_binary(values),
        schema_pb2.INT: pa.types.is_integer(values),
        schema_pb2.FLOAT: pa.types.is_floating(values),
    }
    return bool(kinds.get(feature.type, True))


def _wrong_value_count(column: pa.Array, feature: schema_pb2.Feature) -> pa.Array:
    counts = pc.list_value_length(column).fill_null(0)
    low, high = 0, None
    if feature.HasField("value_count"):
        low, high = feature.value_count.min, feature.value_count.max or None
    elif feature.HasField("shape"):
        size = 1
        for dim in feature.shape.dim:
            size *= dim.size
        low, high = size, size
    few = pc.less(counts, low)
    return few if high is None else pc.or_(few, pc.greater(counts, high))


def _outside_range(values: pa.Array, domain: Any) -> pa.BooleanArray:
    outside = pa.array([False] * len(values), pa.bool_())
    if domain.HasField("min"):
        outside = pc.or_(outside, pc.less(values, domain.min))
    if domain.HasField("max"):
        outside = pc.or_(outside, pc.greater(values, domain.max))
    return outside


def _string_domain(feature: schema_pb2.Feature, schema: schema_pb2.Schema) -> list[str] | None:
    if feature.HasField("string_domain"):
        return list(feature.string_domain.value)
    shared = {domain.name: list(domain.value) for domain in schema.string_domain}
    return shared.get(feature.domain) if feature.domain else None


def _cell_text(values: list[Any] | None) -> str | None:
    """The values of a cell as text; for bytes that are not UTF-8, their size."""
    if values is None:
        return None
    num_left_out = len(values) - MAX_VALUES
    texts = [_value_text(value) for value in values[:MAX_VALUES]]
    return ", ".join([*texts, f"and {num_left_out:,} more"] if num_left_out > 0 else texts)


def _value_text(value: Any) -> str:
    if not isinstance(value, bytes):
        return f"{value:.9g}" if isinstance(value, float) else str(value)
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return f"{len(value):,} bytes"
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


MAX_SAMPLES = 3
MAX_QUOTED = 20
"""The number of anomalies per split that are shown with rows."""


class GateVerdict(Artifact):
    """What the gate found: `verdict.json`, a list of anomalies.

    Each has a split, feature, description, sample values, and some of the rows that show it: `row`, their position in
    the split from 0, and `values`, all columns as text, null where there is no value.
    """

    TYPE_NAME = "GateVerdict"
    PROPERTIES = {"num_anomalies": Property(type=PropertyType.INT)}  # noqa: RUF012 (TFX reads a plain dict)


@component
def DataGate(  # noqa: N802  # TFX's form of a component
    anomalies: InputArtifact[standard_artifacts.ExampleAnomalies],
    examples: InputArtifact[standard_artifacts.Examples],
    schema: InputArtifact[standard_artifacts.Schema],
    verdict: OutputArtifact[GateVerdict],
    on_anomaly: Parameter[str],
) -> None:
    """Stops the run when ExampleValidator found anomalies, if the recipe says `on_anomaly: stop`.

    Args:
        anomalies: ExampleValidator's output.
        examples: Raw Examples with the same splits.
        schema: What the Examples should look like.
        verdict: What the gate found.
        on_anomaly: `stop` or `warn`.

    Raises:
        AnomalyError: There are anomalies and they must stop the run; the message lists them all.
    """
    findings = list(_findings(anomalies, examples, read_schema(schema)))
    verdict.num_anomalies = len(findings)
    Path(verdict.uri, VERDICT_FILE).write_text(json.dumps(findings, indent=2), encoding="utf-8")
    if not findings:
        return
    message = describe(findings)
    if on_anomaly == "stop":
        raise AnomalyError(
            message,
            "Mend the data, or, if the data are right, the schema under schemas/; "
            "`--set gate.on_anomaly=warn` lets this run go on.",
            findings,
        )
    logging.warning(message)


def describe(findings: list[dict[str, Any]]) -> str:
    """The anomalies as text, one per line."""
    noun = "anomaly" if len(findings) == 1 else "anomalies"
    lines = [f"The data do not look like their schema: {len(findings)} {noun}."]
    for finding in findings:
        samples = f" e.g. {', '.join(finding['samples'])}" if finding["samples"] else ""
        lines.append(f"  {finding['feature']} ({finding['split']}): {finding['description']}{samples}")
    return "\n".join(lines)


def _findings(validated: Artifact, examples: Artifact, schema: schema_pb2.Schema) -> Iterator[dict[str, Any]]:
    infinite = json.loads(examples.get_string_custom_property(INFINITE_PROPERTY) or "{}")
    for split in artifact_utils.decode_split_names(validated.split_names):
        folder = artifact_utils.get_split_uri([validated], split)
        anomalies = anomalies_pb2.Anomalies()
        anomalies.ParseFromString(Path(folder, example_validator.DEFAULT_FILE_NAME).read_bytes())
        if anomalies.HasField("dataset_anomaly_info"):
            info = anomalies.dataset_anomaly_info
            yield _finding(split, DATA_SET, info.description, [], [])
        if not anomalies.anomaly_info and not infinite:
            continue
        rows = decode_files(split_files(examples, split))
        domains = {feature.name: feature for feature in schema.feature}
        for name in infinite:
            yield from _infinite_numbers(split, name, rows, domains.get(name))
        for index, (name, info) in enumerate(sorted(anomalies.anomaly_info.items())):
            samples = offending_values(rows, domains[name], schema) if name in domains else []
            quoted = quoted_rows(rows, name, info, schema) if index < MAX_QUOTED else []
            description = info.description + _texts_among_numbers(rows, name, domains.get(name))
            yield _finding(split, name, description, samples, quoted)


def _infinite_numbers(
    split: str, name: str, rows: pa.RecordBatch, feature: schema_pb2.Feature | None
) -> Iterator[dict[str, Any]]:
    """Yields the anomaly of a column with infinite numbers, unless its schema says that they are wanted."""
    if name not in rows.schema.names or (feature is not None and feature.float_domain.HasField("disallow_inf")):
        return  # Where the schema speaks of infinite numbers, TFDV heeds it.
    column = rows.column(rows.schema.get_field_index(name))
    infinite = pc.is_inf(column.flatten())
    if not pc.any(infinite).as_py():
        return
    places = pc.list_parent_indices(column).filter(infinite).unique()
    quoted = [_quoted(rows, place) for place in places[:MAX_ROWS].to_pylist()]
    description = (
        f"Infinite numbers in {_count_rows(len(places))}, expected finite ones. Name what they are written as in "
        "data.na_values, or let the schema allow them: float_domain { disallow_inf: false }."
    )
    yield _finding(split, name, description, [], quoted)


def _texts_among_numbers(rows: pa.RecordBatch, name: str, feature: schema_pb2.Feature | None) -> str:
    """Returns a sentence with the remedy where a column of numbers is text because of a few cells; else nothing."""
    if feature is None or feature.type not in (schema_pb2.INT, schema_pb2.FLOAT) or name not in rows.schema.names:
        return ""
    column = rows.column(rows.schema.get_field_index(name))
    if pa.types.is_null(column.type) or not pa.types.is_large_binary(column.type.value_type):
        return ""
    counts = count_texts(column.flatten())
    if counts is None or not counts[1]:
        return ""
    oddity = Oddity(name, counts[0], counts[1])
    return f" {oddity}. {oddity.remedy}"


def _finding(
    split: str, feature: str, description: str, samples: list[str], rows: list[dict[str, Any]]
) -> dict[str, Any]:
    return {"split": split, "feature": feature, "description": description, "samples": samples, "rows": rows}


def offending_values(rows: pa.RecordBatch, feature: schema_pb2.Feature, schema: schema_pb2.Schema) -> list[str]:
    """Up to three distinct values of a column outside the feature's domain, each with the number of rows that hold it.

    Args:
        rows: Decoded tf.Examples, one list column per feature.
        feature: The schema's feature; only string, int and float domains can be broken by single values.
        schema: Holds the string domains that features share.
    """
    if feature.name not in rows.schema.names:
        return []
    column = rows.column(rows.schema.get_field_index(feature.name))
    if pa.types.is_null(column.type):
        return []
    values = column.flatten()
    outside = outside_domain(values, feature, schema)
    if outside is None:
        return []
    counts = sorted(pc.value_counts(values.filter(outside)).to_pylist(), key=lambda entry: -entry["counts"])
    return [f"{_sample_text(entry['values'])} in {_count_rows(entry['counts'])}" for entry in counts[:MAX_SAMPLES]]


def _count_rows(count: int) -> str:
    return f"{count} row" if count == 1 else f"{count} rows"


def _sample_text(value: Any) -> str:
    return repr(value.decode("utf-8", "replace")) if isinstance(value, bytes) else f"{value:g}"
