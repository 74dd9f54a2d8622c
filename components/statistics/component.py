"""StatisticsGen: TFDV's statistics by columns, in this process, and with missing values counted.

Stock StatisticsGen builds a Beam graph of dozens of stages and hands rows over between them. Here the rows are decoded
on all cores, and TFDV's own generators are fed with columns; most frequent values are counted by `ValueCounts`. Where
the environment names a runner, they are computed by TFDV's Beam graph. Both give the same statistics, but for
quantiles, which TFDV sketches: within its own error.

ExampleGen writes a missing cell as a feature without values, as stock does. Stock StatisticsGen counts such a feature
as present, so that a presence rule of the schema can never fail; here it counts as missing. Texts also get a histogram
of their lengths; TFDV's own statistics hold only the mean length.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import tensorflow_data_validation as tfdv
from tensorflow_data_validation.statistics import stats_impl
from tensorflow_data_validation.statistics.generators.top_k_uniques_sketch_stats_generator import (
    TopKUniquesSketchStatsGenerator,
)
from tfx.components.statistics_gen import component, executor
from tfx.dsl.components.base import base_beam_executor, executor_spec
from tfx.types import artifact_utils
from tfx.utils.typing_utils import ArtifactMultiDict as Artifacts
from tfx_bsl.tfxio.tf_example_record import TFExampleRecord

from components.artifacts import number_of_rows, split_files, split_pattern
from components.engine import is_columnar
from components.progress import PROGRESS, RowProgress, counting_rows
from components.statistics import histograms
from components.statistics.columns import kinds_of, missing_as_null, read_columns
from components.statistics.lengths import StringLengths
from components.statistics.value_counts import ValueCounts


class Executor(base_beam_executor.BaseBeamExecutor):
    """Writes `FeatureStats.pb` for each split, in the same place as stock StatisticsGen."""

    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:  # noqa: N802
        """Computes the statistics of every split of `examples`."""
        progress_path = exec_properties.pop(PROGRESS, None)
        examples = artifact_utils.get_single_instance(input_dict["examples"])
        statistics = artifact_utils.get_single_instance(output_dict["statistics"])
        statistics.split_names = examples.split_names
        statistics.span = examples.span
        histograms.use_them()
        outputs = {}
        for split in artifact_utils.decode_split_names(examples.split_names):
            folder = artifact_utils.get_split_uri([statistics], split)
            os.makedirs(folder, exist_ok=True)
            outputs[split] = os.path.join(folder, executor.DEFAULT_FILE_NAME)
        if is_columnar(self._beam_pipeline_args):
            kinds = kinds_of(examples.uri)
            with counting_rows(progress_path, number_of_rows(examples)) as progress:
                for split, output in outputs.items():
                    made = generate_statistics(split_files(examples, split), kinds, progress)
                    Path(output).write_bytes(made.SerializeToString())
            return
        with self._make_beam_pipeline() as pipeline:
            for split, output in outputs.items():
                _ = pipeline | f"Statistics[{split}]" >> _by_beam(split_pattern(examples, split), output)


class StatisticsGen(component.StatisticsGen):
    """Stock StatisticsGen's inputs and outputs with the executor above."""

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)


def generate_statistics(
    files: Sequence[str], kinds: Mapping[str, str] | None, progress: RowProgress | None = None
) -> Any:
    """Returns the `DatasetFeatureStatisticsList` of the rows in gzip TFRecord files of tf.Examples.

    Args:
        files: In the order of the rows.
        kinds: See `columns.kinds_of`.
        progress: Counts the rows.
    """
    progress = progress or RowProgress(None)
    options = _options()
    counts = ValueCounts(options.num_top_values, options.num_rank_histogram_buckets)
    generators: list[Any] = [
        counts if isinstance(generator, TopKUniquesSketchStatsGenerator) else generator
        for generator in stats_impl.get_generators(options, in_memory=True)
    ]
    accumulators = [generator.create_accumulator() for generator in generators]
    for batch in read_columns(files, kinds):
        accumulators = [
            generator.add_input(accumulator, batch)
            for generator, accumulator in zip(generators, accumulators, strict=True)
        ]
        progress.add(batch.num_rows)
    return stats_impl.extract_statistics_output(accumulators, generators)


@beam.ptransform_fn
def _by_beam(pipeline: beam.Pipeline, pattern: str, output: str) -> Any:
    """Computes the split with TFDV's Beam graph over record batches."""
    batches = pipeline | TFExampleRecord(pattern, telemetry_descriptors=["StatisticsGen"]).BeamSource()
    statistics = batches | beam.Map(missing_as_null) | tfdv.GenerateStatistics(_options())
    return statistics | tfdv.WriteStatisticsToBinaryFile(output)


def _options() -> tfdv.StatsOptions:
    return tfdv.StatsOptions(generators=[StringLengths()])
