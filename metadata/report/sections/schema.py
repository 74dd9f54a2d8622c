"""The schema that the data were held to."""

from __future__ import annotations

from dataclasses import dataclass

from metadata.contents import schema
from metadata.contents.places import SCHEMA_FILE
from metadata.contents.schema import SchemaRow
from metadata.report.source import Source, Surroundings


@dataclass(frozen=True)
class Schema:
    """The schema.

    Attributes:
        rows: A row for each feature.
        drift: Whether any feature has a drift comparator.
        skew: Whether any feature has a skew comparator.
        curated: Whether people wrote it; else it was inferred from these data.
        environments: The environments that it knows.
    """

    rows: list[SchemaRow]
    drift: bool
    skew: bool
    curated: bool
    environments: list[str]


def read(source: Source, surroundings: Surroundings) -> Schema | None:
    """Reads it; None where the run has none yet.

    Raises:
        ContentError: Its file is missing or broken.
    """
    artifact = source.artifact("SchemaGen", "schema")
    if artifact is None:
        return None
    proto = schema.read(artifact.file(SCHEMA_FILE))
    rows = schema.rows(proto)
    return Schema(
        rows=rows,
        drift=any(row.drift_bar for row in rows),
        skew=any(row.skew_bar for row in rows),
        curated="schema_file" in source.nodes["SchemaGen"].properties,
        environments=list(proto.default_environment),
    )
