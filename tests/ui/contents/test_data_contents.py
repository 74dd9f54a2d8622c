"""Anomalies with the gate's samples and rows, rows that were set aside, and the schema as text."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import anomalies_pb2

from contracts.content import ContentError
from contracts.data_verdict import DATA_SET, QuotedRow, read_verdict
from metadata.records import ArtifactRecord
from ui.contents import data_faults, schema
from ui.contents.data_faults import Finding, ShownRow

ANOMALIES = """
anomaly_info { key: "hour" value { description: "31 is too large." short_description: "Out of range" } }
anomaly_info { key: "fare" value { description: "It is missing." } }
dataset_anomaly_info { description: "Too few examples." short_description: "Few examples" }
"""
ROW = {"row": 7, "values": {"hour": "31", "fare": None}}
SAID = [
    {"split": "train", "feature": "hour", "description": "31 is too large.", "samples": ["31 in 1 row"], "rows": [ROW]}
]


def artifact(folder: Path, **properties: str | int) -> ArtifactRecord:
    return ArtifactRecord(1, "Any", str(folder), "LIVE", dict(properties), 0)


@pytest.fixture
def anomalies(tmp_path: Path) -> ArtifactRecord:
    for split, text in (("train", ANOMALIES), ("eval", "")):
        (tmp_path / f"Split-{split}").mkdir()
        proto = text_format.Parse(text, anomalies_pb2.Anomalies())
        (tmp_path / f"Split-{split}" / "SchemaDiff.pb").write_bytes(proto.SerializeToString())
    return artifact(tmp_path, split_names='["train", "eval"]')


def test_anomalies_come_with_what_the_gate_quotes(anomalies: ArtifactRecord, tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"
    path.write_text(json.dumps(SAID))
    row = QuotedRow(row=7, values={"hour": "31", "fare": None})
    assert data_faults.read_anomalies(anomalies, read_verdict(path)) == [
        Finding("train", DATA_SET, "Few examples", "Too few examples."),
        Finding("train", "fare", "It is missing.", "It is missing."),
        Finding("train", "hour", "Out of range", "31 is too large.", ("31 in 1 row",), (row,)),
    ]


def test_a_verdict_without_rows_is_an_older_one(tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"
    path.write_text('[{"split": "train", "feature": "hour", "description": "", "samples": []}]')
    [finding] = read_verdict(path)
    assert (finding.feature, finding.samples, finding.rows) == ("hour", [], [])


def test_a_broken_verdict_is_named(tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"
    path.write_text('[{"split": "train"}]')
    with pytest.raises(ContentError, match=r"verdict.json does not hold what it should: Field required"):
        read_verdict(path)


def test_what_stopped_a_run_is_found_in_its_logs(tmp_path: Path) -> None:
    assert data_faults.read_stopping_verdict(tmp_path) == []
    path = tmp_path / "failure.json"
    path.write_text(json.dumps({"node": "Trainer", "message": "", "lines": []}))
    assert data_faults.read_stopping_verdict(tmp_path) == []
    path.write_text(json.dumps({"node": "DataGate", "message": "", "lines": [], "findings": SAID}))
    [finding] = data_faults.read_stopping_verdict(tmp_path)
    assert finding.rows == [QuotedRow(row=7, values={"hour": "31", "fare": None})]


def test_rows_that_were_set_aside_are_counted_and_the_first_quoted(tmp_path: Path) -> None:
    stray = b"1,\xff".decode("utf-8", "surrogateescape")
    entries = [
        {"file": "a.csv", "line": 3, "column": "fare", "reason": "found 'x', expected a number", "raw": stray},
        {"file": "b.png", "line": None, "column": None, "reason": "no image", "raw": None},
        *({"file": "a.csv", "line": n, "column": "fare", "reason": "found 'y'", "raw": "1,y"} for n in range(20)),
    ]
    for part in (0, 1):
        lines = "".join(json.dumps(entry) + "\n" for entry in entries[part::2])
        (tmp_path / f"rejected-0000{part}-of-00002.jsonl").write_text(lines)
    out = data_faults.read_rejected(artifact(tmp_path, num_rows=22))
    assert out is not None
    assert (out.count, out.read, out.columns, len(out.first)) == (22, 22, (("fare", 21), (None, 1)), 10)
    assert out.first[0] == ShownRow("a.csv", 3, "fare", "found 'x', expected a number", "1,\ufffd")
    assert data_faults.read_rejected(artifact(tmp_path, num_rows=0)) is None


SCHEMA = """
feature {
  name: "payment" type: BYTES domain: "payments" presence { min_fraction: 1 min_count: 1 } shape { dim { size: 1 } }
  drift_comparator { infinity_norm { threshold: 0.1 } jensen_shannon_divergence { threshold: 0.25 } }
}
feature {
  name: "hour" type: INT int_domain { min: 0 max: 23 } presence { min_fraction: 0.5 } value_count { min: 1 max: 3 }
}
feature { name: "fare" type: FLOAT float_domain { min: 0.5 } presence { min_count: 1 } not_in_environment: "SERVING" }
feature {
  name: "image" type: BYTES image_domain {} value_count { min: 2 } skew_comparator { infinity_norm { threshold: 0 } }
}
feature { name: "many" string_domain { VALUES } }
string_domain { name: "payments" value: "Cash" value: "Card" }
""".replace("VALUES", " ".join(f'value: "{n}"' for n in range(25)))


def test_a_schema_is_reported_in_words(tmp_path: Path) -> None:
    path = tmp_path / "schema.pbtxt"
    path.write_text(SCHEMA)
    rows = schema.schema_rows(schema.read_schema(path))
    assert [(row.name, row.kind, row.presence, row.values, row.domain) for row in rows] == [
        ("payment", "text", "every row", "1", "Cash, Card"),
        ("hour", "int", "≥ 0.5 of the rows", "1 to 3", "0 to 23"),
        ("fare", "float", "≥ 1 row", "", "≥ 0.5"),
        ("image", "text", "optional", "≥ 2", "image"),
        ("many", "", "optional", "", ", ".join(map(str, range(20))) + " and 5 more"),
    ]
    assert [(row.drift_bar, row.skew_bar, row.environments) for row in rows[:4]] == [
        ("L∞ ≤ 0.1, JS ≤ 0.25", "", ""),
        ("", "", ""),
        ("", "", "not SERVING"),
        ("", "L∞ ≤ 0", ""),
    ]


def test_a_schema_that_changed_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "schema.pbtxt"
    path.write_text('feature { name: "a" }')
    first = schema.read_schema(path)
    assert schema.read_schema(path) is first
    path.write_text('feature { name: "b" }')
    os.utime(path, ns=(1, 1))
    assert [feature.name for feature in schema.read_schema(path).feature] == ["b"]


def test_a_schema_that_is_gone_or_broken_is_named(tmp_path: Path) -> None:
    path = tmp_path / "schema.pbtxt"
    with pytest.raises(ContentError, match=r"schema.pbtxt is not there"):
        schema.read_schema(path)
    path.write_text("feature {")
    with pytest.raises(ContentError, match=r"schema.pbtxt does not hold what it should: "):
        schema.read_schema(path)
