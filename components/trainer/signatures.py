"""The signatures of an exported model; each is traced once, for any number of rows.

serving_default      serialized tf.Examples of raw features -> what the model serves
predict              raw features as named tensors          -> the same
predict_transformed  transformed features by name           -> the same
transform_features   serialized tf.Examples                 -> every transformed feature, the label included
transform_label      serialized tf.Examples                 -> the labels alone, as the Evaluator needs them
embedding            serialized tf.Examples                 -> the output of one layer
classify, regress    serialized tf.Examples                 -> the prediction, as TensorFlow Serving's APIs define it
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import tensorflow as tf
import tensorflow_transform as tft
import tf_keras
from tensorflow_transform import graph_tools

from components.trainer import inference, interface, tensors
from components.trainer import tensors as model_tensors
from components.trainer.interface import Tensors
from components.trainer.tensors import FeatureSpec, ModelInput, RawTensor
from components.transform.stacking import RawTransform
from contracts.errors import TrainingError
from contracts.labels import Label, label_features
from contracts.model_card import Task

SERVING_ENVIRONMENT = "SERVING"
"""The schema environment of requests to the model; label columns carry `not_in_environment: "SERVING"`."""

EXAMPLES = [tf.TensorSpec([None], tf.string, name="examples")]

ServingOutputs: TypeAlias = Callable[[Tensors], Tensors]
"""Maps the model's outputs by name to the served outputs."""

Function: TypeAlias = Any
"""A tf.function: TensorFlow ships no types."""


@dataclass(frozen=True)
class Signatures:
    """The signatures of a model.

    Attributes:
        functions: Concrete functions by signature name.
        transform: The transform graph that they use.
        serving_spec: The parsing spec of the raw features that a serving request may hold.
        model_inputs: The inputs of `predict_transformed`.
        raw_tensors: The inputs of `predict`; None if there is no such signature.
        task: What is predicted; None if it is neither one class nor one number per row.
    """

    functions: dict[str, Function]
    transform: RawTransform
    serving_spec: dict[str, FeatureSpec]
    model_inputs: list[ModelInput]
    raw_tensors: list[RawTensor] | None
    task: Task | None


def trace(
    model: tf_keras.Model,
    transform_output: tft.TFTransformOutput,
    label: Label,
    serving_outputs: ServingOutputs | None = None,
    embedding_layer: str | None = None,
    class_names: Sequence[str] | None = None,
) -> Signatures:
    """Traces every signature of a model; the model itself is traced once, and its part up to `embedding_layer` again.

    Args:
        model: One whose inputs are transformed features; see `interface.connect`.
        transform_output: The transform graph.
        label: The label or labels.
        serving_outputs: See `ServingOutputs`; None serves the model's outputs by name. Floats are served as float32.
        embedding_layer: The layer whose output the signature `embedding` returns; None leaves that signature out.
        class_names: The names of the classes in the order of their ids, for `classify`; None uses the ids.

    Raises:
        TrainingError: There is no such layer, `serving_outputs` does not return tensors by name, or an output needs a
            raw feature that requests do not have.
    """
    transform = RawTransform(os.path.dirname(transform_output.transform_savedmodel_dir))
    serving_spec = _serving_spec(transform_output)
    inputs = model_tensors.model_inputs(model)
    score = _score(model, inputs, serving_outputs)
    scored = score.get_concrete_function()
    model_tensors.check_serving_outputs(scored.structured_outputs)
    sources = transform.sources(_used_features(inputs, scored))
    _check_sources(sources, serving_spec)
    raw = tensors.raw_tensors_from_schema(transform_output.raw_metadata.schema, serving_spec, sources)

    functions = {
        "serving_default": _from_examples(score, inputs, transform, serving_spec),
        "predict_transformed": score,
    }
    if raw:
        functions["predict"] = _from_raw_tensors(score, inputs, transform, raw)
    else:
        logging.warning("No signature `predict`: it takes plain columns, and the model needs sparse or ragged ones.")
    functions |= _transforms(transform, transform_output.raw_feature_spec(), label_features(label))
    if embedding_layer:
        embed = _embedding(model_tensors.embedding_model(model, embedding_layer), inputs)
        functions["embedding"] = _from_examples(embed, inputs, transform, serving_spec)
    task = None
    if isinstance(label, str):
        label_spec = transform_output.transformed_feature_spec()[label]
        task, inferring = inference.signature(scored, functions["serving_default"], label_spec, class_names)
        functions |= inferring
    concrete = {name: function.get_concrete_function() for name, function in functions.items()}
    return Signatures(concrete, transform, serving_spec, inputs, raw, task)


