"""The schema that a run's data were validated against, as text for people."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tensorflow_metadata.proto.v0 import schema_pb2

from contracts import content

KEPT = 8
MOST_VALUES = 20


@dataclass(frozen=True)
class SchemaRow:
    """What a schema says about a feature.

    Attributes:
        name: The feature.
        kind: `int`, `float`, `text`, `struct`, or empty if the schema does not say.
        presence: In how many rows it must be present.
        values: How many values a row may have.
        domain: Which values are allowed.
        drift_bar: The bar of the schema's drift comparator.
        skew_bar: The bar of the schema's skew comparator.
        environments: The environments in which it is not expected, or the only ones in which it is.
    """

    name: str
    kind: str
    presence: str
    values: str
    domain: str
    drift_bar: str
    skew_bar: str
    environments: str


KINDS = {"BYTES": "text", "INT": "int", "FLOAT": "float", "STRUCT": "struct"}


def read_schema(path: Path) -> schema_pb2.Schema:
    """Reads a schema, cached while its file does not change; callers must not modify it.

    Raises:
        ContentError: It is missing or broken.
    """
    return _read(path, path.stat().st_mtime_ns if path.exists() else 0)


@lru_cache(maxsize=KEPT)
def _read(path: Path, changed: int) -> schema_pb2.Schema:
    return content.read_text_proto(path, schema_pb2.Schema)


def schema_rows(schema: schema_pb2.Schema) -> list[SchemaRow]:
    """A row for each feature, in the order of the schema."""
    shared = {domain.name: domain for domain in schema.string_domain}
    return [_row(feature, shared) for feature in schema.feature]


def _row(feature: schema_pb2.Feature, shared: dict[str, schema_pb2.StringDomain]) -> SchemaRow:
    return SchemaRow(
        name=feature.name,
        kind=KINDS.get(schema_pb2.FeatureType.Name(feature.type), ""),
        presence=_presence(feature),
        values=_values(feature),
        domain=_domain(feature, shared),
        drift_bar=_bars(feature.drift_comparator),
        skew_bar=_bars(feature.skew_comparator),
        environments=_environments(feature),
    )


def _presence(feature: schema_pb2.Feature) -> str:
    if not feature.HasField("presence"):
        return "optional"
    presence = feature.presence
    parts = []
    if presence.min_fraction:
        parts.append("every row" if presence.min_fraction == 1 else f"≥ {presence.min_fraction:.4g} of the rows")
    # A required feature always has a value in at least one row.
    if presence.min_count > 1 or (presence.min_count and not parts):
        parts.append(f"≥ {presence.min_count:,} row{'s' if presence.min_count > 1 else ''}")
    return ", ".join(parts) or "optional"


def _values(feature: schema_pb2.Feature) -> str:
    if feature.HasField("shape"):
        return " by ".join(str(dim.size) for dim in feature.shape.dim) or "1"
    if not feature.HasField("value_count"):
        return ""
    low, high = feature.value_count.min, feature.value_count.max
    if low == high:
        return str(low)
    return f"{low} to {high}" if high else f"≥ {low}"


def _domain(feature: schema_pb2.Feature, shared: dict[str, schema_pb2.StringDomain]) -> str:
    held = feature.WhichOneof("domain_info")
    if held == "domain":
        return _words(shared[feature.domain]) if feature.domain in shared else feature.domain
    if held == "string_domain":
        return _words(feature.string_domain)
    if held in {"int_domain", "float_domain"}:
        return _range(getattr(feature, held))
    return held.removesuffix("_domain").replace("_", " ") if held else ""


def _words(domain: schema_pb2.StringDomain) -> str:
    shown = ", ".join(domain.value[:MOST_VALUES])
    rest = len(domain.value) - MOST_VALUES
    return f"{shown} and {rest:,} more" if rest > 0 else shown


def _range(domain: schema_pb2.IntDomain | schema_pb2.FloatDomain) -> str:
    # As many digits as a float domain, which has 32 bits, preserves.
    form = ",.7g" if isinstance(domain, schema_pb2.FloatDomain) else ","
    low = f"{domain.min:{form}}" if domain.HasField("min") else None
    high = f"{domain.max:{form}}" if domain.HasField("max") else None
    if low is not None and high is not None:
        return f"{low} to {high}"
    return f"≥ {low}" if low is not None else f"≤ {high}" if high is not None else ""


def _bars(comparator: schema_pb2.FeatureComparator) -> str:
    named = {
        "L∞": comparator.infinity_norm,
        "JS": comparator.jensen_shannon_divergence,
        "difference": comparator.normalized_abs_difference,
    }
    return ", ".join(f"{name} ≤ {bar.threshold:g}" for name, bar in named.items() if bar.HasField("threshold"))


def _environments(feature: schema_pb2.Feature) -> str:
    parts = []
    if feature.in_environment:
        parts.append(f"only {', '.join(feature.in_environment)}")
    if feature.not_in_environment:
        parts.append(f"not {', '.join(feature.not_in_environment)}")
    return "; ".join(parts)
