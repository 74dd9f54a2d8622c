"""StatisticsGen: TFDV's statistics, without Beam's per-stage cost for small data, and with missing values counted.

At 15,000 rows, stock StatisticsGen spends four fifths of its time on building TFDV's Beam graph and handing over
between its stages. Small splits are therefore computed by TFDV's own in-memory path, one Beam element per split; larger
ones by TFDV's Beam graph. Both give the same statistics.

ExampleGen writes a missing cell as a feature without values, as stock does. Stock StatisticsGen counts such a feature
as present, so that a presence rule of the schema can never fail; here it counts as missing. Texts also get a histogram
of their lengths; TFDV's own statistics hold only the mean length.
"""

from __future__ import annotations

import gzip
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf
import tensorflow_data_validation as tfdv
from tensorflow_data_validation.statistics import stats_impl
from tensorflow_data_validation.statistics.generators import stats_generator
from tensorflow_metadata.proto.v0 import statistics_pb2
from tfx.components.statistics_gen import component, executor
from tfx.dsl.components.base import base_beam_executor, executor_spec
from tfx.types import artifact_utils
from tfx.utils.typing_utils import ArtifactMultiDict as Artifacts
from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder
from tfx_bsl.tfxio.tf_example_record import TFExampleRecord

from components import tfdv_histograms
from components.artifacts import split_files, split_pattern
from contracts.file_names import STRING_LENGTHS

MAX_BINS = 10
EXACT_BITS = 7
"""Longer lengths are rounded down to this many leading bits, within 2 %, so that the counters stay small."""

Counts = Counter[int]


class StringLengths(stats_generator.CombinerFeatureStatsGenerator):
    """Counts the lengths in bytes of a feature's texts and sorts them into up to ten bins of equal width."""

    def __init__(self) -> None:
        super().__init__("StringLengths")

    def create_accumulator(self) -> Counts:
        """Empty counts by length."""
        return Counter()

    def add_input(self, accumulator: Counts, feature_path: object, feature_array: pa.Array) -> Counts:
        """Adds the lengths of a batch; values other than text are ignored."""
        values = None if pa.types.is_null(feature_array.type) else feature_array.flatten()
        if values is None or not (pa.types.is_large_binary(values.type) or pa.types.is_binary(values.type)):
            return accumulator
        for entry in pc.value_counts(pc.binary_length(values)).to_pylist():
            accumulator[_rounded(entry["values"])] += entry["counts"]
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[Counts]) -> Counts:
        """The sum of the counts of several batches."""
        return sum(accumulators, Counter())

    def extract_output(self, accumulator: Counts) -> statistics_pb2.FeatureNameStatistics:
        """The custom statistic; empty if there are no texts."""
        result = statistics_pb2.FeatureNameStatistics()
        if accumulator:
            custom = result.custom_stats.add(name=STRING_LENGTHS)
            for low, high, count in length_bins(accumulator):
                custom.histogram.buckets.add(low_value=low, high_value=high, sample_count=count)
        return result