def _score(model: tf_keras.Model, inputs: list[ModelInput], serving_outputs: ServingOutputs | None) -> Function:
    @tf.function(input_signature=[{model_input.spec.name: model_input.spec for model_input in inputs}])
    def predict_transformed(tensors: Tensors) -> Any:
        features = {model_input.feature: tensors[model_input.spec.name] for model_input in inputs}
        outputs = interface.called(model, features)
        return model_tensors.cast_for_serving(serving_outputs(outputs) if serving_outputs else outputs)

    return predict_transformed


def _embedding(part: Callable[..., tf.Tensor], inputs: list[ModelInput]) -> Function:
    @tf.function(input_signature=[{model_input.spec.name: model_input.spec for model_input in inputs}])
    def embedding(tensors: Tensors) -> Tensors:
        values = part({model_input.feature: tensors[model_input.spec.name] for model_input in inputs}, training=False)
        return {"embedding": model_tensors.cast_for_serving(values)}

    return embedding


def _from_examples(
    function: Function, inputs: list[ModelInput], transform: RawTransform, spec: Mapping[str, FeatureSpec]
) -> Function:
    """Turns a function of the model's inputs into one of serialized tf.Examples without the label's columns."""

    @tf.function(input_signature=EXAMPLES, autograph=False)
    def from_examples(examples: tf.Tensor) -> Any:
        transformed = transform(tf.io.parse_example(examples, spec))
        return function(model_tensors.model_feed(inputs, transformed, rows=tf.size(examples)))

    return from_examples


def _from_raw_tensors(
    function: Function, inputs: list[ModelInput], transform: RawTransform, raw: list[RawTensor]
) -> Function:
    """Turns a function of the model's inputs into one of raw features by name, of those that it depends on."""

    @tf.function(input_signature=[{tensor.name: tensor.spec for tensor in raw}], autograph=False)
    def from_raw_tensors(tensors: Tensors) -> Any:
        together = {tensor.feature: tensor for tensor in raw if tensor.feature in transform.columns}
        alone = {one.feature: one.to_feature(tensors[one.name]) for one in raw if one.feature not in together}
        stacked = [(together[name], tensors[together[name].name]) for name in transform.columns if together]
        transformed = transform.on_stack(alone, model_tensors.stack(stacked)) if stacked else transform(alone)
        return function(model_tensors.model_feed(inputs, transformed, rows=tf.shape(tensors[raw[0].name])[0]))

    return from_raw_tensors


def _transforms(
    transform: RawTransform, raw_spec: Mapping[str, FeatureSpec], labels: Sequence[str]
) -> dict[str, Function]:
    @tf.function(input_signature=EXAMPLES, autograph=False)
    def transform_features(examples: tf.Tensor) -> Tensors:
        return transform(tf.io.parse_example(examples, raw_spec))

    @tf.function(input_signature=EXAMPLES, autograph=False)
    def transform_label(examples: tf.Tensor) -> Tensors:
        transformed = transform_features(examples)
        return {label: transformed[label] for label in labels}

    return {"transform_features": transform_features, "transform_label": transform_label}


def _serving_spec(transform_output: tft.TFTransformOutput) -> dict[str, FeatureSpec]:
    """The raw features that a serving request may hold: all but those that the schema excludes from SERVING."""
    excluded = {
        feature.name
        for feature in transform_output.raw_metadata.schema.feature
        if SERVING_ENVIRONMENT in feature.not_in_environment
    }
    return {name: spec for name, spec in transform_output.raw_feature_spec().items() if name not in excluded}


def _used_features(inputs: list[ModelInput], scored: Function) -> list[str]:
    """The features that the outputs of a traced function of the model's inputs depend on."""
    operations = [output.op for output in scored.graph.outputs]
    sources = graph_tools.retrieve_sources(operations, ignore_control_dependencies=True)
    source_names = {source.op.name for source in sources}
    return [model_input.feature for model_input in inputs if model_input.spec.name in source_names]


def _check_sources(sources: list[str], serving_spec: Mapping[str, FeatureSpec]) -> None:
    unknown = [name for name in sources if name not in serving_spec]
    if unknown:
        raise TrainingError(
            f"The model's outputs depend on {', '.join(unknown)}, which requests do not have: the schema says "
            f"`not_in_environment: {SERVING_ENVIRONMENT!r}`.",
            "Make no feature of it but the label, or change the schema.",
        )
