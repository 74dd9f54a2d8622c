"""The heads of a model: its outputs by name, each with its loss and the label that it learns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
import tf_keras

from components.trainer import interface
from contracts.errors import TrainingError
from contracts.labels import Label

BY_HEAD = ("loss", "loss_weights", "metrics", "weighted_metrics")
"""Arguments of `compile` that may be dicts by head."""

NAME_OUTPUTS = 'Name the outputs in build_model, as in tf_keras.Model(inputs, {"tip": …, "payment": …})'


@dataclass(frozen=True)
class Head:
    """An output that learns.

    Attributes:
        name: The output's name.
        output: The symbolic output, [batch, ...].
        loss: As passed to `compile`: a function, an object, or a name; None if the recipe's own `train_step` has it.
        label: The transformed feature that it learns; None if it learns none.
    """

    name: str
    output: tf.Tensor
    loss: Any
    label: str | None


def heads(model: tf_keras.Model, label: Label) -> list[Head]:
    """The heads of a compiled model."""
    tensors, loss = interface.outputs(model), model.loss
    by_name = dict(zip(tensors, loss, strict=True)) if isinstance(loss, (list, tuple)) else loss
    return [
        Head(
            name,
            tensor,
            by_name.get(name) if isinstance(by_name, Mapping) else by_name,
            label if isinstance(label, str) else label.get(name),
        )
        for name, tensor in tensors.items()
    ]


def check_arguments(model: tf_keras.Model, arguments: Mapping[str, Any]) -> None:
    """Checks that dicts among the arguments of `compile` have the model's heads as keys; Keras ignores other keys.

    Raises:
        TrainingError: A key is not the name of a head.
    """
    names = interface.outputs(model)
    for argument in BY_HEAD:
        value = arguments.get(argument)
        unknown = [name for name in value if name not in names] if isinstance(value, Mapping) else []
        if unknown:
            raise TrainingError(
                f"compile_arguments in model.py has {argument} for {', '.join(unknown)}, expected outputs of the "
                f"model: {', '.join(names)}.",
                f"{NAME_OUTPUTS}, and use these names in compile_arguments.",
            )


def check_labels(model: tf_keras.Model, labels: Any) -> None:
    """Checks that each output of a compiled model that has a loss also has a label.

    Args:
        model: Compiled.
        labels: In the form that `fit` takes: a tensor for all outputs, or tensors by output.

    Raises:
        TrainingError: A label does not belong to any output, or an output with a loss has no label.
    """
    if not isinstance(labels, Mapping):
        return
    names = interface.outputs(model)
    if unknown := [name for name in labels if name not in names]:
        raise TrainingError(
            f"label in recipe.yaml has a feature for {', '.join(unknown)}, expected outputs of the model: "
            f"{', '.join(names)}.",
            f"{NAME_OUTPUTS}, and use these names in recipe.yaml.",
        )
    for head in heads(model, dict.fromkeys(labels, "")):
        if head.loss is not None and head.label is None:
            raise TrainingError(
                f"The model's output {head.name!r} has a loss, but label in recipe.yaml has no feature for it.",
                f"Give it one (label: {{{head.name}: …}}), or leave its loss out of compile_arguments.",
            )
