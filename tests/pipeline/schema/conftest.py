"""A run of `small` whose data violate its schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from schema_data import statistics, write_examples
from schema_scene import COMPANIES, FARES, SCHEMA, TIPS, Ran
from store_builder import StoreBuilder
from tensorflow_metadata.proto.v0 import anomalies_pb2


@pytest.fixture
def schema(project: Path) -> Path:
    """The curated schema of `small`."""
    path = project / "schemas" / "small" / "schema.pbtxt"
    path.write_text(SCHEMA)
    return path


@pytest.fixture
def ran(builder: StoreBuilder, schema: Path, tmp_path: Path) -> Ran:
    """Writes a run with one split of the given columns, failed at the gate."""

    def write(run_id: str = "small-1", fares: list[Any] = FARES, **more: list[Any]) -> None:
        split = {"fare": fares, "tips": TIPS, "company": COMPANIES} | more
        folder = tmp_path / run_id
        write_examples(split, folder / "examples" / "Split-train" / "data.gz")
        (folder / "statistics" / "Split-train").mkdir(parents=True)
        serialized = statistics(split).SerializeToString()
        (folder / "statistics" / "Split-train" / "FeatureStats.pb").write_bytes(serialized)
        anomalies = anomalies_pb2.Anomalies()
        reason = anomalies_pb2.AnomalyInfo.Reason(
            type=anomalies_pb2.AnomalyInfo.FLOAT_TYPE_HAS_NAN, description="Float values contain NaN."
        )
        anomalies.anomaly_info["fare"].reason.append(reason)
        (folder / "anomalies" / "Split-train").mkdir(parents=True)
        (folder / "anomalies" / "Split-train" / "SchemaDiff.pb").write_bytes(anomalies.SerializeToString())
        (folder / "schema").mkdir()
        (folder / "schema" / "schema.pbtxt").write_text(SCHEMA)
        builder.run(run_id)
        for node, name, kind in (
            ("ExampleGen", "examples", "Examples"),
            ("StatisticsGen", "statistics", "ExampleStatistics"),
            ("SchemaGen", "schema", "Schema"),
            ("ExampleValidator", "anomalies", "ExampleAnomalies"),
        ):
            builder.node(node, outputs={name: builder.artifact(kind, folder / name)})
        builder.node("DataGate", "FAILED")

    return write
