"""The columnar analysis against TFT's on Beam: the same rows and functions."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import apache_beam as beam
import every_analyzer
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_transform as tft
import wide_recipe
from google.protobuf import text_format
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_transform.tf_metadata import dataset_metadata, metadata_io
from tfx.components import __path__ as tfx_components
from tiny_artifacts import new_examples, serialized

from components.artifacts import split_files, split_pattern
from components.engine import NotColumnar
from components.transform import analysis_on_beam, applying, stacking
from components.transform.columnar import analysis
from components.transform.training_rows import TrainingRows
from contracts.errors import DataError
from recipes.taxi import features as taxi

PROJECT = Path(__file__).parents[3]
TAXI = Path(tfx_components[0]).parent / "examples/chicago_taxi_pipeline/data/simple/data.csv"


def taxi_rows() -> list[dict[str, Any]]:
    """The first thousand trips, as ExampleGen writes them."""
    schema = text_format.Parse((PROJECT / "schemas/taxi/schema.pbtxt").read_text(), schema_pb2.Schema())
    kinds = {feature.name: feature.type for feature in schema.feature}
    convert = {schema_pb2.INT: int, schema_pb2.FLOAT: float, schema_pb2.BYTES: str}
    with TAXI.open() as file:
        trips = [row for row, _ in zip(csv.DictReader(file), range(1000), strict=False)]
    return [{name: convert[kinds[name]](cell) if cell else None for name, cell in trip.items()} for trip in trips]


class Both:
    """Transform graphs of both engines.

    Args:
        folder: For everything.
        rows: The training rows.
        schema: Their schema, as text.
    """

    def __init__(self, folder: Path, rows: list[dict[str, Any]], schema: str) -> None:
        self.folder = folder
        self.rows = rows
        self.schema = text_format.Parse(schema, schema_pb2.Schema())
        self.examples = new_examples(folder, {"train": rows})

    def training_rows(self, stacked: tuple[str, ...] = ()) -> TrainingRows:
        files, pattern = split_files(self.examples, "train"), split_pattern(self.examples, "train")
        return TrainingRows(files, pattern, self.schema, stacked)

    def analyze(self, preprocessing_fn: Callable[..., Any], stacked: tuple[str, ...] = ()) -> tuple[Path, Path]:
        """The folders of the columnar and of Beam's transform graph."""
        rows = self.training_rows(stacked)
        columnar, on_beam = self.folder / "columnar", self.folder / "on_beam"
        analysis.analyze(preprocessing_fn, rows, str(columnar), str(self.folder / "a-temporary"))
        with beam.Pipeline() as pipeline:
            folder = str(self.folder / "b-temporary")
            analysis_on_beam.analyze(pipeline, preprocessing_fn, rows, str(on_beam), folder)
        for graph in (columnar, on_beam):
            metadata = dataset_metadata.DatasetMetadata(self.schema)
            metadata_io.write_metadata(metadata, str(graph / tft.TFTransformOutput.RAW_METADATA_DIR))
        return columnar, on_beam

    def outputs(self, graph: Path) -> dict[str, Any]:
        """What the graph makes of the rows."""
        output = tft.TFTransformOutput(str(graph))
        rows = tf.io.parse_example([serialized(row) for row in self.rows], output.raw_feature_spec())
        made = output.transform_features_layer()(rows)
        return {
            name: (tf.sparse.to_dense(one) if isinstance(one, tf.SparseTensor) else one) for name, one in made.items()
        }


def assert_equal(columnar: Path, on_beam: Path) -> None:
    """Asserts that two transform graphs are the same but for names that count functions and temporary folders."""
    files = {path.relative_to(on_beam) for path in on_beam.rglob("*") if path.is_file()}
    assert {path.relative_to(columnar) for path in columnar.rglob("*") if path.is_file()} == files
    for file in files - {Path("transform_fn/saved_model.pb"), Path("transform_fn/fingerprint.pb")}:
        if file.suffix == ".gz":
            read = [
                list(tf.data.TFRecordDataset(str(graph / file), "GZIP").as_numpy_iterator())
                for graph in (columnar, on_beam)
            ]
            assert read[0] == read[1]
        elif file.name != "variables.data-00000-of-00001":
            assert (columnar / file).read_bytes() == (on_beam / file).read_bytes(), file
    assert _graph(columnar) == _graph(on_beam)


