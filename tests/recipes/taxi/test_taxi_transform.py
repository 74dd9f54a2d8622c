"""The features inside the Transform graph: ten hand-made trips, with every value worked out by hand."""

import math
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_data_validation as tfdv
import tensorflow_transform as tft
import tensorflow_transform.beam as tft_beam
from tensorflow_transform.tf_metadata import dataset_metadata, schema_utils

from components.trainer.features import Feature, from_schema
from contracts.errors import TrainingError
from recipes.taxi import features

SCHEMA = Path(__file__).parents[3] / "schemas/taxi/schema.pbtxt"

# Each trip is repeated, so that a word in one trip is frequent enough for a vocabulary.
REPEATS = features.MIN_ROWS_PER_WORD
# log(1 + fare) of these is 0, 1, 2, 3, 4: mean 2, variance 2.
FARES = [math.exp(power) - 1 for power in range(5)]


def trip(**columns):
    """One raw trip; a column that is None is missing."""
    usual = {
        "trip_start_timestamp": 1400269500,
        "trip_start_hour": 12,
        "trip_start_day": 3,
        "trip_start_month": 6,
        "fare": 10.0,
        "trip_miles": 2.0,
        "trip_seconds": 600,
        "pickup_latitude": 41.9,
        "pickup_longitude": -87.6,
        "dropoff_latitude": 41.9,
        "dropoff_longitude": -87.6,
        "pickup_community_area": 8,
        "dropoff_community_area": 32,
        "pickup_census_tract": None,
        "dropoff_census_tract": None,
        "payment_type": "Cash",
        "company": None,
        "tips": 0.0,
    }
    assert set(columns) <= set(usual)
    return {name: [] if value is None else [value] for name, value in (usual | columns).items()}


TRIPS = [
    trip(fare=FARES[0], tips=5.0, pickup_latitude=41.80, trip_start_hour=0, trip_start_day=1),
    trip(fare=FARES[1], tips=1.0, pickup_latitude=41.81, trip_start_hour=23, trip_start_day=7),
    trip(fare=FARES[2], tips=None, pickup_latitude=41.82, dropoff_census_tract=17031081401),
    trip(fare=FARES[3], pickup_latitude=41.83, payment_type="Credit Card"),
    trip(fare=FARES[4], pickup_latitude=41.84, payment_type="Credit Card"),
    trip(fare=None, tips=5.0, pickup_latitude=41.85, payment_type="Credit Card"),
    trip(fare=None, pickup_latitude=41.86, company="Blue Ribbon"),
    trip(fare=None, pickup_latitude=41.87, pickup_community_area=None),
    trip(fare=None, pickup_latitude=41.88, trip_miles=None, trip_seconds=None),
    trip(fare=None, pickup_latitude=None, dropoff_community_area=None),
]


@pytest.fixture(scope="module")
def transform_graph(tmp_path_factory) -> tft.TFTransformOutput:
    metadata = dataset_metadata.DatasetMetadata(tfdv.load_schema_text(str(SCHEMA)))
    output = tmp_path_factory.mktemp("transform")
    with tft_beam.Context(temp_dir=str(tmp_path_factory.mktemp("work"))):
        dataset = ([row for row in TRIPS for _ in range(REPEATS)], metadata)
        _, transform_fn = dataset | tft_beam.AnalyzeAndTransformDataset(features.preprocessing_fn)
        transform_fn | tft_beam.WriteTransformFn(str(output))
    return tft.TFTransformOutput(str(output))


def apply(graph: tft.TFTransformOutput, trips: list, without: tuple = ()) -> dict[str, np.ndarray]:
    """Transforms trips as a serving signature does: parsed by the raw feature spec, then through the saved graph."""
    whole_spec = schema_utils.schema_as_feature_spec(tfdv.load_schema_text(str(SCHEMA))).feature_spec
    spec = {name: kind for name, kind in whole_spec.items() if name not in without}
    serialized = [_example({name: row[name] for name in spec}) for row in trips]
    raw = tf.io.parse_example(tf.constant(serialized), spec)
    return {name: tensor.numpy() for name, tensor in graph.transform_features_layer()(raw).items()}


def _example(row: dict) -> bytes:
    example = tf.train.Example()
    for name, values in row.items():
        for value in values:
            feature = example.features.feature[name]
            if isinstance(value, str):
                feature.bytes_list.value.append(value.encode())
            elif isinstance(value, int):
                feature.int64_list.value.append(value)
            else:
                feature.float_list.value.append(value)
    return example.SerializeToString()


@pytest.fixture(scope="module")
def transformed(transform_graph) -> dict[str, np.ndarray]:
    return apply(transform_graph, TRIPS)


def test_every_output_is_dense_with_one_value_a_trip(transformed):
    assert {name: values.shape for name, values in transformed.items()} == dict.fromkeys(transformed, (10,))


def test_tips_are_no_feature(transformed):
    assert "tips" not in transformed


