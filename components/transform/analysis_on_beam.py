"""TFT's own analysis, on Beam and over large batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apache_beam as beam
import tensorflow_transform.beam as tft_beam

from components.statistics import columns
from components.transform import stacking
from components.transform.training_rows import TrainingRows

BATCH_ROWS = 65_536
"""The most rows in a record batch: large enough that Beam's costs vanish."""

BATCH_BYTES = 64 * 2**20
"""About how many bytes a record batch has: small enough for a worker's memory."""


def analyze(
    pipeline: beam.Pipeline, preprocessing_fn: Callable[..., Any], rows: TrainingRows, graph_path: str, folder: str
) -> None:
    """Writes the transform graph of a `preprocessing_fn` and the schema of what it makes.

    Args:
        pipeline: What does the work.
        preprocessing_fn: Of the inputs that `rows` has.
        rows: What is analyzed.
        graph_path: The folder to write, of a TFTransformOutput.
        folder: For models and vocabularies on the way.
    """
    # An analyzer sees no more than a row's numbers; images that are merely decoded are never analyzed.
    batch_rows = columns.batch_rows(columns.mean_bytes(rows.files), BATCH_ROWS, BATCH_BYTES)
    # The compatibility mode traces in TF 1 graphs and costs a second session per batch.
    with tft_beam.Context(temp_dir=folder, desired_batch_size=batch_rows, force_tf_compat_v1=False):
        batches = pipeline | "Read" >> rows.source.BeamSource(batch_rows)
        if rows.stacked:
            batches |= "Stack" >> beam.Map(stacking.stacked, rows.stacked)
        transform_fn = (batches, rows.adapter) | tft_beam.AnalyzeDataset(preprocessing_fn)
        transform_fn | tft_beam.WriteTransformFn(graph_path)