def length_bins(counts: Counts) -> list[tuple[int, int, int]]:
    """Up to ten bins `(low, high, count)` of equal width, from low up to but not including high."""
    least, most = min(counts), max(counts)
    width = -(-(most - least + 1) // MAX_BINS)
    starts = range(least, most + 1, width)
    sums = Counter[int]()
    for length, count in counts.items():
        sums[(length - least) // width] += count
    return [(start, start + width, sums[index]) for index, start in enumerate(starts)]


def _rounded(length: int) -> int:
    lost = max(0, length.bit_length() - EXACT_BITS)
    return length >> lost << lost


SMALL_BYTES = 16 * 2**20
"""Up to this many bytes of tf.Examples, a split is decoded into one batch in memory, which takes twenty times as many.

From twice as many on, about 100,000 taxi rows, TFDV's Beam graph is also the faster one.
"""

READ_BYTES = 2**20


class Executor(base_beam_executor.BaseBeamExecutor):
    """Writes `FeatureStats.pb` for each split, in the same place as stock StatisticsGen."""

    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:  # noqa: N802
        """Computes the statistics of every split of `examples`."""
        examples = artifact_utils.get_single_instance(input_dict["examples"])
        statistics = artifact_utils.get_single_instance(output_dict["statistics"])
        statistics.split_names = examples.split_names
        statistics.span = examples.span
        tfdv_histograms.use_them()
        with self._make_beam_pipeline() as pipeline:
            for split in artifact_utils.decode_split_names(examples.split_names):
                folder = artifact_utils.get_split_uri([statistics], split)
                os.makedirs(folder, exist_ok=True)
                files = split_files(examples, split)
                output = os.path.join(folder, executor.DEFAULT_FILE_NAME)
                small = _is_small(files)
                work = _in_memory(files, output) if small else _distributed(split_pattern(examples, split), output)
                pipeline | f"Statistics[{split}]" >> work


class StatisticsGen(component.StatisticsGen):
    """Stock StatisticsGen's inputs and outputs with the executor above."""

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)


@beam.ptransform_fn
def _in_memory(pipeline: beam.Pipeline, files: list[str], output: str) -> Any:
    """Computes the split as a single Beam element."""
    return pipeline | beam.Create([(files, output)]) | beam.ParDo(_WriteStatistics())


@beam.ptransform_fn
def _distributed(pipeline: beam.Pipeline, pattern: str, output: str) -> Any:
    """Computes the split with TFDV's Beam graph over record batches."""
    batches = pipeline | TFExampleRecord(pattern, telemetry_descriptors=["StatisticsGen"]).BeamSource()
    statistics = batches | beam.Map(missing_as_null) | tfdv.GenerateStatistics(_options())
    return statistics | tfdv.WriteStatisticsToBinaryFile(output)


class _WriteStatistics(beam.DoFn):
    """Reads the TFRecord files of a split and writes its `DatasetFeatureStatisticsList`."""

    def process(self, element: tuple[list[str], str]) -> Iterable[None]:
        files, output = element
        statistics = stats_impl.generate_statistics_in_memory(decode(files), _options())
        Path(output).write_bytes(statistics.SerializeToString())
        return ()


def _is_small(files: Iterable[str]) -> bool:
    """Whether the gzip files hold at most `SMALL_BYTES`; text shrinks to a tenth, numbers hardly."""
    left = SMALL_BYTES
    for path in files:
        with gzip.open(path) as file:
            while left >= 0 and (data := file.read(READ_BYTES)):
                left -= len(data)
    return left >= 0


def _options() -> tfdv.StatsOptions:
    return tfdv.StatsOptions(generators=[StringLengths()])


def read_serialized(files: list[str], batch_size: int) -> Iterable[Any]:
    """Yields the records of gzip TFRecord files as numpy arrays of bytes, shape [<= batch_size]."""
    records = tf.data.TFRecordDataset(files, compression_type="GZIP")
    return records.batch(batch_size).as_numpy_iterator()  # type: ignore[no-any-return]


def decode(files: list[str]) -> pa.RecordBatch:
    """Decodes gzip TFRecord files of tf.Examples into a record batch: one list column per feature, missing as null."""
    serialized = [record for batch in read_serialized(files, 2**16) for record in batch.tolist()]
    return missing_as_null(ExamplesToRecordBatchDecoder().DecodeBatch(serialized))


def missing_as_null(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same batch with null in place of lists without values."""
    columns = [column if pa.types.is_null(column.type) else _empty_as_null(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _empty_as_null(column: pa.LargeListArray) -> pa.LargeListArray:
    lengths = pc.list_value_length(column).fill_null(0)
    if pc.min(lengths).as_py() != 0:
        return column
    starts = pc.if_else(pc.greater(lengths, 0), column.offsets[:-1], None)
    offsets = pa.concat_arrays([starts, column.offsets[-1:]])
    return type(column).from_arrays(offsets, column.values)