def test_fare_is_the_z_score_of_its_logarithm_over_the_known_fares(transformed):
    expected = [-2 / math.sqrt(2), -1 / math.sqrt(2), 0.0, 1 / math.sqrt(2), 2 / math.sqrt(2)]
    np.testing.assert_allclose(transformed["fare"], expected + 5 * [0.0], atol=1e-5)


def test_a_negative_amount_counts_as_unknown(transform_graph):
    assert apply(transform_graph, [trip(fare=-4.0)])["fare"].tolist() == [0.0]


def test_buckets_are_equally_full_and_a_missing_position_has_its_own(transform_graph, transformed):
    """Nine latitudes, ten repeats each: boundary i of 9 is the value of rank 9i in 90, which is latitude i itself.

    A value on boundary i is in the bucket above it, i + 1; so the lowest bucket is for values below all of these.
    """
    assert transformed["pickup_latitude"].tolist() == [2, 3, 4, 5, 6, 7, 8, 9, 10, 0]
    low, high = apply(transform_graph, [trip(pickup_latitude=41.7), trip(pickup_latitude=42.0)])["pickup_latitude"]
    assert (low, high) == (1, 10)


def test_words_are_ranked_by_frequency(transformed):
    # Cash: 7 trips, Credit Card: 3. No company: 9, Blue Ribbon: 1.
    assert transformed["payment_type"].tolist() == [0, 0, 0, 1, 1, 1, 0, 0, 0, 0]
    assert transformed["company"].tolist() == [0, 0, 0, 0, 0, 0, 1, 0, 0, 0]


def test_tracts_are_hashed_and_a_missing_one_has_its_own_bucket(transformed):
    missing, tract = tf.strings.to_hash_bucket_fast(["(missing)", "17031081401"], 1000).numpy().tolist()
    assert missing != tract
    assert transformed["dropoff_census_tract"].tolist() == [missing, missing, tract, *[missing] * 7]


def test_an_unknown_word_gets_the_id_past_the_last(transform_graph):
    strange = apply(transform_graph, [trip(payment_type="Barter", company="Gondola Co")])
    assert (strange["payment_type"].tolist(), strange["company"].tolist()) == ([2], [2])


def test_calendar_and_areas_count_from_one(transformed):
    assert transformed["trip_start_hour"].tolist() == [1, 24] + 8 * [13]
    assert transformed["trip_start_day"].tolist() == [1, 7] + 8 * [3]
    assert transformed["trip_start_month"].tolist() == 10 * [6]
    assert transformed["pickup_community_area"].tolist() == [8, 8, 8, 8, 8, 8, 8, 0, 8, 8]
    assert transformed["dropoff_community_area"].tolist() == 9 * [32] + [0]


def test_crosses(transformed):
    assert transformed["hour_of_week"].tolist() == [1 * 25 + 1, 7 * 25 + 24] + 8 * [3 * 25 + 13]
    pairs = 7 * ["8>32"] + ["0>32", "8>32", "8>0"]
    assert transformed["route"].tolist() == [int(tf.strings.to_hash_bucket_fast(pair, 1000)) for pair in pairs]


def test_label(transformed):
    # Fare 0 with a tip; 1.00 of 1.72; tip unknown; twice no tip; fare unknown with a tip; no tip.
    assert transformed["big_tip"].dtype == np.int64
    assert transformed["big_tip"].tolist() == [0, 1, -1, 0, 0, *5 * [-1]]


def test_features_do_without_tips_and_do_not_depend_on_them(transform_graph, transformed):
    served = apply(transform_graph, TRIPS, without=("tips",))
    assert set(served) == set(transformed) - {"big_tip"}
    for name, values in served.items():
        np.testing.assert_array_equal(values, transformed[name])


def test_the_transformed_schema_tells_the_model_what_to_expect(transform_graph):
    features = {f.name: f for f in from_schema(transform_graph.transformed_metadata.schema, "big_tip")}
    assert "big_tip" not in features
    assert all(f.shape == () for f in features.values())
    numbers = {name for name, f in features.items() if f.num_categories is None}
    assert numbers == {"fare", "trip_miles", "trip_seconds"}
    assert features["fare"] == Feature("fare", tf.float32, (), None)
    assert features["payment_type"] == Feature("payment_type", tf.int64, (), 3)
    sizes = {name: f.num_categories for name, f in features.items()}
    assert (sizes["trip_start_hour"], sizes["trip_start_day"], sizes["trip_start_month"]) == (25, 8, 13)
    assert (sizes["pickup_community_area"], sizes["dropoff_latitude"], sizes["fare_bucket"]) == (78, 11, 21)
    assert (sizes["hour_of_week"], sizes["route"], sizes["company"]) == (200, 1000, 3)


def test_a_label_that_is_not_there_is_named(transform_graph):
    with pytest.raises(TrainingError, match=r"'tip' is not among the transformed features: big_tip, company"):
        from_schema(transform_graph.transformed_metadata.schema, "tip")
