"""What TensorFlow Serving's Classify and Regress ask of a model: its predictions, in the form that these APIs fix."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from components.trainer.tensors import FeatureSpec, Tensors
from contracts.model_card import Task

# TensorFlow ships no types.
Function: TypeAlias = Any

INPUTS = [tf.TensorSpec([None], tf.string, name="inputs")]

METHODS = {"classify": tf.saved_model.CLASSIFY_METHOD_NAME, "regress": tf.saved_model.REGRESS_METHOD_NAME}
"""By signature, the method that its SavedModel says it has."""

SCORES = ("probabilities", "probability", "scores")
"""Names of the output that is the prediction where a model has several of floats, the first first."""

CHANCES = frozenset({"Sigmoid", "Softmax"})
"""Operations whose results are chances."""

SHAPING = frozenset({"Cast", "ExpandDims", "Identity", "Reshape", "Squeeze", "StridedSlice"})
"""Operations that hand values on."""


def predicted_output(outputs: Mapping[str, tf.TensorSpec | tf.Tensor]) -> str | None:
    """The output that is the prediction: the only one of floats [batch] or [batch, k], or one with a name of `SCORES`.

    Args:
        outputs: What is served, by name.
    """
    candidates = [name for name, spec in outputs.items() if spec.dtype.is_floating and spec.shape.rank in (1, 2)]
    named = [name for name in SCORES if name in candidates]
    return (named or candidates)[0] if named or len(candidates) == 1 else None


def signature(
    scored: Function, serve: Callable[[tf.Tensor], Tensors], label: FeatureSpec, class_names: Sequence[str] | None
) -> tuple[Task | None, dict[str, Function]]:
    """What is predicted, and by its name the signature `classify` or `regress`; neither where these have no answer.

    Args:
        scored: The traced function that gives what is served.
        serve: Serialized tf.Examples to what is served.
        label: How the label is parsed.
        class_names: The classes in the order of their ids; where the model has not as many, ids stand for them.
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
            chance = tf.reshape(scores, [-1])
            scores = tf.stack([1 - chance, chance], axis=1)
        names = class_names if class_names and len(class_names) == scores.shape[1] else range(scores.shape[1])
        return {"classes": tf.tile([[str(name) for name in names]], [tf.shape(scores)[0], 1]), "scores": scores}

    return task, {"regress": regress} if task == "regression" else {"classify": classify}


def _task(predicted: tf.Tensor, label: FeatureSpec) -> Task | None:
    """What a symbolic output [batch] or [batch, k] is, by its shape, the operation that gives it, and the label."""
    if not isinstance(label, tf.io.FixedLenFeature) or tf.TensorShape(label.shape).num_elements() != 1:
        return None
    if predicted.shape.rank == 2 and predicted.shape[1] != 1:
        return "multiclass" if label.dtype.is_integer and predicted.shape[1] else None
    if label.dtype.is_integer and _is_chance(predicted):
        return "binary"
    return "regression" if label.dtype.is_integer or label.dtype.is_floating else None


def _is_chance(tensor: tf.Tensor) -> bool:
    operation = tensor.op
    while operation.type in SHAPING:
        operation = operation.inputs[0].op
    return operation.type in CHANCES


def set_methods(saved_model: str, names: Sequence[str]) -> None:
    """Lets a SavedModel say which of its signatures classify and regress: TensorFlow writes `predict` for all.

    TensorFlow Serving looks at it with `--enable_signature_method_name_check`.

    Args:
        saved_model: Its folder.
        names: Those of its signatures.
    """
    wanted = [name for name in names if name in METHODS]
    if wanted:
        updater = tf.compat.v1.saved_model.signature_def_utils.MethodNameUpdater(saved_model)
        for name in wanted:
            updater.replace_method_name(name, METHODS[name])
        updater.save()
