"""Transform: TFT's analysis over large batches, then the saved graph applied to whole batches.

At small and medium sizes, stock Transform spends its time on Beam's overhead per stage and per element, on statistics
that StatisticsGen has already computed, and on building a wheel of the user's module. Here the analysis is still TFT's
own Beam graph; its result is then applied file by file, without sending rows through Beam. The transformed tensors
equal stock's.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import apache_beam as beam
import pyarrow as pa
import tensorflow as tf
import tensorflow_transform as tft
import tensorflow_transform.beam as tft_beam
from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_transform.tf_metadata import dataset_metadata, metadata_io
from tfx.components.transform import component
from tfx.components.util import udf_utils
from tfx.dsl.components.base import base_beam_executor, executor_spec
from tfx.types import Artifact, artifact_utils
from tfx.utils.typing_utils import ArtifactMultiDict as Artifacts
from tfx_bsl.coders.example_coder import RecordBatchToExamplesEncoder
from tfx_bsl.tfxio import tf_example_record
from tfx_bsl.tfxio.tensor_to_arrow import TensorsToRecordBatchConverter

from components import stacking
from components.artifacts import read_schema, split_files, split_pattern
from components.autograph import bypass_libraries
from components.statistics import columns
from components.statistics.columns import mean_bytes, read_serialized
from contracts.errors import SettingsError

BATCH_ROWS = 65_536
"""The most rows in a record batch: large enough that per-batch costs vanish."""

BATCH_BYTES = 64 * 2**20
"""About how many bytes a record batch has: small enough for a worker's memory. Wide rows, such as images, come in
smaller batches."""


class Executor(base_beam_executor.BaseBeamExecutor):
    """Analyzes the `train` split with the recipe's `preprocessing_fn` and transforms every split."""

    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:  # noqa: N802
        """Writes `transform_graph` (a TFTransformOutput) and `transformed_examples` (a gzip TFRecord a source file).

        Raises:
            SettingsError: The recipe has `transform.params`, but its `preprocessing_fn` takes none.
            Exception: Whatever the recipe's `preprocessing_fn` raises.
        """
        bypass_libraries()
        examples = artifact_utils.get_single_instance(input_dict["examples"])
        transformed = artifact_utils.get_single_instance(output_dict["transformed_examples"])
        graph_path = artifact_utils.get_single_uri(output_dict["transform_graph"])
        schema = read_schema(artifact_utils.get_single_instance(input_dict["schema"]))

        self._analyze(_preprocessing_fn(exec_properties), schema, examples, graph_path)
        transformed.split_names = examples.split_names
        transformed.span = examples.span
        work = []
        splits = artifact_utils.decode_split_names(examples.split_names)
        for split in splits:
            folder = artifact_utils.get_split_uri([transformed], split)
            os.makedirs(folder, exist_ok=True)
            for source in split_files(examples, split):
                work.append((source, os.path.join(folder, f"transformed_{os.path.basename(source)}")))
        with self._make_beam_pipeline() as pipeline:
            elements = pipeline | "Files" >> beam.Create(work)
            # With one file per split there is little to distribute, and distribution has its price.
            spread = elements | "Spread" >> beam.Reshuffle() if len(work) > len(splits) else elements
            spread | "Transform" >> beam.ParDo(_TransformFile(graph_path))

    def _analyze(
        self, preprocessing_fn: Callable[..., Any], schema: schema_pb2.Schema, examples: Artifact, graph_path: str
    ) -> None:
        # An analyzer sees no more than a row's numbers; images that are merely decoded are never analyzed.
        rows_per_batch = batch_rows(mean_bytes(split_files(examples, "train")))
        pattern = split_pattern(examples, "train")
        source = tf_example_record.TFExampleRecord(pattern, telemetry_descriptors=["Transform"], schema=schema)
        context = tft_beam.Context(
            temp_dir=os.path.join(self._get_tmp_dir(), "tft"),
            desired_batch_size=rows_per_batch,
            # The compatibility mode traces in TF 1 graphs and costs a second session per batch.
            force_tf_compat_v1=False,
        )
        columns = stacking.stackable(preprocessing_fn, schema, os.path.join(self._get_tmp_dir(), "trace"))
        with self._make_beam_pipeline() as pipeline, context:
            rows = pipeline | "Read" >> source.BeamSource(rows_per_batch)
            adapter = source.TensorAdapterConfig()
            if columns:
                rows |= "Stack" >> beam.Map(stacking.stacked, columns)
                preprocessing_fn = stacking.on_stack(preprocessing_fn, columns)
                adapter = stacking.adapter_config(adapter, columns)
            transform_fn = (rows, adapter) | tft_beam.AnalyzeDataset(preprocessing_fn)
            transform_fn | tft_beam.WriteTransformFn(graph_path)
        if columns:
            stacking.write_unstacked(graph_path, schema, columns)
        raw_metadata = os.path.join(graph_path, tft.TFTransformOutput.RAW_METADATA_DIR)
        metadata_io.write_metadata(dataset_metadata.DatasetMetadata(schema), raw_metadata)


