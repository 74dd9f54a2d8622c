"""The curated schema against images of each kind, and with one fault planted at a time."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import tensorflow_data_validation as tfdv
from PIL import Image
from tensorflow_data_validation.statistics import stats_impl, stats_options

SCHEMA = Path(__file__).parents[3] / "schemas/cifar10/schema.pbtxt"


def image(shape: tuple[int, ...], kind: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, shape, np.uint8)).save(file, kind)
    return file.getvalue()


DIGITS = {
    "image": [image((8, 8), "PNG")] * 20,
    "label": [row % 10 for row in range(20)],
    "class": [str(row % 10).encode() for row in range(20)],
    "name": [f"digits.csv.gz:{row}".encode() for row in range(20)],
}
CIFAR = {
    "image": [image((32, 32, 3), "PNG")] * 20,
    "label": [row % 10 for row in range(20)],
    "class": [(b"airplane", b"automobile")[row % 2] for row in range(20)],
    "name": [f"data_batch_1:{row}".encode() for row in range(20)],
}
OWN = {
    "image": [image((30, 40, 3), "JPEG"), image((9, 9), "GIF"), image((50, 20, 3), "BMP")] * 7,
    "label": [0, 1, 2] * 7,
    "class": [b"caf\xe9", b"flower pot", b"\xe7\x8c\xab"] * 7,
    "name": [f"folder/{row}".encode() for row in range(21)],
}


def anomalies(columns: dict[str, list], environment: str = "TRAINING") -> dict[str, str]:
    """Returns column -> what is wrong with it."""
    arrays = [pa.array([None if value is None else [value] for value in values]) for values in columns.values()]
    batch = pa.RecordBatch.from_arrays(arrays, list(columns))
    statistics = stats_impl.generate_statistics_in_memory(batch, stats_options.StatsOptions())
    schema = tfdv.load_schema_text(str(SCHEMA))
    result = tfdv.validate_statistics(statistics, schema, environment=environment)
    return {name: info.short_description for name, info in result.anomaly_info.items()}


@pytest.mark.parametrize("columns", [DIGITS, CIFAR, OWN], ids=["digits", "cifar10", "own"])
def test_images_of_each_kind_have_no_anomalies(columns):
    assert anomalies(columns) == {}
    assert anomalies({"image": columns["image"]}, "SERVING") == {}


@pytest.mark.parametrize("column", ["image", "label", "class", "name"])
def test_a_missing_column_or_value_is_an_anomaly(column):
    assert anomalies({name: values for name, values in CIFAR.items() if name != column}) == {column: "Column dropped"}
    assert list(anomalies(CIFAR | {column: [None, *CIFAR[column][1:]]})) == [column]


def test_a_negative_label_is_an_anomaly():
    assert list(anomalies(CIFAR | {"label": [-1, *CIFAR["label"][1:]]})) == ["label"]
