"""A run of the columnar evaluation: what `tfma_run` does on Beam."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from tensorflow_model_analysis import constants
from tensorflow_model_analysis.metrics import metric_util
from tensorflow_model_analysis.proto import config_pb2

from components.cores import on_all_cores
from components.evaluation.columnar import batches, results, slices
from components.evaluation.columnar.batches import Extracts, Model
from components.evaluation.columnar.sums import Judged, NotColumnar
from components.evaluation.columnar.totals import Adder, Part
from components.evaluation.recording import Recorder, Source, weights_of


def evaluate(
    files: Sequence[str],
    models: Mapping[bool, str],
    config: config_pb2.EvalConfig,
    recorders: Sequence[Recorder],
    folder: str,
) -> None:
    """Evaluates models and writes TFMA's results; see `tfma_run.evaluate`.

    Args:
        files: TFRecord files of tf.Examples, gzip.
        models: The folders of the candidate (False) and the baseline (True); only those that `config` names are used.
        config: A complete configuration.
        recorders: What else to write.
        folder: The folder for TFMA's results.

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

    def work(extracts: Extracts) -> Part:
        features = _sliced_features(extracts, source)
        rows = len(extracts[constants.INPUT_KEY])
        return adder.part(_judged(extracts, config, source), slices.group(features, specs, rows))

    totals = adder.total()
    merged = _Recorded(recorders)
    for recorded, part in _passes(files, models, config, source, recorders, work):
        merged.add(recorded)
        totals.add(part)
    folders = {_name(config, spec): models[spec.is_baseline] for spec in config.model_specs}
    results.write(folder, config, folders, computations.derived_computations, totals.metrics())
    merged.write()


def predict(
    files: Sequence[str], models: Mapping[bool, str], config: config_pb2.EvalConfig, recorders: Sequence[Recorder]
) -> None:
    """Makes only an evaluation's predictions, without its metrics; see `evaluate`."""
    merged = _Recorded(recorders)
    for recorded, _ in _passes(files, models, config, Source.of(config), recorders, lambda extracts: None):
        merged.add(recorded)
    merged.write()


def _passes(
    files: Sequence[str],
    models: Mapping[bool, str],
    config: config_pb2.EvalConfig,
    source: Source,
    recorders: Sequence[Recorder],
    work: Any,
) -> Iterator[tuple[list[Any], Any]]:
    """What the recorders and `work` make of each batch, in the order of the rows."""
    loaded = {_name(config, spec): Model.load(models[spec.is_baseline], spec) for spec in config.model_specs}
    [label] = {spec.label_key for spec in config.model_specs}
    features = [*source.features, *([source.weight] if source.weight else [])]

    def whole(rows: Extracts) -> tuple[list[Any], Any]:
        extracts = batches.predicted(rows, loaded, label)
        return [recorder.read(extracts) for recorder in recorders], work(extracts)

    yield from on_all_cores(whole, batches.read(files, features))


class _Recorded:
    """Merges what recorders made of batches."""

    def __init__(self, recorders: Sequence[Recorder]) -> None:
        self._recorders = recorders
        self._merged = [recorder.merge.create_accumulator() for recorder in recorders]

    def add(self, parts: Sequence[Any]) -> None:
        self._merged = [
            recorder.merge.compact(recorder.merge.add_input(merged, part))
            for recorder, merged, part in zip(self._recorders, self._merged, parts, strict=True)
        ]

    def write(self) -> None:
        for recorder, merged in zip(self._recorders, self._merged, strict=True):
            recorder.write(recorder.merge.extract_output(merged))


def _name(config: config_pb2.EvalConfig, spec: config_pb2.ModelSpec) -> str:
    """TFMA's name of a model: none if there is only one."""
    return spec.name if len(config.model_specs) > 1 else ""


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
