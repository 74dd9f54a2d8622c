"""The gate quotes the rows that show an anomaly, with all their columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2

from components import data_gate

SCHEMA = text_format.Parse(
    """
    feature { name: "payment" type: BYTES domain: "payments" shape { dim { size: 1 } } }
    feature { name: "hour" type: INT int_domain { min: 0 max: 23 } value_count { min: 1 max: 2 } }
    feature { name: "fare" type: FLOAT }
    string_domain { name: "payments" value: "Cash" value: "Card" }
    """,
    schema_pb2.Schema(),
)
TEXTS, INTS, FLOATS = (pa.large_list(kind) for kind in (pa.large_binary(), pa.int64(), pa.float32()))
Absent = anomalies_pb2.AnomalyInfo.FEATURE_TYPE_LOW_FRACTION_PRESENT
Value = anomalies_pb2.AnomalyInfo.ENUM_TYPE_UNEXPECTED_STRING_VALUES


def batch(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def quoted(rows: pa.RecordBatch, name: str, *reasons: int) -> list[dict[str, Any]]:
    info = anomalies_pb2.AnomalyInfo(reason=[anomalies_pb2.AnomalyInfo.Reason(type=reason) for reason in reasons])
    return data_gate.quoted_rows(rows, name, info, SCHEMA)


def places(rows: pa.RecordBatch, name: str, *reasons: int) -> list[int]:
    return [row["row"] for row in quoted(rows, name, *reasons)]


def test_a_row_is_quoted_with_all_its_columns_as_text() -> None:
    rows = batch(
        payment=pa.array([[b"Cash"], [b"Coin"], [b"Card"]], TEXTS),
        hour=pa.array([[1], [2, 3], None], INTS),
        fare=pa.array([[1.5], [0.1], [3.0]], FLOATS),
        image=pa.array([[b"\xff\xd8"], [b"\xff\xd8\xff"], None], TEXTS),
    )
    assert quoted(rows, "payment", Value) == [
        {"row": 1, "values": {"payment": "Coin", "hour": "2, 3", "fare": "0.100000001", "image": "3 bytes"}}
    ]


@pytest.mark.parametrize(
    ("name", "column", "reasons", "expected"),
    [
        (
            "payment",
            pa.array([[b"Coin"], None, [b"Cash"], [b"Shell"], [b"Coin"], [b"Coin"]], TEXTS),
            [Value],
            [0, 3, 4],
        ),
        ("payment", pa.array([[b"Coin"], [b"Shell"], [b"Coin"], None, None], TEXTS), [Value, Absent], [0, 1, 3]),
        ("payment", pa.array([[b"Cash"], None, None, None, None], TEXTS), [Absent], [1, 2, 3]),
        ("payment", pa.array([None, [b"Coin"]], TEXTS), [Value], [1]),
        ("payment", pa.array([[b"Cash"], [b"Cash", b"Card"]], TEXTS), [Value], [1]),
        ("payment", pa.array([[3], None], INTS), [Value], [0]),
        ("hour", pa.array([[5, 24], [1], [1, 2, 3], [-1]], INTS), [Value], [0, 2, 3]),
        ("fare", pa.array([[5.0], None], FLOATS), [Value], []),
        ("new", pa.array([None, [b"a"]], TEXTS), [anomalies_pb2.AnomalyInfo.SCHEMA_NEW_COLUMN], [1]),
        ("payment", pa.nulls(2), [Absent], [0, 1]),
        ("missing", pa.nulls(2), [anomalies_pb2.AnomalyInfo.SCHEMA_MISSING_COLUMN], []),
    ],
)
def test_the_rows_are_those_that_break_the_schema(
    name: str, column: pa.Array, reasons: list[int], expected: list[int]
) -> None:
    rows = batch(**{"other" if name == "missing" else name: column})
    assert places(rows, name, *reasons) == expected


def test_long_cells_are_cut() -> None:
    rows = batch(payment=pa.array([[b"x" * 300]], TEXTS), hour=pa.array([list(range(12))], INTS))
    [row] = quoted(rows, "payment", Value)
    assert row["values"] == {"payment": "x" * 200 + "…", "hour": "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, and 2 more"}
