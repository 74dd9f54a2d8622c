"""The InfraValidator, between the Evaluator and the Pusher: loads the model as the server does and compares answers."""

import logging
import time
from collections.abc import Sequence
from pathlib import Path

import tensorflow_transform as tft
from tfx.components.util import model_utils
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.types import Artifact, standard_artifacts
from tfx.utils import path_utils

from components.artifacts import TFLiteModel, split_files
from components.evaluation.predictions import PredictionsTable, table_from_bytes
from components.evaluation.settings import PREDICTIONS_FILE
from components.infra_validator import ways
from components.infra_validator.comparison import TOLERANCES, Allowed
from components.infra_validator.proof import compare
from components.infra_validator.sample import Batch, read_batches
from components.infra_validator.settings import InfraValidatorSettings
from components.infra_validator.ways import Way
from components.pusher import manifest
from components.tflite.settings import MODEL_FILE
from contracts import model_card
from contracts.errors import DataError
from contracts.file_names import SAMPLE_FILE
from contracts.model_reports import NOT_BLESSED, REPORT_FILE, InfraReport, PathDifference
from serving import in_process

LOAD_SECONDS = 600.0
# The names of TFX's own InfraValidator.
BLESSED_FILES = {True: "INFRA_BLESSED", False: "INFRA_NOT_BLESSED"}


@component
def InfraValidator(  # noqa: N802  # TFX's form of a component
    model: InputArtifact[standard_artifacts.Model],
    model_blessing: InputArtifact[standard_artifacts.ModelBlessing],
    evaluation: InputArtifact[standard_artifacts.ModelEvaluation],
    examples: InputArtifact[standard_artifacts.Examples],
    transformed_examples: InputArtifact[standard_artifacts.Examples],
    transform_graph: InputArtifact[standard_artifacts.TransformGraph],
    blessing: OutputArtifact[standard_artifacts.InfraBlessing],
    name: Parameter[str],
    settings: Parameter[str],
    tflite_model: InputArtifact[TFLiteModel] = None,
) -> None:
    """Tries a blessed model in the code of our model server; TFX's own component needs Docker for that.

    Args:
        model: The SavedModel.
        model_blessing: The Evaluator's verdict; a model that it did not bless is not tried.
        evaluation: The evaluation, with its predictions.
        examples: The raw Examples that were evaluated.
        transformed_examples: The same rows, transformed.
        transform_graph: Holds the parsing spec of the transformed rows.
        blessing: The verdict and its reasons.
        name: The model's name in requests.
        settings: The recipe's `infra_validator` section as JSON.
        tflite_model: Compared as well if it is blessed; None if there is none.

    Raises:
        DataError: The evaluation holds no predictions to compare with, or predictions of other rows.
    """
    validator_settings = InfraValidatorSettings.model_validate_json(settings)
    if not model_utils.is_model_blessed(model_blessing):
        _write_report(blessing, InfraReport(blessed=False, skipped=NOT_BLESSED, problems=[]))
        return
    saved_model = Path(path_utils.serving_model_path(model.uri))
    digest = manifest.digest_of_files(manifest.files_of(saved_model))
    blessing.set_string_custom_property(manifest.MODEL_DIGEST_PROPERTY, digest)
    batches = []
    if validator_settings.rows:
        spec = tft.TFTransformOutput(transform_graph.uri).transformed_feature_spec()
        raw, transformed = split_files(examples, "eval"), split_files(transformed_examples, "eval")
        batches = read_batches(Path(evaluation.uri, SAMPLE_FILE), validator_settings.rows, raw, transformed, spec)
        if not batches:
            raise DataError(
                f"{evaluation.uri} holds no predictions to compare the served ones with.",
                "Give the split `eval` rows (data.splits), or set infra_validator.rows to 0.",
            )
    tflite = Path(tflite_model.uri, MODEL_FILE).read_bytes() if tflite_model and tflite_model.blessed else None
    table = table_from_bytes(Path(evaluation.uri, PREDICTIONS_FILE).read_bytes())
    _write_report(blessing, try_model(name, saved_model, batches, validator_settings, table, tflite))


def try_model(
    name: str,
    model: Path,
    batches: Sequence[Batch],
    settings: InfraValidatorSettings,
    table: PredictionsTable | None = None,
    tflite: bytes | None = None,
) -> InfraReport:
    """Loads a model in the server's code and compares its answers with the evaluation's.

    Args:
        name: The model's name in requests.
        model: The SavedModel's folder.
        batches: The rows to send; without any the model is only loaded.
        settings: Holds the tolerances.
        table: The evaluation's table of predictions.
        tflite: The TF Lite model.
    """
    started = time.monotonic()
    card = model_card.read_card(model) if (model / model_card.CARD_FILE).exists() else None
    recorded_precision = card.training.get("precision") if card else None
    precision = recorded_precision if recorded_precision in TOLERANCES else "float32"
    problems: list[str] = []
    paths: list[PathDifference] = []
    try:
        with in_process.serve(name, model, LOAD_SECONDS) as server:
            if batches:
                signatures = card.signatures if card else {}
                batches = ways.named(server, batches)
                allowed = Allowed.by(settings, precision)
                all_ways = [*ways.of_server(server, signatures, batches[0].predictions, allowed)]
                if table is not None:
                    all_ways += ways.of_table(table, batches[0], allowed)
                if tflite is not None:
                    all_ways.append(ways.of_tflite(tflite, signatures, allowed))
                paths, problems = _compare(batches, all_ways)
    except in_process.ServingError as error:
        problems.append(f"the model server refuses it: {error.message}")
    return InfraReport(
        blessed=not problems,
        skipped=None,
        problems=problems,
        paths=paths,
        rows=sum(len(batch.rows) for batch in batches),
        precision=precision,
        seconds=round(time.monotonic() - started, 3),
    )


def _compare(batches: Sequence[Batch], all_ways: Sequence[Way]) -> tuple[list[PathDifference], list[str]]:
    """The differences of each way, and a sentence for each that is too large."""
    paths: list[PathDifference] = []
    problems = []
    ways_by_name = {way.name: way for way in all_ways}
    for way in all_ways:
        try:
            differences = compare(way, batches, ways_by_name)
        except in_process.ServingError as error:
            problems.append(f"{way.name}: the model server refuses a request: {error.message}")
        else:
            paths += differences
            problems += [str(difference) for difference in differences if difference.differing]
    return paths, problems


def _write_report(blessing: Artifact, report: InfraReport) -> None:
    """Writes the report, and records the verdict in the metadata store."""
    blessing.set_int_custom_property("blessed", int(report.blessed))
    if report.skipped:
        logging.warning("Not tried: %s.", report.skipped)
    for problem in report.problems:
        logging.warning("%s", problem)
    Path(blessing.uri, REPORT_FILE).write_text(report.model_dump_json(indent=2, exclude_unset=True), encoding="utf-8")
    Path(blessing.uri, BLESSED_FILES[report.blessed]).touch()
