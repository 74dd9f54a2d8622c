"""A run of the columnar evaluation: what `tfma_run` does on Beam."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tensorflow_model_analysis import constants
from tensorflow_model_analysis.metrics import metric_util
from tensorflow_model_analysis.proto import config_pb2

from components.cores import on_all_cores
from components.engine import NotColumnar
from components.evaluation.columnar import batches, results, slices
from components.evaluation.columnar.batches import Extracts, Model
from components.evaluation.columnar.sums import Judged
from components.evaluation.columnar.totals import Adder, Part
from components.evaluation.levels import LevelsBySlice
from components.evaluation.predictions import text_of
from components.evaluation.recording import Recorder, Source, read_all, weights_of
from components.progress import RowProgress


def evaluate(
    files: Sequence[str],
    models: Mapping[bool, str],
    config: config_pb2.EvalConfig,
    recorders: Sequence[Recorder],
    folder: str,
    further: Mapping[str, str] | None = None,
    progress: RowProgress | None = None,
) -> LevelsBySlice:
    """Evaluates models and writes TFMA's results; see `tfma_run.evaluate`.

    Args:
        files: TFRecord files of tf.Examples, gzip.
        models: The folders of the candidate (False) and the baseline (True); only those that `config` names are used.
        config: A complete configuration.
        recorders: What else to write.
        folder: The folder for TFMA's results.
        further: The folders of models, by name, whose predictions the recorders see, too; only besides a baseline.
        progress: Counts the rows.

    Returns:
        The scores of each model by slice, if they are those of two classes.

    Raises:
        NotColumnar: This must be evaluated by TFMA on Beam; nothing was written.
        DataError: A row's weight is missing, negative or not a number.
    """
    computations = results.computations(config)
    adder = Adder(computations.non_derived_computations)
    specs = [list(spec.feature_keys) for spec in config.slicing_specs]
    if any(spec.feature_values for spec in config.slicing_specs):
        raise NotColumnar("a slice has a value of its own")
    source = Source.of(config)

    totals = adder.total()
    merged = _Recorded(recorders)
    folders = {_name(config, spec): models[spec.is_baseline] for spec in config.model_specs}
    spec = config.model_specs[0]
    loaded = {name: Model.load(path, spec) for name, path in {**folders, **(further or {})}.items()}
    features = [*source.features, *([source.weight] if source.weight else [])]

    def work(rows: Extracts) -> tuple[Sequence[Any], Part]:
        extracts = batches.predicted(rows, loaded, spec.label_key)
        groups = slices.group(_sliced_features(extracts, source), specs, len(extracts[constants.INPUT_KEY]))
        made = read_all(extracts, recorders), adder.part(_judged(extracts, config, source), groups)
        if progress:
            progress.add(len(extracts[constants.INPUT_KEY]))
        return made

    for recorded, part in on_all_cores(work, batches.read(files, features)):
        merged.add(recorded)
        totals.add(part)
    results.write(folder, config, folders, computations.derived_computations, totals.metrics())
    merged.write()
    return {
        (_texts(key), spec.is_baseline): levels
        for spec in config.model_specs
        for key, levels in totals.levels(_name(config, spec)).items()
    }


class _Recorded:
    """Merges what recorders made of batches."""

    def __init__(self, recorders: Sequence[Recorder]) -> None:
        self._recorders = recorders
        self._merged = [recorder.merge.create_accumulator() for recorder in recorders]

    def add(self, parts: Sequence[Any]) -> None:
        self._merged = [
            recorder.merge.add_input(merged, part)
            for recorder, merged, part in zip(self._recorders, self._merged, parts, strict=True)
        ]

    def write(self) -> None:
        for recorder, merged in zip(self._recorders, self._merged, strict=True):
            recorder.write(recorder.merge.extract_output(merged))


def _name(config: config_pb2.EvalConfig, spec: config_pb2.ModelSpec) -> str:
    """TFMA's name of a model: none if there is only one."""
    return spec.name if len(config.model_specs) > 1 else ""


def _texts(key: slices.SliceKey) -> tuple[tuple[str, str], ...]:
    return tuple((feature, text_of(value)) for feature, value in key)


def _judged(extracts: Extracts, config: config_pb2.EvalConfig, source: Source) -> dict[str, Judged]:
    rows = len(extracts[constants.INPUT_KEY])
    weights = weights_of(extracts, source, rows) if source.weight else np.ones(rows)
    judged = {}
    for spec in config.model_specs:
        name = _name(config, spec)
        labels, predictions = extracts[constants.LABELS_KEY], extracts[constants.PREDICTIONS_KEY]
        if name:
            labels, predictions = labels[name], predictions[name]
        labels, predictions = metric_util.prepare_labels_and_predictions(labels, predictions, spec.prediction_key)
        if len(labels) != rows or len(predictions) != rows:
            raise NotColumnar("labels or predictions are not those of the rows")
        judged[name] = Judged(labels, predictions, weights)
    return judged


def _sliced_features(extracts: Extracts, source: Source) -> Mapping[str, Any]:
    transformed = extracts[constants.TRANSFORMED_FEATURES_KEY]
    of_candidate = transformed[source.candidate] if source.candidate else transformed
    if hidden := set(of_candidate) & set(source.features):
        raise NotColumnar(f"slices are by the label {', '.join(hidden)}")
    features: Mapping[str, Any] = extracts[constants.FEATURES_KEY]
    return features
