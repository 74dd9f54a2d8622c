"""The card of an exported model: what it is, what it takes and how it came about, as JSON beside the model.

Reading a card needs neither TensorFlow nor the model.
"""

from __future__ import annotations

import importlib.metadata
import math
import platform
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

PLACE = "assets.extra/card.json"
"""Where a SavedModel keeps its card; TensorFlow leaves `assets.extra` alone."""

PACKAGES = ("millrace", "tensorflow", "tf_keras", "tensorflow-transform", "tfx")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Tensor(_Part):
    """An input or output of a signature.

    Attributes:
        dtype: TensorFlow's name of it: `float32`, `int64`, `string`, …
        shape: With the batch dimension first; None is a dimension of any size, and a shape of None may be any.
        feature: The raw or transformed feature that an input stands for; its name where that can be a tensor's name.
        missing: The value that means "missing", where a value may be missing; `"NaN"` stands for the float. None where
            every row must have a value. In `string` tensors the empty string cannot be told from a missing one.
    """

    dtype: str
    shape: list[int | None] | None
    feature: str | None = None
    missing: str | int | None = None


class Signature(_Part):
    """One way to call the model.

    Attributes:
        inputs: By name. `examples` takes serialized tf.Examples of raw features.
        outputs: By name.
    """

    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]


class Card(_Part):
    """What is known about an exported model.

    Attributes:
        format: The version of this description.
        name: The Keras model's name.
        label: The transformed feature that it predicts.
        created: When it was exported, UTC.
        num_parameters: Trained and other weights together.
        signatures: By name; see components/trainer/signatures.py.
        embedding_layer: The layer whose output the signature `embedding` gives, as it gives it; None without one.
        class_names: The classes by id, where they have names; also in `labels.txt` beside the card, one a line.
        validation_metrics: Those of this model by name, without `val_`; None is a value that is no number.
        training: Facts about the training, as the Trainer gave them.
        versions: Of Python and of the packages that made the model.
        schema_sha256: The SHA-256 of the raw schema's deterministic serialization, in hexadecimal.
    """

    format: Literal[1] = 1
    name: str
    label: str
    created: datetime
    num_parameters: int
    signatures: dict[str, Signature]
    embedding_layer: str | None
    class_names: list[str] | None
    validation_metrics: dict[str, float | None]
    training: dict[str, Any]
    versions: dict[str, str]
    schema_sha256: str


def read(model: Path) -> Card:
    """The card of a SavedModel.

    Args:
        model: The SavedModel's folder.

    Raises:
        FileNotFoundError: It has none.
        pydantic.ValidationError: It is not of this format.
    """
    return Card.model_validate_json((model / PLACE).read_text(encoding="utf-8"))


def last_validation_metrics(history: Mapping[str, Sequence[float]]) -> dict[str, float | None]:
    """The validation metrics of the last epoch.

    Args:
        history: Values by metric, one an epoch: the `history` of tf_keras.callbacks.History.
    """
    last = {name[4:]: float(values[-1]) for name, values in history.items() if name.startswith("val_")}
    return {name: value if math.isfinite(value) else None for name, value in last.items()}


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that make a model."""
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in PACKAGES}
