"""The extractors of an evaluation: TFMA's own, and those that keep something of the predictions.

A module of its own, for TFX imports it by its name and loads it anew for it: what is to be remembered is elsewhere.
"""

from __future__ import annotations

import os
from typing import Any

import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.api import model_eval_lib
from tensorflow_model_analysis.extractors import unbatch_extractor

from components.evaluation import destination, predictions, sample
from components.evaluation.settings import PREDICTIONS_FILE

PATH = f"{__name__}.extractors"
"""What TFX takes as its execution property `custom_extractors`."""


def extractors(eval_shared_model: Any, eval_config: tfma.EvalConfig, tensor_adapter_config: Any) -> list[Any]:
    """TFMA's own extractors, with the keeping ones among them where `destination.leaving` asks for it."""
    found: list[Any] = model_eval_lib.default_extractors(
        eval_shared_model=eval_shared_model,
        eval_config=eval_config,
        tensor_adapter_config=tensor_adapter_config,
    )
    place = destination.current()
    if place is not None:
        names = [extractor.stage_name for extractor in found]
        batches_end = names.index(unbatch_extractor.UNBATCH_EXTRACTOR_STAGE_NAME)
        found[batches_end:batches_end] = _keeping(place, eval_config)
    return found


def _keeping(place: destination.Destination, eval_config: tfma.EvalConfig) -> list[Any]:
    source = predictions.Source.of(eval_config)
    keep = predictions.KeepPredictions(source, os.path.join(place.folder, PREDICTIONS_FILE))
    found = [tfma.extractors.Extractor(stage_name="KeepPredictions", ptransform=keep)]
    if place.sampled_rows:
        path = os.path.join(place.folder, sample.SAMPLE_FILE)
        sampler = sample.Sample(path, place.sampled_rows, source.candidate)
        found.append(tfma.extractors.Extractor(stage_name="SamplePredictions", ptransform=sampler))
    return found