class _TransformFile(beam.DoFn):
    """Applies a saved transform graph to gzip TFRecord files of tf.Examples."""

    def __init__(self, graph_path: str) -> None:
        self._graph_path = graph_path

    def setup(self) -> None:
        output = tft.TFTransformOutput(self._graph_path)
        self._feature_spec = output.raw_feature_spec()
        self._transform = stacking.RawTransform(self._graph_path)
        self._row_bytes = _parsed_bytes(output.transformed_feature_spec())

    def process(self, element: tuple[str, str]) -> Iterable[None]:
        source, target = element
        options = tf.io.TFRecordOptions(compression_type="GZIP", compression_level=1)
        rows = batch_rows(mean_bytes([source]) + self._row_bytes)
        with tf.io.TFRecordWriter(target, options) as writer:
            for serialized in read_serialized([source], rows):
                tensors = self._transform(tf.io.parse_example(serialized, self._feature_spec))
                for record in _encode(tensors):
                    writer.write(record)
        return ()


def batch_rows(row_bytes: float) -> int:
    """The number of rows in a record batch.

    Args:
        row_bytes: The mean size of a row.
    """
    return columns.batch_rows(row_bytes, BATCH_ROWS, BATCH_BYTES)


def _parsed_bytes(spec: Mapping[str, Any]) -> int:
    """The size in bytes of the dense features of a transformed row."""
    dense = [feature for feature in spec.values() if isinstance(feature, tf.io.FixedLenFeature)]
    return sum(tf.TensorShape(feature.shape).num_elements() * feature.dtype.size for feature in dense)


def _preprocessing_fn(exec_properties: Mapping[str, Any]) -> Callable[..., Any]:
    """The recipe's function with its `custom_config` filled in, as in stock Transform."""
    function = udf_utils.get_fn(exec_properties, "preprocessing_fn")
    params = json.loads(exec_properties.get("custom_config") or "null") or {}
    if "custom_config" in inspect.signature(function).parameters:
        return functools.partial(function, custom_config=params)
    if params:
        raise SettingsError(
            f"The recipe gives transform.params ({', '.join(params)}), but {exec_properties['preprocessing_fn']} takes "
            "no custom_config.",
            "Write preprocessing_fn(inputs, custom_config), or take transform.params out of recipe.yaml.",
        )
    return function  # type: ignore[no-any-return]


def _encode(tensors: dict[str, Any]) -> list[bytes]:
    """Serializes tensors of shape [batch, ...] as `batch` tf.Examples."""
    specs = {name: _batched_spec(tensor) for name, tensor in tensors.items()}
    batch: pa.RecordBatch = TensorsToRecordBatchConverter(specs).convert(tensors)
    return RecordBatchToExamplesEncoder().encode(batch)  # type: ignore[no-any-return]


def _batched_spec(tensor: Any) -> tf.TypeSpec:
    spec = tf.type_spec_from_value(tensor)
    shape = [None, *spec.shape[1:]]
    return (
        tf.SparseTensorSpec(shape, spec.dtype)
        if isinstance(spec, tf.SparseTensorSpec)
        else tf.TensorSpec(shape, spec.dtype)
    )


class Transform(component.Transform):
    """Stock Transform's inputs and outputs with the executor above.

    Args:
        examples: Raw Examples with a `train` split.
        schema: Their schema.
        preprocessing_fn: The import path of the user's function.
        params: Its `custom_config`.
    """

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)

    def __init__(self, examples: Any, schema: Any, preprocessing_fn: str, params: dict[str, Any]) -> None:
        super().__init__(
            examples=examples,
            schema=schema,
            preprocessing_fn=preprocessing_fn,
            custom_config=params,
            disable_analyzer_cache=True,
            disable_statistics=True,
        )
