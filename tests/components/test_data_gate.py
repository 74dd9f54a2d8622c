"""The data gate: what it lets through, what it stops, and what it says."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import tensorflow_data_validation as tfdv
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.types import artifact_utils, standard_artifacts

from components import data_gate
from components.artifacts import split_files
from components.statistics.columns import decode_files
from contracts.data_verdict import INFINITE_PROPERTY
from contracts.errors import AnomalyError

SCHEMA = """
feature { name: "company" type: BYTES domain: "companies" presence { min_count: 1 } }
feature { name: "payment" type: BYTES string_domain { value: "Cash" value: "Card" } }
feature { name: "hour" type: INT int_domain { min: 0 max: 23 } }
feature { name: "fare" type: FLOAT float_domain { min: 0.0 } }
feature { name: "miles" type: FLOAT }
string_domain { name: "companies" value: "Blue" value: "Red" }
"""


def schema() -> schema_pb2.Schema:
    return text_format.Parse(SCHEMA, schema_pb2.Schema())


def offending(name: str, column: pa.Array) -> list[str]:
    proto = schema()
    feature = next(feature for feature in proto.feature if feature.name == name)
    return data_gate.offending_values(pa.RecordBatch.from_arrays([column], [name]), feature, proto)


def texts(*values: bytes | None) -> pa.Array:
    return pa.array([None if value is None else [value] for value in values], pa.large_list(pa.large_binary()))


def numbers(kind: pa.DataType, *values: float | None) -> pa.Array:
    return pa.array([None if value is None else [value] for value in values], pa.large_list(kind))


@pytest.mark.parametrize(
    ("name", "column", "expected"),
    [
        (
            "payment",
            texts(b"Cash", b"Coin", None, b"Coin", b"Card", b"Shell"),
            ["'Coin' in 2 rows", "'Shell' in 1 row"],
        ),
        ("payment", texts(b"Cash", None), []),
        ("payment", texts(b"\xff"), ["'\ufffd' in 1 row"]),
        ("company", texts(b"Blue", b"Green"), ["'Green' in 1 row"]),
        ("hour", numbers(pa.int64(), 0, 23, 24, -1, 24), ["24 in 2 rows", "-1 in 1 row"]),
        ("hour", numbers(pa.int64(), 0, 23, None), []),
        ("fare", numbers(pa.float32(), 0.0, 1e9, -2.5), ["-2.5 in 1 row"]),
        ("miles", numbers(pa.float32(), -1.0), []),
        ("hour", texts(b"noon"), []),
        ("payment", numbers(pa.int64(), 3), []),
        ("payment", pa.nulls(2), []),
    ],
)
def test_values_outside_the_domain_are_counted(name: str, column: pa.Array, expected: list[str]) -> None:
    assert offending(name, column) == expected


def test_the_three_commonest_values_are_named() -> None:
    column = texts(*(value for count, value in enumerate((b"a", b"b", b"c", b"d"), 1) for _ in range(count)))
    assert offending("payment", column) == ["'d' in 4 rows", "'c' in 3 rows", "'b' in 2 rows"]


def test_a_column_that_is_not_there_has_no_values() -> None:
    rows = pa.RecordBatch.from_arrays([texts(b"x")], ["other"])
    assert data_gate.offending_values(rows, schema().feature[0], schema()) == []


def test_the_description_names_feature_split_and_samples() -> None:
    findings = [
        {
            "split": "train",
            "feature": "hour",
            "description": "Out of range.",
            "samples": ["24 in 2 rows", "25 in 1 row"],
        },
        {"split": "eval", "feature": "fare", "description": "Column is missing.", "samples": []},
    ]
    assert data_gate.describe(findings) == (
        "The data do not look like their schema: 2 anomalies.\n"
        "  hour (train): Out of range. e.g. 24 in 2 rows, 25 in 1 row\n"
        "  fare (eval): Column is missing."
    )


def test_one_anomaly_is_singular() -> None:
    finding = {"split": "train", "feature": "hour", "description": "Out of range.", "samples": []}
    assert data_gate.describe([finding]).startswith("The data do not look like their schema: 1 anomaly.\n")


GOOD = {"company": "Blue", "payment": "Cash", "hour": 3, "fare": 2.5, "miles": 1.0}
Gate = Callable[..., Any]


@pytest.fixture
def gate(artifact: Callable[..., Any], examples: Callable[..., Any]) -> Gate:
    """Runs the gate over rows; the anomalies are TFDV's own. Returns the verdict artifact."""

    def run(on_anomaly: str, infinite: Mapping[str, int] | None = None, **splits: list[dict[str, Any]]) -> Any:
        raw = examples(**splits)
        if infinite:
            raw.set_string_custom_property(INFINITE_PROPERTY, json.dumps(infinite))
        names = artifact_utils.encode_split_names(list(splits))
        anomalies = artifact(standard_artifacts.ExampleAnomalies, split_names=names)
        for split in splits:
            statistics = tfdv.statistics.stats_impl.generate_statistics_in_memory(
                decode_files(split_files(raw, split)), tfdv.StatsOptions()
            )
            anomalies_found = tfdv.validate_statistics(statistics, schema())
            folder = Path(anomalies.uri, f"Split-{split}")
            folder.mkdir()
            (folder / "SchemaDiff.pb").write_bytes(anomalies_found.SerializeToString())
        curated = artifact(standard_artifacts.Schema)
        Path(curated.uri, "schema.pbtxt").write_text(SCHEMA)
        verdict = artifact(data_gate.GateVerdict)
        inputs = {"anomalies": [anomalies], "examples": [raw], "schema": [curated]}
        data_gate.DataGate.EXECUTOR_SPEC.executor_class().Do(inputs, {"verdict": [verdict]}, {"on_anomaly": on_anomaly})
        return verdict

    return run


