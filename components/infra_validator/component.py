"""The InfraValidator, between the Evaluator and the Pusher: load the model as the server does, compare answers."""

import logging
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import tensorflow as tf
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog
from tfx.components.util import model_utils
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.types import Artifact, standard_artifacts
from tfx.utils import path_utils

from components.infra_validator import comparison
from components.infra_validator.comparison import TOLERANCES, differences
from components.infra_validator.settings import InfraValidatorSettings
from components.pusher import manifest
from contracts import model_card
from contracts.errors import DataError
from contracts.file_names import SAMPLE_FILE
from contracts.model_reports import NOT_BLESSED, REPORT_FILE, AnswerDifference, InfraReport, Tolerance
from serving import in_process
from serving.models import warm_up

LOAD_SECONDS = 600.0
# The names of TFX's own InfraValidator.
BLESSED_FILES = {True: "INFRA_BLESSED", False: "INFRA_NOT_BLESSED"}


@component
def InfraValidator(  # noqa: N802  # TFX's form of a component
    model: InputArtifact[standard_artifacts.Model],
    model_blessing: InputArtifact[standard_artifacts.ModelBlessing],
    evaluation: InputArtifact[standard_artifacts.ModelEvaluation],
    blessing: OutputArtifact[standard_artifacts.InfraBlessing],
    name: Parameter[str],
    settings: Parameter[str],
) -> None:
    """Tries a blessed model in the code of our model server; TFX's own component needs Docker for that.

    Args:
        model: The SavedModel.
        model_blessing: The Evaluator's verdict; a model without its blessing is not tried.
        evaluation: The evaluation, with its sample of predictions.
        blessing: The verdict and its reasons.
        name: What requests call the model.
        settings: The recipe's `infra_validator` section as JSON.

    Raises:
        DataError: The evaluation holds no predictions to compare with.
    """
    asked = InfraValidatorSettings.model_validate_json(settings).requests
    if not model_utils.is_model_blessed(model_blessing):
        _write_report(blessing, InfraReport(blessed=False, skipped=NOT_BLESSED, problems=[]))
        return
    saved_model = Path(path_utils.serving_model_path(model.uri))
    digest = manifest.digest_of_files(manifest.files_of(saved_model))
    blessing.set_string_custom_property(manifest.MODEL_DIGEST_PROPERTY, digest)
    rows = _sampled_predictions(Path(evaluation.uri, SAMPLE_FILE), asked)
    if asked and not rows:
        raise DataError(
            f"{evaluation.uri} holds no predictions to compare the served ones with.",
            "Give the split `eval` rows (data.splits), or set infra_validator.requests to 0.",
        )
    _write_report(blessing, try_model(name, saved_model, rows))


def _sampled_predictions(file: Path, number: int) -> list[PredictionLog]:
    """The first so many of the Evaluator's predictions, in the order of their rows' digests."""
    return [PredictionLog.FromString(record) for record in islice(warm_up.read_records(file), number)] if number else []


def try_model(name: str, model: Path, rows: Sequence[PredictionLog]) -> InfraReport:
    """Tries a model.

    Args:
        name: What requests call it.
        model: The SavedModel's folder.
        rows: The Evaluator's predictions, one row each.
    """
    precision = _precision(model)
    tolerance = TOLERANCES[precision]
    started = time.monotonic()
    problems: list[str] = []
    faults: list[AnswerDifference] = []
    try:
        with in_process.serve(name, model, LOAD_SECONDS) as server:
            for position, row in enumerate(rows):
                faults += _ask(server, position, row, tolerance)
    except in_process.ServingError as error:
        problems.append(f"the model server refuses it: {error.message}")
    problems += map(str, faults)
    return InfraReport(
        blessed=not problems,
        skipped=None,
        problems=problems,
        differences=faults,
        requests=len(rows),
        precision=precision,
        tolerance=tolerance,
        seconds=round(time.monotonic() - started, 3),
    )


def _ask(
    server: in_process.InProcess, position: int, row: PredictionLog, tolerance: Tolerance
) -> Iterator[AnswerDifference]:
    asked, seen = row.predict_log.request, row.predict_log.response
    expected = {name: tf.make_ndarray(tensor) for name, tensor in seen.outputs.items()}
    answer = server.call("Predict", asked)
    got = {name: tf.make_ndarray(tensor) for name, tensor in answer.outputs.items()}
    yield from differences(position, "gRPC", got, expected, tolerance)
    got = comparison.answer_from_json(server.post("predict", comparison.request_to_json(asked)), expected)
    yield from differences(position, "REST", got, expected, tolerance)


def _precision(model: Path) -> str:
    """The dtype policy that the model's card tells of; float32 without one."""
    if not (model / model_card.CARD_FILE).exists():
        return "float32"
    told = model_card.read_card(model).training.get("precision")
    return told if told in TOLERANCES else "float32"


def _write_report(blessing: Artifact, report: InfraReport) -> None:
    """Writes the report, and what of it the metadata store shall hold."""
    blessing.set_int_custom_property("blessed", int(report.blessed))
    if report.skipped:
        logging.warning("Not tried: %s.", report.skipped)
    for problem in report.problems:
        logging.warning("%s", problem)
    Path(blessing.uri, REPORT_FILE).write_text(report.model_dump_json(indent=2, exclude_unset=True), encoding="utf-8")
    Path(blessing.uri, BLESSED_FILES[report.blessed]).touch()
