"""The extractors of an evaluation: TFMA's own, and the one that keeps a sample of the predictions.

A module of its own, for TFX imports it by its name and loads it anew for it: what is to be remembered is elsewhere.
"""

from __future__ import annotations

from typing import Any

import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.api import model_eval_lib
from tensorflow_model_analysis.extractors import unbatch_extractor

from components.evaluation import sample

PATH = f"{__name__}.extractors"
"""What TFX takes as its execution property `custom_extractors`."""


def extractors(eval_shared_model: Any, eval_config: tfma.EvalConfig, tensor_adapter_config: Any) -> list[Any]:
    """TFMA's own extractors, with the sampling one among them where `sample.sampling` asks for it."""
    found: list[Any] = model_eval_lib.default_extractors(
        eval_shared_model=eval_shared_model,
        eval_config=eval_config,
        tensor_adapter_config=tensor_adapter_config,
    )
    target = sample.target()
    if target is not None:
        # With several models TFMA keeps the predictions of each under its name.
        candidates = [spec.name for spec in eval_config.model_specs if not spec.is_baseline]
        model = candidates[0] if len(eval_config.model_specs) > 1 else None
        names = [extractor.stage_name for extractor in found]
        sampler = tfma.extractors.Extractor(stage_name="SamplePredictions", ptransform=sample.Sample(target, model))
        found.insert(names.index(unbatch_extractor.UNBATCH_EXTRACTOR_STAGE_NAME), sampler)
    return found
