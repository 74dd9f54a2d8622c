"""Which rows break a feature's schema: quoted whole, so that a reader sees where an anomaly comes from."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2

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
"""The reasons for which the rows without a value are at fault."""


def outside_domain(values: pa.Array, feature: schema_pb2.Feature, schema: schema_pb2.Schema) -> pa.BooleanArray | None:
    """Which values are outside the feature's domain; None where it has no string, int or float domain for them.

    Args:
        values: The values of all rows, one after the other.
        feature: The schema's feature.
        schema: Holds the string domains that features share.
    """
    is_text = pa.types.is_large_binary(values.type) or pa.types.is_binary(values.type)
    allowed = _string_domain(feature, schema)
    if allowed is not None:
        words = pa.array([value.encode() for value in allowed], values.type) if is_text else None
        return None if words is None else pc.invert(pc.is_in(values, value_set=words))
    domain = feature.WhichOneof("domain_info")
    if is_text or domain not in {"int_domain", "float_domain"}:
        return None
    return _outside_range(values, getattr(feature, domain))


def quoted_rows(
    rows: pa.RecordBatch, name: str, info: anomalies_pb2.AnomalyInfo, schema: schema_pb2.Schema
) -> list[dict[str, Any]]:
    """Up to three rows in which an anomaly is seen: their places in the split, from 0, and all columns as text.

    Args:
        rows: Decoded tf.Examples, a list column a feature, null where a row has none.
        name: The feature's.
        info: What is wrong with it.
        schema: What it should be.
    """
    if name not in rows.schema.names:
        return []
    column = rows.column(rows.schema.get_field_index(name))
    feature = next((feature for feature in schema.feature if feature.name == name), None)
    broken = _breaks(column, feature, schema)
    absent = column.is_null() if {reason.type for reason in info.reason} & ABSENCES else None
    places = _places(broken, absent)
    return [
        {"row": place, "values": {column: _shown(values) for column, values in row.items()}}
        for place, row in zip(places.to_pylist(), rows.take(places).to_pylist(), strict=True)
    ]


def _places(broken: pa.BooleanArray, absent: pa.BooleanArray | None) -> pa.Array:
    """The first rows of both kinds, ascending: one without a value, or more where there are too few others."""
    bad = pc.indices_nonzero(broken)
    if absent is None:
        return bad[:MAX_ROWS]
    empty = pc.indices_nonzero(absent)
    chosen = pa.concat_arrays([bad[: MAX_ROWS - min(1, len(empty))], empty])[:MAX_ROWS]
    return chosen.take(pc.array_sort_indices(chosen))


def _breaks(column: pa.Array, feature: schema_pb2.Feature | None, schema: schema_pb2.Schema) -> pa.Array:
    """Which rows have values that the schema does not allow; those without values have none."""
    present = column.is_valid()
    if pa.types.is_null(column.type) or feature is None or not _fits(column.type.value_type, feature):
        return present
    broken = pc.and_(present, _miscounted(column, feature))
    outside = outside_domain(column.flatten(), feature, schema)
    if outside is None:
        return broken
    parents = pc.list_parent_indices(column).filter(outside)
    return pc.or_(broken, pc.is_in(pa.array(range(len(column)), parents.type), value_set=parents))


def _fits(values: pa.DataType, feature: schema_pb2.Feature) -> bool:
    kinds = {
        schema_pb2.BYTES: pa.types.is_large_binary(values) or pa.types.is_binary(values),
        schema_pb2.INT: pa.types.is_integer(values),
        schema_pb2.FLOAT: pa.types.is_floating(values),
    }
    return bool(kinds.get(feature.type, True))


def _miscounted(column: pa.Array, feature: schema_pb2.Feature) -> pa.Array:
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


def _shown(values: list[Any] | None) -> str | None:
    """The values of a cell as text: bytes that are text as text, others by their size."""
    if values is None:
        return None
    rest = len(values) - MAX_VALUES
    texts = [_text(value) for value in values[:MAX_VALUES]]
    return ", ".join([*texts, f"and {rest:,} more"] if rest > 0 else texts)


def _text(value: Any) -> str:
    if not isinstance(value, bytes):
        return f"{value:.9g}" if isinstance(value, float) else str(value)
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return f"{len(value):,} bytes"
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"
