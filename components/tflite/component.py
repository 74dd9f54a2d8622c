"""The TF Lite node, between the Evaluator and the Pusher: convert, describe, judge and report."""

import logging
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow_transform as tft
from tfx.components.util import model_utils
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.types import Artifact, standard_artifacts
from tfx.utils import path_utils

from components.artifacts import TFLiteModel, split_files
from components.tflite import convert, judge, metadata
from components.tflite.judge import Interpreter
from components.tflite.saved_model import Arrays, Rows, SavedModel
from components.tflite.settings import MODEL_FILE, TFLiteSettings
from contracts.model_reports import NOT_BLESSED, REPORT_FILE, TFLiteReport

SPLITS = ("train", "eval")


@component
def TFLite(  # noqa: N802  # TFX's form of a component
    model: InputArtifact[standard_artifacts.Model],
    model_blessing: InputArtifact[standard_artifacts.ModelBlessing],
    transformed_examples: InputArtifact[standard_artifacts.Examples],
    transform_graph: InputArtifact[standard_artifacts.TransformGraph],
    tflite_model: OutputArtifact[TFLiteModel],
    name: Parameter[str],
    label: Parameter[str],
    output: Parameter[str],
    settings: Parameter[str],
) -> None:
    """Converts a blessed SavedModel, judges both on the same rows, and blesses the result if its accuracy holds.

    Args:
        model: The SavedModel, with a signature `predict_transformed`.
        model_blessing: The Evaluator's verdict; a model that it did not bless is not converted.
        transformed_examples: `train` gives the representative rows, `eval` the rows to judge by.
        transform_graph: Has the feature spec of the transformed examples.
        tflite_model: The model and its report.
        name: The model's name, written into its metadata.
        label: The transformed feature that is the label.
        output: The output that is judged; where it is empty or has no scores, see `judge.scores_output`.
        settings: The recipe's `tflite` section as JSON; its quantization is not `none`.

    Raises:
        ExportError: The model cannot be converted, or cannot be judged.
        DataError: A split has no rows.
    """
    tflite = TFLiteSettings.model_validate_json(settings)
    tflite_model.quantization = tflite.quantization
    if not model_utils.is_model_blessed(model_blessing):
        _write_report(tflite_model, TFLiteReport(quantization=tflite.quantization, blessed=False, refused=NOT_BLESSED))
        return
    saved_model = SavedModel(Path(path_utils.serving_model_path(model.uri)))
    feature_spec = tft.TFTransformOutput(transform_graph.uri).transformed_feature_spec()
    train, evaluation = (
        Rows(
            split=split,
            files=split_files(transformed_examples, split),
            feature_spec=feature_spec,
            inputs=saved_model.inputs,
            features=saved_model.features,
            label=label,
        )
        for split in SPLITS
    )
    train.check()
    scores = judge.scores_output(saved_model.outputs, output)
    content = _convert(saved_model, train, tflite, name, scores)
    Path(tflite_model.uri, MODEL_FILE).write_bytes(content)
    _write_report(tflite_model, _judge(content, saved_model, evaluation, tflite, scores))


def _convert(saved_model: SavedModel, train: Rows, settings: TFLiteSettings, name: str, scores: str) -> bytes:
    representative = list(train.evenly_spaced(settings.representative_rows))
    with tempfile.TemporaryDirectory() as folder:
        source = _convertible(saved_model, Path(folder))
        converted = convert.convert(
            source,
            settings.quantization,
            lambda: iter(representative),
            settings.inference_input_type,
            settings.inference_output_type,
        )
    description = metadata.Description(
        name=name,
        text=f"Quantization: {settings.quantization}. Input ranges are those of {len(representative)} training rows.",
        ranges=ranges(representative),
        scores=scores,
        # One probability has no axis of classes that could be labelled.
        labels=saved_model.labels if judge.is_of_classes(saved_model.outputs[scores].shape) else (),
    )
    return metadata.add_metadata(converted, description)


def _convertible(saved_model: SavedModel, folder: Path) -> Path:
    """The SavedModel's path or, if it computes in mixed precision, that of a float32 copy in `folder`."""
    if convert.is_float32(saved_model.signature):
        return saved_model.path
    convert.save_in_float32(saved_model.signature, folder)
    return folder


def ranges(rows: Sequence[Arrays]) -> dict[str, tuple[float, float]]:
    """The smallest and largest value of each input in these rows; for bytes, what a byte can hold."""
    spans = {}
    for name in rows[0]:
        values = np.concatenate([row[name].reshape(-1) for row in rows])
        of_byte = values.dtype == np.uint8
        spans[name] = (0.0, 255.0) if of_byte else (float(values.min()), float(values.max()))
    return spans


def _judge(
    content: bytes, saved_model: SavedModel, evaluation: Rows, settings: TFLiteSettings, scores: str
) -> TFLiteReport:
    """Judges a TF Lite model and returns the report."""
    interpreter = Interpreter(content, settings.threads)
    judgement = judge.judge(evaluation, scores, saved_model, interpreter, interpreter.batch_rows)
    accepted = judgement.accepts(settings.max_accuracy_loss)
    report = TFLiteReport(
        quantization=settings.quantization,
        blessed=accepted,
        refused=None if accepted else _refusal(judgement, settings),
        size_bytes=len(content),
        variables_bytes=saved_model.variables_bytes,
        latency_ms=interpreter.latency_ms(next(evaluation.batches(1))[0]),
        max_accuracy_loss=settings.max_accuracy_loss,
        threads=settings.threads,
        judged_by=scores,
        **vars(judgement),
    )
    if not settings.quantization.startswith("int8"):
        return report
    return report.model_copy(update={"float_ops": convert.float_ops(content)})


def _refusal(judgement: judge.Judgement, settings: TFLiteSettings) -> str:
    return (
        f"its accuracy, {judgement.accuracy:.4f}, is more than {settings.max_accuracy_loss:g} below the SavedModel's, "
        f"{judgement.saved_model_accuracy:.4f}"
    )


PROPERTIES = ("size_bytes", "accuracy", "saved_model_accuracy", "latency_ms")


def _write_report(tflite_model: Artifact, report: TFLiteReport) -> None:
    """Writes the report, and the part of it that the metadata store holds."""
    tflite_model.blessed = int(report.blessed)
    for name in PROPERTIES:
        if (value := getattr(report, name)) is not None:
            setattr(tflite_model, name, value)
    if report.refused:
        tflite_model.set_string_custom_property("refused", report.refused)
        logging.warning("The TF Lite model is not pushed: %s.", report.refused)
    Path(tflite_model.uri, REPORT_FILE).write_text(
        report.model_dump_json(indent=2, exclude_unset=True), encoding="utf-8"
    )
