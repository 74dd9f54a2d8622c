"""SavedModel export: the model includes the transform graph, so that training and serving cannot differ."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import os
import platform
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
import tf_keras
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from components.trainer import inference, saving, signatures
from components.trainer.signatures import ServingOutputs, Signatures
from components.trainer.tensors import FeatureSpec, RawTensor
from contracts import model_card
from contracts.labels import Label
from contracts.model_card import Card, Signature, Tensor

PACKAGES = ("millrace", "tensorflow", "tf_keras", "tensorflow-transform", "tfx")
"""The packages whose versions the card records."""

WARM_UP_REQUESTS = "assets.extra/tf_serving_warmup_requests"
WARM_UP_BATCHES = (1, 16)
"""Rows per request: one, as from a client, and several, as from the server's own batching."""


def read_warm_up_rows(files: Sequence[str], number: int = max(WARM_UP_BATCHES)) -> list[bytes]:
    """The first serialized rows of gzip TFRecords."""
    records = tf.data.TFRecordDataset(list(files), compression_type="GZIP").take(number)
    return list(records.as_numpy_iterator())


def write_warm_up(model: str, rows: Sequence[bytes], signatures: Signatures) -> None:
    """Writes the warm-up requests of a SavedModel, an uncompressed TFRecord of PredictionLogs.

    Args:
        model: The SavedModel's folder.
        rows: Serialized raw tf.Examples; columns that requests do not have are removed.
        signatures: The model's signatures; there are requests for `serving_default`, and for `predict`, `classify` and
            `regress` where the model has them.
    """
    unlabeled_rows = [_without_labels(row, signatures.serving_spec) for row in rows]
    path = os.path.join(model, WARM_UP_REQUESTS)
    tf.io.gfile.makedirs(os.path.dirname(path))
    with tf.io.TFRecordWriter(path) as writer:
        for size in sorted({min(size, len(unlabeled_rows)) for size in WARM_UP_BATCHES}):
            for log in _warm_up_logs(unlabeled_rows[:size], signatures):
                writer.write(log.SerializeToString(deterministic=True))


def _warm_up_logs(rows: list[bytes], signatures: Signatures) -> Iterator[PredictionLog]:
    yield _predict_log("serving_default", {"examples": tf.constant(rows)})
    if signatures.raw_tensors:
        yield _predict_log("predict", _raw_inputs(rows, signatures.raw_tensors, signatures.serving_spec))
    for name in inference.METHODS.keys() & signatures.functions.keys():
        log = PredictionLog()
        request = getattr(log, f"{name}_log").request
        request.model_spec.signature_name = name
        request.input.example_list.examples.extend(map(tf.train.Example.FromString, rows))
        yield log


def _predict_log(signature: str, inputs: dict[str, Any]) -> PredictionLog:
    log = PredictionLog()
    request = log.predict_log.request
    request.model_spec.signature_name = signature
    for name, tensor in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(tensor.numpy()))
    return log


def _raw_inputs(rows: list[bytes], tensors: list[RawTensor], spec: dict[str, FeatureSpec]) -> dict[str, tf.Tensor]:
    parsed = tf.io.parse_example(rows, {raw.feature: spec[raw.feature] for raw in tensors})
    return {raw.name: raw.from_feature(parsed[raw.feature]) for raw in tensors}


def _without_labels(row: bytes, spec: dict[str, FeatureSpec]) -> bytes:
    example = tf.train.Example.FromString(row)
    for name in [name for name in example.features.feature if name not in spec]:
        del example.features.feature[name]
    return bytes(example.SerializeToString(deterministic=True))


LABELS = "assets.extra/labels.txt"
"""The file of a SavedModel with the names of its classes, one per line, in the order of their ids."""


