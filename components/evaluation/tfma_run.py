"""A run of TFMA with recorders of predictions among its extractors.

TFX's own executor runs TFMA likewise, but accepts extractors only as the name of a function, which it imports again and
does not tell where the evaluation is written. Hence its part is done here. TFMA has no hook for whole batches of
predictions, so the extractor that records them is inserted before the stage, known by its name, that splits batches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import apache_beam as beam
import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.api import model_eval_lib
from tensorflow_model_analysis.extractors import unbatch_extractor
from tensorflow_model_analysis.proto import config_pb2
from tfx_bsl.tfxio.tf_example_record import TFExampleRecord

from components.evaluation.recording import Record, Recorder, Source, check_weights

STAGE = "RecordPredictions"
WEIGHTS_STAGE = "CheckWeights"


def complete_config(config: config_pb2.EvalConfig, has_baseline: bool) -> config_pb2.EvalConfig:
    """The configuration with TFMA's defaults; without a baseline model, bars on the loss against it are ignored."""
    config = tfma.utils.update_eval_config_with_defaults(config, has_baseline=has_baseline, rubber_stamp=True)
    tfma.utils.verify_eval_config(config)
    return config


def evaluate(
    pipeline: beam.Pipeline,
    examples: str,
    models: Mapping[bool, str],
    config: config_pb2.EvalConfig,
    recorders: Sequence[Recorder],
    folder: str,
) -> None:
    """Adds an evaluation to a Beam pipeline.

    Args:
        pipeline: The pipeline to add it to.
        examples: The pattern of TFRecord files of tf.Examples.
        models: The folders of the candidate (False) and the baseline (True); only those that `config` names are used.
        config: A complete configuration, see `complete_config`.
        recorders: What else to write.
        folder: The folder for TFMA's results.
    """
    shared = _shared_models(models, config)
    _ = (
        pipeline
        | "Read" >> _rows(examples)
        | "Evaluate"
        >> tfma.ExtractEvaluateAndWriteResults(
            eval_shared_model=shared,
            eval_config=config,
            extractors=extractors(shared, config, recorders),
            output_path=folder,
        )
    )


def predict(
    pipeline: beam.Pipeline,
    examples: str,
    models: Mapping[bool, str],
    config: config_pb2.EvalConfig,
    recorders: Sequence[Recorder],
) -> None:
    """Adds only an evaluation's predictions, without its metrics; see `evaluate`."""
    extracts = pipeline | "Read" >> _rows(examples) | "Batch" >> tfma.BatchedInputsToExtracts()
    for extractor in extractors(_shared_models(models, config), config, recorders):
        extracts = extracts | extractor.stage_name >> extractor.ptransform
        if extractor.stage_name == STAGE:
            break


def _shared_models(models: Mapping[bool, str], config: config_pb2.EvalConfig) -> Any:
    shared = [
        tfma.default_eval_shared_model(
            eval_saved_model_path=models[spec.is_baseline], model_name=spec.name, eval_config=config
        )
        for spec in config.model_specs
    ]
    return shared[0] if len(shared) == 1 else shared


def _rows(examples: str) -> beam.PTransform:
    records = TFExampleRecord(
        examples, telemetry_descriptors=["Evaluator"], raw_record_column_name=tfma.constants.ARROW_INPUT_COLUMN
    )
    return records.BeamSource()


def extractors(shared_model: Any, config: config_pb2.EvalConfig, recorders: Sequence[Recorder]) -> list[Any]:
    """TFMA's own extractors, with the recorders before the stage that splits batches."""
    tfma_extractors: list[Any] = model_eval_lib.default_extractors(eval_shared_model=shared_model, eval_config=config)
    names = [extractor.stage_name for extractor in tfma_extractors]
    recording = tfma.extractors.Extractor(stage_name=STAGE, ptransform=Record(recorders))
    place = names.index(unbatch_extractor.UNBATCH_EXTRACTOR_STAGE_NAME)
    tfma_extractors.insert(place, recording)
    source = Source.of(config)
    if source.weight:
        # Before the metrics: TFMA's fail at a row without a weight, and do not say so.
        tfma_extractors.insert(place, tfma.extractors.Extractor(WEIGHTS_STAGE, beam.Map(check_weights, source)))
    return tfma_extractors
