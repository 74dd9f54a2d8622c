"""The Evaluator's executor: stock TFMA evaluation, what is kept of the predictions, and what they say as plain JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tfx.components.evaluator import executor
from tfx.types import artifact_utils, standard_component_specs
from tfx.utils import path_utils
from tfx.utils.typing_utils import ArtifactMultiDict as Artifacts

from components.evaluation import destination, extractors, insights, predictions, summary
from components.evaluation.settings import INSIGHTS_FILE, PREDICTIONS_FILE, SUMMARY_FILE, EvaluatorSettings
from components.trainer import card


class Executor(executor.Executor):
    """Stock evaluation, with `summary.json`, `insights.json` and the predictions they are from beside TFMA's files."""

    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:  # noqa: N802
        """See `tfx.components.evaluator.executor.Executor.Do`."""
        evaluation = artifact_utils.get_single_instance(output_dict["evaluation"])
        with destination.leaving(evaluation.uri, exec_properties["sampled_rows"]):
            super().Do(input_dict, output_dict, exec_properties | {"custom_extractors": extractors.PATH})
        settings = EvaluatorSettings.model_validate_json(exec_properties["settings"])
        kept = predictions.read(str(Path(evaluation.uri, PREDICTIONS_FILE)))
        summarized = summary.summarize(evaluation.uri, settings, kept)
        Path(evaluation.uri, SUMMARY_FILE).write_text(_json(summarized, indent=2), encoding="utf-8")
        # Thousands of numbers: not one a line.
        described = insights.describe(kept, _class_names(input_dict))
        Path(evaluation.uri, INSIGHTS_FILE).write_text(_json(described), encoding="utf-8")


def _class_names(input_dict: Artifacts) -> list[str] | None:
    model = artifact_utils.get_single_instance(input_dict[standard_component_specs.MODEL_KEY])
    saved_model = path_utils.serving_model_path(model.uri, path_utils.is_old_model_artifact(model))
    return card.read(Path(saved_model)).class_names


def _json(content: dict[str, Any], indent: int | None = None) -> str:
    return json.dumps(content, indent=indent, allow_nan=False, ensure_ascii=False)