@dataclass(frozen=True)
class Options:
    """The optional parts of an export.

    Attributes:
        serving_outputs: Maps the model's outputs by name to what is served; None serves them as they are.
        embedding_layer: The layer whose output the signature `embedding` gives; None leaves that signature out.
        raw_examples: Serialized raw tf.Examples for the warm-up requests; if empty, there are no requests.
        class_names: The names of the classes in the order of their ids, if they have names.
        validation_metrics: By name, for the card; see `train.last_validation_metrics`.
        training: Facts about the training for the card, in JSON's types.
    """

    serving_outputs: ServingOutputs | None = None
    embedding_layer: str | None = None
    raw_examples: Sequence[bytes] = ()
    class_names: Sequence[str] | None = None
    validation_metrics: Mapping[str, float | None] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)


def save(
    model: tf_keras.Model,
    transform_output: tft.TFTransformOutput,
    label: Label,
    path: str,
    options: Options = Options(),
) -> None:
    """Writes the SavedModel of a trained model to `path`, with warm-up requests, class names and a card beside it.

    See `saving.save` for what a program gets that loads it by `tf_keras.models.load_model`.

    Raises:
        TrainingError: See `signatures.trace`.
    """
    traced = signatures.trace(
        model, transform_output, label, options.serving_outputs, options.embedding_layer, options.class_names
    )
    saving.save(model, traced.transform.trackable, traced.functions, path)
    inference.set_methods(path, list(traced.functions))
    if options.raw_examples:
        write_warm_up(path, options.raw_examples, traced)
    if options.class_names:
        _write_text(path, LABELS, "".join(f"{name}\n" for name in options.class_names))
    _write_text(
        path, model_card.CARD_FILE, _card(model, transform_output, label, options, traced).model_dump_json(indent=2)
    )


def serving_outputs_of(recipe: types.ModuleType, params: Mapping[str, Any]) -> ServingOutputs | None:
    """The optional function `serving_outputs(outputs, params)` of a recipe's model.py, with `params` bound."""
    function = getattr(recipe, "serving_outputs", None)
    return function and functools.partial(function, params=params)


def _card(
    model: tf_keras.Model, transform_output: tft.TFTransformOutput, label: Label, options: Options, traced: Signatures
) -> Card:
    schema = transform_output.raw_metadata.schema
    return Card(
        name=model.name,
        label=label,
        created=datetime.now(timezone.utc),
        num_parameters=model.count_params(),
        signatures=_card_signatures(traced),
        embedding_layer=options.embedding_layer,
        class_names=list(options.class_names) if options.class_names else None,
        task=traced.task,
        validation_metrics=dict(options.validation_metrics),
        training=dict(options.training),
        versions=package_versions(),
        schema_sha256=hashlib.sha256(schema.SerializeToString(deterministic=True)).hexdigest(),
    )


def package_versions() -> dict[str, str]:
    """The versions of Python and of the packages that a model is made with."""
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in PACKAGES}


def _card_signatures(traced: Signatures) -> dict[str, Signature]:
    input_facts = {
        "predict": {raw.name: _raw_facts(raw) for raw in traced.raw_tensors or ()},
        "predict_transformed": {
            model_input.spec.name: {"feature": model_input.feature} for model_input in traced.model_inputs
        },
    }
    card_signatures = {}
    for name, function in traced.functions.items():
        facts = input_facts.get(name, {})
        specs = tf.nest.flatten(function.structured_input_signature)
        card_signatures[name] = Signature(
            inputs={spec.name: _tensor(spec, **facts.get(spec.name, {})) for spec in specs},
            outputs={name: _tensor(tensor) for name, tensor in function.structured_outputs.items()},
        )
    return card_signatures


def _raw_facts(raw: RawTensor) -> dict[str, Any]:
    # JSON has no NaN.
    missing = "NaN" if isinstance(raw.missing, float) else raw.missing
    return {"feature": raw.feature, "missing": missing}


def _tensor(spec: tf.TensorSpec | tf.Tensor, **facts: Any) -> Tensor:
    shape = None if spec.shape.rank is None else spec.shape.as_list()
    return Tensor(dtype=spec.dtype.name, shape=shape, **facts)


def _write_text(model: str, place: str, text: str) -> None:
    path = os.path.join(model, place)
    tf.io.gfile.makedirs(os.path.dirname(path))
    with tf.io.gfile.GFile(path, "w") as file:
        file.write(text)
