"""The signatures for TensorFlow Serving's Classify and Regress: predictions in the form that these APIs prescribe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from components.trainer.interface import Tensors
from components.trainer.tensors import FeatureSpec
from contracts.model_card import Task

# TensorFlow ships no types.
Function: TypeAlias = Any

INPUTS = [tf.TensorSpec([None], tf.string, name="inputs")]

METHODS = {"classify": tf.saved_model.CLASSIFY_METHOD_NAME, "regress": tf.saved_model.REGRESS_METHOD_NAME}
"""The method name that a SavedModel records for each signature."""

SCORES = ("probabilities", "probability", "scores")
"""Names by which the prediction is recognized if a model has several float outputs, in order of preference."""

PROBABILITY_OPERATIONS = frozenset({"Sigmoid", "Softmax"})
"""Operations whose results are probabilities."""

SHAPE_OPERATIONS = frozenset({"Cast", "ExpandDims", "Identity", "Reshape", "Squeeze", "StridedSlice"})
"""Operations that pass values through unchanged."""


def predicted_output(outputs: Mapping[str, tf.TensorSpec | tf.Tensor]) -> str | None:
    """The output that is the prediction: one with a name in `SCORES`, or the only one of floats [batch] or [batch, k].

    Args:
        outputs: The served outputs, by name.
    """
    candidates = [name for name, spec in outputs.items() if spec.dtype.is_floating and spec.shape.rank in (1, 2)]
    named = [name for name in SCORES if name in candidates]
    return (named or candidates)[0] if named or len(candidates) == 1 else None


def signature(
    scored: Function, serve: Callable[[tf.Tensor], Tensors], label: FeatureSpec, class_names: Sequence[str] | None
) -> tuple[Task | None, dict[str, Function]]:
    """The task, and the signature `classify` or `regress` by its name; None and no signature if neither applies.

    Args:
        scored: The traced function that returns the served outputs.
        serve: Maps serialized tf.Examples to the served outputs.
        label: The parsing spec of the label.
        class_names: The classes in the order of their ids; if the model has a different number, their ids are used.
    """
    output = predicted_output(scored.structured_outputs)
    task = _task(scored.structured_outputs[output], label) if output else None
    if output is None or task is None:
        return None, {}

    @tf.function(input_signature=INPUTS, autograph=False)
    def regress(inputs: tf.Tensor) -> Tensors:
        return {"outputs": tf.reshape(serve(inputs)[output], [-1])}

    @tf.function(input_signature=INPUTS, autograph=False)
    def classify(inputs: tf.Tensor) -> Tensors:
        scores = serve(inputs)[output]
        if task == "binary":
            probability = tf.reshape(scores, [-1])
            scores = tf.stack([1 - probability, probability], axis=1)
        names = class_names if class_names and len(class_names) == scores.shape[1] else range(scores.shape[1])
        return {"classes": tf.tile([[str(name) for name in names]], [tf.shape(scores)[0], 1]), "scores": scores}

    return task, {"regress": regress} if task == "regression" else {"classify": classify}


def _task(predicted: tf.Tensor, label: FeatureSpec) -> Task | None:
    """The task of a symbolic output [batch] or [batch, k], from its shape, its last operation and the label."""
    if not isinstance(label, tf.io.FixedLenFeature) or tf.TensorShape(label.shape).num_elements() != 1:
        return None
    if predicted.shape.rank == 2 and predicted.shape[1] != 1:
        return "multiclass" if label.dtype.is_integer and predicted.shape[1] else None
    if label.dtype.is_integer and _is_probability(predicted):
        return "binary"
    return "regression" if label.dtype.is_integer or label.dtype.is_floating else None


def _is_probability(tensor: tf.Tensor) -> bool:
    operation = tensor.op
    while operation.type in SHAPE_OPERATIONS:
        operation = operation.inputs[0].op
    return operation.type in PROBABILITY_OPERATIONS


def set_methods(saved_model: str, names: Sequence[str]) -> None:
    """Records in a SavedModel which of its signatures classify and regress; TensorFlow writes `predict` for all.

    TensorFlow Serving checks this with `--enable_signature_method_name_check`.

    Args:
        saved_model: The SavedModel's folder.
        names: The names of its signatures.
    """
    method_names = [name for name in names if name in METHODS]
    if method_names:
        updater = tf.compat.v1.saved_model.signature_def_utils.MethodNameUpdater(saved_model)
        for name in method_names:
            updater.replace_method_name(name, METHODS[name])
        updater.save()
