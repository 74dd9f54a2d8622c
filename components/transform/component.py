"""Transform: the recipe's `preprocessing_fn`, analyzed over the `train` split and applied to every split.

Stock Transform spends its time on Beam's overhead per stage and per element, on statistics that StatisticsGen has
already computed, and on building a wheel of the user's module. Here rows are parsed, transformed, encoded and
compressed on all cores of this process, and so is what TFT's analyzers need of them added up; where the environment
names a runner, Beam does both. The transformed tensors equal stock's.
"""

from __future__ import annotations

import functools
import inspect
import json
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import apache_beam as beam
import tensorflow_transform as tft
from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_transform.tf_metadata import dataset_metadata, metadata_io
from tfx.components.transform import component
from tfx.components.util import udf_utils
from tfx.dsl.components.base import base_beam_executor, executor_spec
from tfx.types import Artifact, artifact_utils
from tfx.utils.typing_utils import ArtifactMultiDict as Artifacts

from components.artifacts import number_of_rows, read_schema, split_files, split_pattern
from components.autograph import bypass_libraries
from components.cores import on_all_cores
from components.engine import NotColumnar, is_columnar
from components.progress import PROGRESS, RowProgress, counting_rows
from components.transform import analysis_on_beam, stacking
from components.transform.applying import Applied
from components.transform.columnar import analysis
from components.transform.training_rows import TrainingRows
from contracts.errors import SettingsError


class Executor(base_beam_executor.BaseBeamExecutor):
    """Analyzes the `train` split with the recipe's `preprocessing_fn` and transforms every split."""

    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:  # noqa: N802
        """Writes `transform_graph` (a TFTransformOutput) and `transformed_examples` (a gzip TFRecord a source file).

        Raises:
            SettingsError: The recipe has `transform.params`, but its `preprocessing_fn` takes none.
            Exception: Whatever the recipe's `preprocessing_fn` raises.
        """
        bypass_libraries()
        # Removed, because TFX publishes all properties that are left.
        progress_path = exec_properties.pop(PROGRESS, None)
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
        if is_columnar(self._beam_pipeline_args):
            with counting_rows(progress_path, number_of_rows(examples)) as progress:
                Applied(graph_path).transform(work, on_all_cores, progress)
            return
        with self._make_beam_pipeline() as pipeline:
            elements = pipeline | "Files" >> beam.Create(work)
            # With one file per split there is little to distribute, and distribution has its price.
            spread = elements | "Spread" >> beam.Reshuffle() if len(work) > len(splits) else elements
            spread | "Transform" >> beam.ParDo(_TransformFile(graph_path))

    def _analyze(
        self, preprocessing_fn: Callable[..., Any], schema: schema_pb2.Schema, examples: Artifact, graph_path: str
    ) -> None:
        stacked = stacking.stackable(preprocessing_fn, schema, os.path.join(self._get_tmp_dir(), "trace"))
        if stacked:
            preprocessing_fn = stacking.on_stack(preprocessing_fn, stacked)
        rows = TrainingRows(split_files(examples, "train"), split_pattern(examples, "train"), schema, stacked)
        folder = os.path.join(self._get_tmp_dir(), "tft")
        if not self._by_columns(preprocessing_fn, rows, graph_path, folder):
            with self._make_beam_pipeline() as pipeline:
                analysis_on_beam.analyze(pipeline, preprocessing_fn, rows, graph_path, folder)
        if stacked:
            stacking.write_unstacked(graph_path, schema, stacked)
        raw_metadata = os.path.join(graph_path, tft.TFTransformOutput.RAW_METADATA_DIR)
        metadata_io.write_metadata(dataset_metadata.DatasetMetadata(schema), raw_metadata)

    def _by_columns(self, *arguments: Any) -> bool:
        """Analyzes in this process unless the environment or `preprocessing_fn` leaves it to Beam."""
        if not is_columnar(self._beam_pipeline_args):
            return False
        try:
            analysis.analyze(*arguments)
        except NotColumnar as why:
            logging.info("Analyzed by TFT on Beam, not by columns: %s.", why)
            return False
        return True


class _TransformFile(beam.DoFn):
    """Applies a saved transform graph to files."""

    def __init__(self, graph_path: str) -> None:
        self._graph_path = graph_path

    def setup(self) -> None:
        self._applied = Applied(self._graph_path)

    def process(self, element: tuple[str, str]) -> Iterable[None]:
        self._applied.transform([element], map, RowProgress(None))
        return ()


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
