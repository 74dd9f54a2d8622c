"""The SavedModel's side: the signature that is converted, what it takes and gives, and its class names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt
import tensorflow as tf

from components.errors import ExportError

SIGNATURE = "predict_transformed"
"""Takes transformed features by name, so that no op of the transform graph has to exist in TF Lite."""

LABELS_FILE = Path("assets.extra", "labels.txt")
CARD_FILE = Path("assets.extra", "card.json")

Array = npt.NDArray[Any]
Arrays = dict[str, Array]


class SavedModel:
    """A loaded SavedModel, called by its signature `predict_transformed`.

    Args:
        path: The SavedModel's folder.

    Attributes:
        signature: The signature as a concrete function; it lives as long as this object.
        inputs: Type and shape [batch, ...] of each input by name.
        outputs: The same of each output.
        features: The transformed feature of each input; another name only where a signature's input cannot have it.
        variables_bytes: The size of the variables that the signature uses.
        labels: The class names in the order of their ids; empty where the SavedModel names none.

    Raises:
        ExportError: It has no such signature.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # Kept, for the signature holds its variables only weakly.
        self._loaded = tf.saved_model.load(str(path))
        signatures = self._loaded.signatures
        if SIGNATURE not in signatures:
            raise ExportError(
                f"{path} has no signature {SIGNATURE!r}; it has {', '.join(sorted(signatures)) or 'none'}.",
                "Train the model again with this version (`millrace run --from Trainer`).",
            )
        self.signature = signatures[SIGNATURE]
        self.inputs: dict[str, tf.TensorSpec] = dict(self.signature.structured_input_signature[1])
        self.outputs: dict[str, tf.TensorSpec] = dict(self.signature.structured_outputs)
        self.features = {name: name for name in self.inputs} | _features(path / CARD_FILE)
        self.variables_bytes = sum(
            variable.shape.num_elements() * variable.dtype.size for variable in self.signature.variables
        )
        self.labels = _labels(path / LABELS_FILE)

    def __call__(self, inputs: Mapping[str, Array]) -> Arrays:
        """The outputs by name for arrays [batch, ...] by name."""
        outputs = self.signature(**{name: tf.constant(values) for name, values in inputs.items()})
        return {name: tensor.numpy() for name, tensor in outputs.items()}


def _features(path: Path) -> dict[str, str]:
    """The features by input, as the model's card has them where it has a card."""
    if not path.exists():
        return {}
    inputs = json.loads(path.read_text(encoding="utf-8"))["signatures"][SIGNATURE]["inputs"]
    return {name: given["feature"] for name, given in inputs.items()}


def _labels(path: Path) -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8").splitlines()) if path.exists() else ()
