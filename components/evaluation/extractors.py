"""The extractors of an evaluation: TFMA's own, and the one that keeps something of the predictions.

A module of its own, for TFX imports it by its name and loads it anew for it: what is to be remembered is elsewhere.
"""

from __future__ import annotations

import os
from typing import Any

import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.api import model_eval_lib
from tensorflow_model_analysis.extractors import unbatch_extractor

from components.evaluation import destination, keeping, predictions, sample
from components.evaluation.settings import PREDICTIONS_FILE

PATH = f"{__name__}.extractors"
"""What TFX takes as its execution property `custom_extractors`."""

STAGE = "KeepPredictions"


def extractors(eval_shared_model: Any, eval_config: tfma.EvalConfig, tensor_adapter_config: Any) -> list[Any]:
    """TFMA's own extractors, with the keeping one among them where `destination.leaving` asks for it."""
    found: list[Any] = model_eval_lib.default_extractors(
        eval_shared_model=eval_shared_model,
        eval_config=eval_config,
        tensor_adapter_config=tensor_adapter_config,
    )
    place = destination.current()
    if place is not None:
        names = [extractor.stage_name for extractor in found]
        keep = keeping.Keep(_keepers(place, eval_config))
        extractor = tfma.extractors.Extractor(stage_name=STAGE, ptransform=keep)
        found.insert(names.index(unbatch_extractor.UNBATCH_EXTRACTOR_STAGE_NAME), extractor)
    return found


def _keepers(place: destination.Destination, eval_config: tfma.EvalConfig) -> list[keeping.Keeper]:
    source = predictions.Source.of(eval_config)
    keepers = [predictions.keeper(os.path.join(place.folder, PREDICTIONS_FILE), source)]
    if place.sampled_rows:
        keepers.append(
            sample.keeper(os.path.join(place.folder, sample.SAMPLE_FILE), place.sampled_rows, source.candidate)
        )
    return keepers
