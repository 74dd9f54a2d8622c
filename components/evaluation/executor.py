"""The Evaluator's executor: stock TFMA evaluation, a sample of predictions, a summary as plain JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tfx.components.evaluator import executor
from tfx.types import artifact_utils
from tfx.utils.typing_utils import ArtifactMultiDict as Artifacts

from components.evaluation import extractors, sample, summary
from components.evaluation.settings import SUMMARY_FILE, EvaluatorSettings


class Executor(executor.Executor):
    """Stock evaluation, with `summary.json` and a sample of predictions beside TFMA's own files."""

    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:  # noqa: N802
        """See `tfx.components.evaluator.executor.Executor.Do`."""
        evaluation = artifact_utils.get_single_instance(output_dict["evaluation"])
        with sample.sampling(evaluation.uri, exec_properties["sampled_rows"]):
            super().Do(input_dict, output_dict, exec_properties | {"custom_extractors": extractors.PATH})
        settings = EvaluatorSettings.model_validate_json(exec_properties["settings"])
        result = summary.summarize(evaluation.uri, settings)
        Path(evaluation.uri, SUMMARY_FILE).write_text(json.dumps(result, indent=2), encoding="utf-8")
