"""SavedModel export: the model with the transform graph inside, so that training and serving cannot differ."""

from __future__ import annotations

import functools
import hashlib
import os
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
import tf_keras

from components.trainer import card, signatures, warm_up
from components.trainer.raw_tensors import RawTensor
from components.trainer.signatures import ServingOutputs, Signatures

LABELS = "assets.extra/labels.txt"
"""Where a SavedModel keeps the names of its classes, one a line, in the order of their ids."""


@dataclass(frozen=True)
class Options:
    """What an export may have besides the model.

    Attributes:
        serving_outputs: Maps the model's outputs by name to what is served; None serves them as they are.
        embedding_layer: The layer whose output the signature `embedding` gives; None leaves that signature out.
        raw_examples: Serialized raw tf.Examples for the warm-up requests; without any there are none.
        class_names: The names of the classes in the order of their ids, where they have any.
        validation_metrics: By name, for the card; see `card.last_validation_metrics`.
        training: Facts about the training for the card, as JSON has them.
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
    label: str,
    path: str,
    options: Options = Options(),
) -> None:
    """Writes the SavedModel of a trained model to `path`, with warm-up requests, class names and a card beside it.

    Only variables, vocabularies and the signatures are saved. Saving the Keras model itself as well would trace each of
    its layers again, and take longer to write and to load.

    Raises:
        TrainingError: See `signatures.trace`.
    """
    traced = signatures.trace(model, transform_output, label, options.serving_outputs, options.embedding_layer)
    served = tf.Module()
    served.model_variables = model.variables
    served.transform = transform_output.transform_features_layer()
    tf.saved_model.save(served, path, signatures=traced.functions)
    if options.raw_examples:
        warm_up.write(path, options.raw_examples, traced)
    if options.class_names:
        _write(path, LABELS, "".join(f"{name}\n" for name in options.class_names))
    _write(path, card.PLACE, _card(model, transform_output, label, options, traced).model_dump_json(indent=2))


def serving_outputs_of(recipe: types.ModuleType, params: Mapping[str, Any]) -> ServingOutputs | None:
    """The optional function `serving_outputs(outputs, params)` of a recipe's model.py, its params filled in."""
    function = getattr(recipe, "serving_outputs", None)
    return function and functools.partial(function, params=params)


def _card(
    model: tf_keras.Model, transform_output: tft.TFTransformOutput, label: str, options: Options, traced: Signatures
) -> card.Card:
    schema = transform_output.raw_metadata.schema
    return card.Card(
        name=model.name,
        label=label,
        created=datetime.now(timezone.utc),
        num_parameters=model.count_params(),
        signatures=_described(traced),
        embedding_layer=options.embedding_layer,
        class_names=list(options.class_names) if options.class_names else None,
        validation_metrics=dict(options.validation_metrics),
        training=dict(options.training),
        versions=card.versions(),
        schema_sha256=hashlib.sha256(schema.SerializeToString(deterministic=True)).hexdigest(),
    )


def _described(traced: Signatures) -> dict[str, card.Signature]:
    known = {
        "predict": {raw.name: _raw_facts(raw) for raw in traced.raw_tensors or ()},
        "predict_transformed": {given.spec.name: {"feature": given.feature} for given in traced.model_inputs},
    }
    described = {}
    for name, function in traced.functions.items():
        facts = known.get(name, {})
        specs = tf.nest.flatten(function.structured_input_signature)
        described[name] = card.Signature(
            inputs={spec.name: _tensor(spec, **facts.get(spec.name, {})) for spec in specs},
            outputs={name: _tensor(tensor) for name, tensor in function.structured_outputs.items()},
        )
    return described


def _raw_facts(raw: RawTensor) -> dict[str, Any]:
    # JSON has no NaN.
    missing = "NaN" if isinstance(raw.missing, float) else raw.missing
    return {"feature": raw.feature, "missing": missing}


def _tensor(spec: tf.TensorSpec | tf.Tensor, **facts: Any) -> card.Tensor:
    shape = None if spec.shape.rank is None else spec.shape.as_list()
    return card.Tensor(dtype=spec.dtype.name, shape=shape, **facts)


def _write(model: str, place: str, text: str) -> None:
    path = os.path.join(model, place)
    tf.io.gfile.makedirs(os.path.dirname(path))
    with tf.io.gfile.GFile(path, "w") as file:
        file.write(text)