def _graph(folder: Path) -> list[str]:
    """The texts of the graph's nodes and of its functions, sorted: TensorFlow writes them in any order."""
    model = saved_model_pb2.SavedModel.FromString((folder / "transform_fn/saved_model.pb").read_bytes())
    [graph] = model.meta_graphs
    texts = [_text(node) for node in graph.graph_def.node]
    for function in graph.graph_def.library.function:
        nodes = sorted(_text(node) for node in function.node_def)
        del function.node_def[:]
        texts.append(_text(function) + "".join(nodes))
    return sorted(texts)


def _text(message: Any) -> str:
    return _unnumbered(text_format.MessageToString(message))


def _unnumbered(text: str) -> str:
    text = re.sub(r"[^\"' ]*/[ab]-temporary/", "", text)
    return re.sub(r"(?<=_)\d{3,}|(?<=[_\"])\d{2,}(?=\")|(?<=__inference_)\d+", "N", text)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Both:
    return Both(tmp_path_factory.mktemp("made"), every_analyzer.rows(500), every_analyzer.SCHEMA)


def test_taxi(tmp_path: Path) -> None:
    both = Both(tmp_path, taxi_rows(), (PROJECT / "schemas/taxi/schema.pbtxt").read_text())
    assert_equal(*both.analyze(taxi.preprocessing_fn))


def test_stacked_columns(tmp_path: Path) -> None:
    both = Both(tmp_path, wide_recipe.TRAIN, wide_recipe.SCHEMA)
    stacked = tuple(wide_recipe.TOGETHER)
    assert_equal(*both.analyze(stacking.on_stack(wide_recipe.preprocessing_fn, stacked), stacked))


@pytest.mark.parametrize("preprocessing_fn", [every_analyzer.numbers_fn, every_analyzer.words_fn])
def test_every_analyzer(made: Both, tmp_path: Path, preprocessing_fn: Callable[..., Any]) -> None:
    made.folder = tmp_path
    assert_equal(*made.analyze(preprocessing_fn))


def test_many_batches_change_last_digits_alone_and_are_the_same_each_time(
    made: Both, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, rows in (("once", 16_384), ("first", 32), ("second", 32)):
        monkeypatch.setattr(applying, "batch_rows", lambda row_bytes, rows=rows: rows)
        analysis.analyze(few_fn, made.training_rows(), str(tmp_path / name), str(tmp_path / "temporary"))
        metadata = dataset_metadata.DatasetMetadata(made.schema)
        metadata_io.write_metadata(metadata, str(tmp_path / name / tft.TFTransformOutput.RAW_METADATA_DIR))
    once, first, second = (made.outputs(tmp_path / name) for name in ("once", "first", "second"))
    for name, values in once.items():
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
        np.testing.assert_allclose(first[name], values, rtol=1e-5, atol=1e-6, err_msg=name)


def few_fn(inputs: Mapping[str, Any]) -> dict[str, tf.Tensor]:
    """A sum, buckets and ids."""
    return {
        "z_score": tft.scale_to_z_score(inputs["dense"]),
        "buckets": tft.bucketize(inputs["dense"], 4),
        "ids": tft.compute_and_apply_vocabulary(inputs["words"]),
    }


def test_what_is_not_known_is_left_to_beam(made: Both, tmp_path: Path) -> None:
    def with_transform(inputs: Mapping[str, Any]) -> dict[str, tf.Tensor]:
        [total] = tft.experimental.ptransform_analyzer(
            [inputs["dense"]], beam.combiners.Count.Globally(), [tf.int64], [[]]
        )
        return {"total": tf.zeros_like(inputs["count"]) + total}

    with pytest.raises(NotColumnar, match=r"^PTransform\[ptransform\] is a transform of Beam$"):
        analysis.analyze(with_transform, made.training_rows(), str(tmp_path / "graph"), str(tmp_path / "temporary"))
    assert not (tmp_path / "graph").exists()


def test_several_values_in_a_stacked_column_are_refused(tmp_path: Path) -> None:
    rows = [row | {"float1": [1.0, 2.0]} for row in wide_recipe.TRAIN[:3]]
    both, stacked = Both(tmp_path, rows, wide_recipe.SCHEMA), tuple(wide_recipe.TOGETHER)
    with pytest.raises(DataError, match=r"^The column float1 has 2 values in a row, and its schema allows one\."):
        analysis.analyze(
            stacking.on_stack(wide_recipe.preprocessing_fn, stacked),
            both.training_rows(stacked),
            str(tmp_path / "graph"),
            str(tmp_path / "temporary"),
        )
