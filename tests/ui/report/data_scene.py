"""Runs whose data a page shows: statistics, anomalies, a schema and rows that were set aside, in a small store."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from store_builder import StoreBuilder
from tensorflow_metadata.proto.v0 import anomalies_pb2, statistics_pb2

from metadata.queries import Queries
from ui.report.source import Source

SCRIPT = "<script>alert(1)</script>"
WORST = "\"'&</script><img src=x onerror=alert(1)>"
SCHEMA = f"""
feature {{
  name: "payment" type: BYTES presence {{ min_fraction: 1 min_count: 1 }}
  drift_comparator {{ infinity_norm {{ threshold: 0.2 }} }}
}}
feature {{ name: "{SCRIPT}" type: FLOAT float_domain {{ min: 0 }} }}
"""


def statistics(payments: Mapping[str, int], fares: Sequence[float]) -> str:
    """The statistics of a split as text: `payment` with these counts, SCRIPT with these counts in bins 0-1, 1-2, …"""
    proto = statistics_pb2.DatasetFeatureStatisticsList()
    whole = proto.datasets.add(num_examples=sum(payments.values()))
    text = whole.features.add(type=statistics_pb2.FeatureNameStatistics.STRING)
    text.path.step.append("payment")
    text.string_stats.common_stats.num_non_missing = sum(payments.values())
    text.string_stats.common_stats.tot_num_values = sum(payments.values())
    text.string_stats.unique = len(payments)
    for label, count in payments.items():
        text.string_stats.top_values.add(value=label, frequency=count)
        text.string_stats.rank_histogram.buckets.add(label=label, sample_count=count)
    number = whole.features.add(type=statistics_pb2.FeatureNameStatistics.FLOAT)
    number.path.step.append(SCRIPT)
    number.num_stats.common_stats.num_non_missing = int(sum(fares))
    number.num_stats.max = len(fares)
    standard = number.num_stats.histograms.add()
    for low, count in enumerate(fares):
        standard.buckets.add(low_value=low, high_value=low + 1, sample_count=count)
    return text_format.MessageToString(proto)


class DataRuns:
    """Adds runs of the pipeline `small` whose data nodes put files out.

    Args:
        folder: Where the files are made.
        builder: Writes the store.
    """

    def __init__(self, folder: Path, builder: StoreBuilder) -> None:
        self._folder = folder
        self._builder = builder

    def add(
        self,
        run_id: str,
        splits: Mapping[str, str],
        anomalies: str | None = None,
        verdict: Sequence[Any] | None = None,
        rejected: Sequence[Mapping[str, Any]] = (),
        examples: int | None = None,
    ) -> int:
        """Adds a run.

        Args:
            run_id: Its id.
            splits: The statistics by split, as text.
            anomalies: Those of the train split, as text; None where nothing was validated.
            verdict: What the gate wrote; None where it stopped the run.
            rejected: Rows that were set aside.
            examples: The Examples artifact, where it is that of an earlier run.

        Returns:
            The id of the Examples artifact.
        """
        files, builder = self._folder / run_id, self._builder
        names = json.dumps(list(splits))
        builder.run(run_id)
        if rejected:
            _text(files / "rejected" / "rejected-00000-of-00001.jsonl", "".join(json.dumps(r) + "\n" for r in rejected))
        examples_id = examples or builder.artifact("Examples", files / "examples", split_names=names)
        aside = builder.artifact("RejectedRows", files / "rejected", num_rows=len(rejected))
        builder.node("ExampleGen", outputs={"examples": examples_id, "rejected_rows": aside})
        for split, text in splits.items():
            proto = text_format.Parse(text, statistics_pb2.DatasetFeatureStatisticsList())
            _bytes(files / "statistics" / f"Split-{split}" / "FeatureStats.pb", proto.SerializeToString())
        statistics_id = builder.artifact("ExampleStatistics", files / "statistics", split_names=names)
        builder.node("StatisticsGen", outputs={"statistics": statistics_id})
        _text(files / "schema" / "schema.pbtxt", SCHEMA)
        builder.node("SchemaGen", outputs={"schema": builder.artifact("Schema", files / "schema")})
        if anomalies is not None:
            proto = text_format.Parse(anomalies, anomalies_pb2.Anomalies())
            _bytes(files / "anomalies" / "Split-train" / "SchemaDiff.pb", proto.SerializeToString())
            names = '["train"]'
            held = builder.artifact("ExampleAnomalies", files / "anomalies", split_names=names)
            builder.node("ExampleValidator", outputs={"anomalies": held})
        if verdict is not None:
            _text(files / "verdict" / "verdict.json", json.dumps(verdict))
            builder.node("DataGate", outputs={"verdict": builder.artifact("GateVerdict", files / "verdict")})
        return examples_id

    def source(self, store: Queries, run_id: str) -> Source:
        """A run as its page sees it."""
        run = store.run(run_id)
        assert run is not None
        return Source.from_run(store, run)


def _text(path: Path, text: str) -> None:
    _bytes(path, text.encode())


def _bytes(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
