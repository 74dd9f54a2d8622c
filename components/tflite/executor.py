"""The TF Lite executor: convert, describe, judge, and note what came out."""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow_transform as tft
from tfx.components.util import model_utils
from tfx.dsl.components.base import base_executor
from tfx.types import Artifact, artifact_utils
from tfx.utils import path_utils
from tfx.utils.typing_utils import ArtifactMultiDict as Artifacts

from components.examples import split_files
from components.tflite import convert, float32, judge, metadata
from components.tflite.interpreter import Interpreter
from components.tflite.rows import Rows
from components.tflite.saved_model import Arrays, SavedModel
from components.tflite.settings import MODEL_FILE, REPORT_FILE, TFLiteSettings

NOT_BLESSED = "the Evaluator did not bless the model"


class Executor(base_executor.BaseExecutor):
    """Makes `model.tflite` of a blessed SavedModel and blesses it where its accuracy holds."""

    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:  # noqa: N802
        """Writes the model and its report.

        Raises:
            ExportError: The model cannot be converted, or cannot be judged.
            DataError: A split has no rows.
        """
        settings = TFLiteSettings.model_validate_json(exec_properties["settings"])
        made = artifact_utils.get_single_instance(output_dict["tflite_model"])
        made.quantization = settings.quantization
        blessing = artifact_utils.get_single_instance(input_dict["model_blessing"])
        if not model_utils.is_model_blessed(blessing):
            _note(made, {"quantization": settings.quantization, "blessed": False, "refused": NOT_BLESSED})
            return
        model = artifact_utils.get_single_instance(input_dict["model"])
        saved_model = SavedModel(Path(path_utils.serving_model_path(model.uri)))
        train, evaluation = (_rows(input_dict, split, saved_model, exec_properties["label"]) for split in SPLITS)
        content = _made(saved_model, train, settings, exec_properties["name"])
        Path(made.uri, MODEL_FILE).write_bytes(content)
        _note(made, _judged(content, saved_model, evaluation, settings))


SPLITS = ("train", "eval")


def _rows(input_dict: Artifacts, split: str, saved_model: SavedModel, label: str) -> Rows:
    examples = artifact_utils.get_single_instance(input_dict["transformed_examples"])
    transform_output = tft.TFTransformOutput(artifact_utils.get_single_uri(input_dict["transform_graph"]))
    rows = Rows(
        split=split,
        files=split_files(examples, split),
        feature_spec=transform_output.transformed_feature_spec(),
        inputs=saved_model.inputs,
        features=saved_model.features,
        label=label,
    )
    rows.check()
    return rows


def _made(saved_model: SavedModel, train: Rows, settings: TFLiteSettings, name: str) -> bytes:
    scores = judge.scores_output(saved_model.outputs)
    representative = list(train.evenly_spaced(settings.representative_rows))
    with tempfile.TemporaryDirectory() as folder:
        source = _convertible(saved_model, Path(folder))
        converted = convert.convert(source, settings.quantization, lambda: iter(representative))
    description = metadata.Description(
        name=name,
        text=f"Quantization: {settings.quantization}. Input ranges are those of {len(representative)} training rows.",
        ranges=ranges(representative),
        scores=scores,
        # One probability has no axis of classes that could be labelled.
        labels=saved_model.labels if judge.is_of_classes(saved_model.outputs[scores].shape) else (),
    )
    return metadata.write(converted, description)


def _convertible(saved_model: SavedModel, folder: Path) -> Path:
    """The SavedModel, or, where it computes in mixed precision, one in `folder` that does not."""
    if float32.is_float32(saved_model.signature):
        return saved_model.path
    float32.save(saved_model.signature, folder)
    return folder


def ranges(rows: Sequence[Arrays]) -> dict[str, tuple[float, float]]:
    """The smallest and the largest value of each input in these rows; of bytes, what a byte can hold."""
    found = {}
    for name in rows[0]:
        values = np.concatenate([row[name].reshape(-1) for row in rows])
        of_byte = values.dtype == np.uint8
        found[name] = (0.0, 255.0) if of_byte else (float(values.min()), float(values.max()))
    return found


def _judged(content: bytes, saved_model: SavedModel, evaluation: Rows, settings: TFLiteSettings) -> dict[str, Any]:
    """The report on a model; see `TFLiteModel`."""
    interpreter = Interpreter(content, settings.threads)
    scores = judge.scores_output(saved_model.outputs)
    judgement = judge.judge(evaluation, scores, saved_model, interpreter, interpreter.batch_rows)
    accepted = judgement.accepts(settings.max_accuracy_loss)
    of_int8 = {"float_ops": convert.float_ops(content)} if settings.quantization.startswith("int8") else {}
    return {
        "quantization": settings.quantization,
        "blessed": accepted,
        "refused": None if accepted else _refusal(judgement, settings),
        "size_bytes": len(content),
        "variables_bytes": saved_model.variables_bytes,
        "latency_ms": interpreter.latency_ms(next(evaluation.batches(1))[0]),
        "max_accuracy_loss": settings.max_accuracy_loss,
        "threads": settings.threads,
        "judged_by": scores,
        **of_int8,
        **asdict(judgement),
    }


def _refusal(judgement: judge.Judgement, settings: TFLiteSettings) -> str:
    return (
        f"its accuracy, {judgement.accuracy:.4f}, is more than {settings.max_accuracy_loss:g} below the SavedModel's, "
        f"{judgement.saved_model_accuracy:.4f}"
    )


PROPERTIES = ("size_bytes", "accuracy", "saved_model_accuracy", "latency_ms")


def _note(made: Artifact, report: Mapping[str, Any]) -> None:
    """Writes the report, and what of it the metadata store shall hold."""
    made.blessed = int(report["blessed"])
    for name in PROPERTIES:
        if name in report:
            setattr(made, name, report[name])
    if report["refused"]:
        made.set_string_custom_property("refused", report["refused"])
        logging.warning("The TF Lite model is not pushed: %s.", report["refused"])
    Path(made.uri, REPORT_FILE).write_text(json.dumps(report, indent=2), encoding="utf-8")
