"""The curated schema against the real trips, whole, and with one fault planted at a time."""

import hashlib
import importlib.util
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pytest
import tensorflow_data_validation as tfdv
from tensorflow_data_validation.statistics import stats_impl, stats_options

SCHEMA = Path(__file__).parents[3] / "schemas/taxi/schema.pbtxt"


def real_trips() -> pa.Table:
    """The 15,002 trips inside the tfx package, found without importing it (20 s)."""
    package = Path(importlib.util.find_spec("tfx").origin).parent
    options = pyarrow.csv.ConvertOptions(strings_can_be_null=True)
    path = package / "examples/chicago_taxi_pipeline/data/simple/data.csv"
    return pyarrow.csv.read_csv(path, convert_options=options)


@pytest.fixture(scope="module")
def splits() -> dict[str, pa.Table]:
    trips = real_trips()
    hashes = [hashlib.sha256(repr(trip).encode()).digest() for trip in trips.to_pylist()]
    bucket = np.array([int.from_bytes(value, "big") % 3 for value in hashes])
    return {"train": trips.filter(pa.array(bucket < 2)), "eval": trips.filter(pa.array(bucket == 2))}


def statistics(trips: pa.Table):
    """StatisticsGen's statistics of the trips: each value is a list of one; a column without values has no type."""
    columns = {name: _as_lists(trips[name].combine_chunks()) for name in trips.column_names}
    batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
    return stats_impl.generate_statistics_in_memory(batch, stats_options.StatsOptions())


def _as_lists(column: pa.Array) -> pa.Array:
    if column.null_count == len(column):
        return pa.nulls(len(column))
    kinds = {pa.float64(): pa.float32(), pa.string(): pa.binary()}
    kind = kinds.get(column.type, column.type)
    values = column.cast(kind, safe=False).to_pylist()
    return pa.array([None if value is None else [value] for value in values], pa.list_(kind))


def anomalies(trips: pa.Table, environment: str = "TRAINING", previous: pa.Table | None = None) -> dict[str, str]:
    """Returns column -> what is wrong with it."""
    result = tfdv.validate_statistics(
        statistics(trips),
        tfdv.load_schema_text(str(SCHEMA)),
        environment=environment,
        previous_statistics=None if previous is None else statistics(previous),
    )
    return {name: info.short_description for name, info in result.anomaly_info.items()}


def planted(trips: pa.Table, column: str, value) -> pa.Table:
    """The trips with one value of the first trip replaced."""
    values = trips[column].to_pylist()
    values[0] = value
    return trips.set_column(trips.schema.get_field_index(column), column, pa.array(values, trips[column].type))


@pytest.mark.parametrize("split", ["train", "eval"])
def test_the_real_trips_have_no_anomalies(splits, split):
    assert len(splits["train"]) + len(splits["eval"]) == 15002
    assert anomalies(splits[split]) == {}
    assert anomalies(splits[split].drop(["tips"]), "SERVING") == {}


def test_the_two_splits_do_not_drift(splits):
    assert anomalies(splits["eval"], previous=splits["train"]) == {}
    assert anomalies(splits["train"], previous=splits["eval"]) == {}


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("payment_type", "Barter"),
        ("trip_start_hour", 25),
        ("trip_start_day", 0),
        ("trip_start_day", 8),
        ("trip_start_month", 13),
        ("fare", -0.5),
        ("tips", -1.0),
        ("trip_miles", -2.0),
        ("trip_seconds", -60),
        ("pickup_latitude", 40.7),
        ("dropoff_longitude", -74.0),
        ("pickup_community_area", 78),
        ("dropoff_census_tract", 36061000100),
    ],
)
def test_one_impossible_value_is_an_anomaly(splits, column, value):
    assert list(anomalies(planted(splits["eval"], column, value))) == [column]


@pytest.mark.parametrize("column", ["payment_type", "fare", "company", "pickup_latitude", "tips", "trip_start_hour"])
def test_a_missing_column_is_an_anomaly(splits, column):
    assert anomalies(splits["eval"].drop([column])) == {column: "Column dropped"}


def test_a_new_company_is_none(splits):
    assert anomalies(planted(splits["eval"], "company", "Gondola Co")) == {}


def test_a_missing_required_value_is_an_anomaly(splits):
    assert list(anomalies(planted(splits["eval"], "payment_type", None))) == ["payment_type"]


def test_a_lost_fare_is_none_but_many_are(splits):
    assert anomalies(planted(splits["eval"], "fare", None)) == {}
    trips = splits["eval"]
    fares = pc.if_else(pa.array(np.arange(len(trips)) % 20 == 0), None, trips["fare"])
    assert list(anomalies(trips.set_column(trips.schema.get_field_index("fare"), "fare", fares))) == ["fare"]


def test_tips_do_not_belong_in_a_request(splits):
    assert list(anomalies(splits["eval"], "SERVING")) == ["tips"]


def test_drift_of_payment_and_of_hours_is_seen(splits):
    card_only = splits["eval"].filter(pc.field("payment_type") == "Credit Card")
    no_night = splits["eval"].filter(pc.field("trip_start_hour") > 3)
    assert "payment_type" in anomalies(card_only, previous=splits["train"])
    assert list(anomalies(no_night, previous=splits["train"])) == ["trip_start_hour"]
