"""The InfraValidator's executor: load the model as the server does, ask it, compare, bless."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog
from tfx.components.util import model_utils
from tfx.dsl.components.base import base_executor
from tfx.types import Artifact, artifact_utils
from tfx.utils import path_utils
from tfx.utils.typing_utils import ArtifactMultiDict as Artifacts

from components.errors import DataError
from components.evaluation import sample
from components.infra_validator import requests
from components.infra_validator.comparison import TOLERANCES, Difference, Tolerance, differences
from components.infra_validator.settings import REPORT_FILE, InfraValidatorSettings
from components.pusher import manifest
from components.trainer import card
from serving import in_process, records

NOT_BLESSED = "the Evaluator did not bless the model"
LOAD_SECONDS = 600.0
# The names of TFX's own InfraValidator.
BLESSED_FILES = {True: "INFRA_BLESSED", False: "INFRA_NOT_BLESSED"}


class Executor(base_executor.BaseExecutor):
    """Blesses a model that the model server loads, and that answers there as the Evaluator saw it."""

    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:  # noqa: N802
        """Writes the verdict and its reasons.

        Raises:
            DataError: The evaluation holds no predictions to compare with.
        """
        settings = InfraValidatorSettings.model_validate_json(exec_properties["settings"])
        blessing = artifact_utils.get_single_instance(output_dict["blessing"])
        if not model_utils.is_model_blessed(artifact_utils.get_single_instance(input_dict["model_blessing"])):
            _note(blessing, {"blessed": False, "skipped": NOT_BLESSED, "problems": []})
            return
        evaluation = artifact_utils.get_single_uri(input_dict["evaluation"])
        model = Path(path_utils.serving_model_path(artifact_utils.get_single_uri(input_dict["model"])))
        blessing.set_string_custom_property(manifest.MODEL_DIGEST_PROPERTY, manifest.digest(manifest.files_of(model)))
        rows = _sampled(Path(evaluation, sample.SAMPLE_FILE), settings.requests)
        if settings.requests and not rows:
            raise DataError(
                f"{evaluation} holds no predictions to compare the served ones with.",
                "Give the split `eval` rows (data.splits), or set infra_validator.requests to 0.",
            )
        _note(blessing, validated(exec_properties["name"], model, rows))


def _sampled(file: Path, number: int) -> list[PredictionLog]:
    """The first so many of the Evaluator's predictions, in the order of their rows' digests."""
    return [PredictionLog.FromString(record) for record in islice(records.read(file), number)] if number else []


def validated(name: str, model: Path, rows: Sequence[PredictionLog]) -> dict[str, Any]:
    """Tries a model.

    Args:
        name: What requests call it.
        model: The SavedModel's folder.
        rows: The Evaluator's predictions, one row each.

    Returns:
        `blessed`; `problems`, a sentence each; `differences` as `comparison.Difference` has them; `requests`: how many
        rows were asked; `precision` and its `tolerance`; `seconds` to load the model and to ask it.
    """
    precision = _precision(model)
    tolerance = TOLERANCES[precision]
    started = time.monotonic()
    problems: list[str] = []
    found: list[Difference] = []
    try:
        with in_process.serve(name, model, LOAD_SECONDS) as server:
            for position, row in enumerate(rows):
                found += _asked(server, position, row, tolerance)
    except in_process.ServingError as error:
        problems.append(f"the model server refuses it: {error.message}")
    problems += map(str, found)
    return {
        "blessed": not problems,
        "skipped": None,
        "problems": problems,
        "differences": [asdict(difference) for difference in found],
        "requests": len(rows),
        "precision": precision,
        "tolerance": asdict(tolerance),
        "seconds": round(time.monotonic() - started, 3),
    }


def _asked(
    server: in_process.InProcess, position: int, row: PredictionLog, tolerance: Tolerance
) -> Iterator[Difference]:
    asked, seen = row.predict_log.request, row.predict_log.response
    expected = {name: tf.make_ndarray(tensor) for name, tensor in seen.outputs.items()}
    answer = server.predict(asked)
    got = {name: tf.make_ndarray(tensor) for name, tensor in answer.outputs.items()}
    yield from differences(position, "gRPC", got, expected, tolerance)
    got = requests.from_json(server.predict_json(requests.to_json(asked)), expected)
    yield from differences(position, "REST", got, expected, tolerance)


def _precision(model: Path) -> str:
    """The dtype policy that the model's card tells of; float32 without one."""
    if not (model / card.PLACE).exists():
        return "float32"
    told = card.read(model).training.get("precision")
    return told if told in TOLERANCES else "float32"


def _note(blessing: Artifact, report: dict[str, Any]) -> None:
    """Writes the report, and what of it the metadata store shall hold."""
    blessing.set_int_custom_property("blessed", int(report["blessed"]))
    if report["skipped"]:
        logging.warning("Not tried: %s.", report["skipped"])
    for problem in report["problems"]:
        logging.warning("%s", problem)
    Path(blessing.uri, REPORT_FILE).write_text(json.dumps(report, indent=2), encoding="utf-8")
    Path(blessing.uri, BLESSED_FILES[report["blessed"]]).touch()