def verdict_of(artifact: Any) -> Any:
    return json.loads(Path(artifact.uri, data_gate.VERDICT_FILE).read_text())


@pytest.mark.parametrize("on_anomaly", ["stop", "warn"])
def test_good_data_pass(gate: Gate, on_anomaly: str) -> None:
    verdict = gate(on_anomaly, train=[GOOD, GOOD], eval=[GOOD])
    assert verdict.num_anomalies == 0
    assert verdict_of(verdict) == []


BAD = {"train": [GOOD, {**GOOD, "payment": "Coin", "hour": 24}], "eval": [{**GOOD, "company": None}]}


def test_bad_data_stop_the_run_with_every_anomaly(gate: Gate, tmp_path: Path) -> None:
    with pytest.raises(AnomalyError) as caught:
        gate("stop", **BAD)
    first, *rest = str(caught.value).splitlines()
    assert first == "The data do not look like their schema: 3 anomalies."
    assert rest[0].startswith("  hour (train): ")
    assert rest[0].endswith(" e.g. 24 in 1 row")
    assert rest[1].startswith("  payment (train): ")
    assert rest[1].endswith(" e.g. 'Coin' in 1 row")
    assert rest[2].startswith("  company (eval): ")
    assert rest[3] == (
        "Mend the data, or, if the data are right, the schema under schemas/; "
        "`--set gate.on_anomaly=warn` lets this run go on."
    )
    [file] = tmp_path.glob(f"artifacts/GateVerdict-*/{data_gate.VERDICT_FILE}")
    findings = json.loads(file.read_text())
    values = {"company": "Blue", "payment": "Coin", "hour": "24", "fare": "2.5", "miles": "1"}
    assert [(finding["feature"], finding["rows"]) for finding in findings] == [
        ("hour", [{"row": 1, "values": values}]),
        ("payment", [{"row": 1, "values": values}]),
        ("company", [{"row": 0, "values": {**values, "company": None, "payment": "Cash", "hour": "3"}}]),
    ]
    assert caught.value.findings == findings


def test_bad_data_are_noted_where_a_recipe_only_warns(gate: Gate, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        verdict = gate("warn", **BAD)
    assert verdict.num_anomalies == 3
    assert [(f["split"], f["feature"], f["samples"]) for f in verdict_of(verdict)] == [
        ("train", "hour", ["24 in 1 row"]),
        ("train", "payment", ["'Coin' in 1 row"]),
        ("eval", "company", []),
    ]
    assert "3 anomalies" in caplog.text


# TFDV computes a mean of them.
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_infinite_numbers_that_ingest_found(gate: Gate) -> None:
    infinite = {**GOOD, "miles": float("-inf")}
    verdict = gate("warn", {"miles": 2}, train=[GOOD, infinite, infinite], eval=[GOOD])
    assert [(f["split"], f["feature"], [row["row"] for row in f["rows"]]) for f in verdict_of(verdict)] == [
        ("train", "miles", [1, 2])
    ]
    assert verdict_of(verdict)[0]["description"].startswith("Infinite numbers in 2 rows, expected finite ones.")
    assert verdict_of(verdict)[0]["rows"][0]["values"]["miles"] == "-inf"


def test_a_few_texts_in_a_column_of_numbers(gate: Gate) -> None:
    rows = [{**GOOD, "miles": text} for text in ("1", "2.5", "NA", "7", "8")]
    [finding] = verdict_of(gate("warn", train=rows))
    assert finding["description"].endswith(
        " column miles: 4 numbers, 1 'NA'. If these stand for missing values, set data.na_values: ['NA']; else declare "
        "it in data.columns."
    )
