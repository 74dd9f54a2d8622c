"""The card of an exported model: what it is, what it takes and how it was trained, as JSON beside the model.

Reading a card needs neither TensorFlow nor the model.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from contracts.content import HasFiles, Record, read_record
from contracts.file_names import SERVING_MODEL_FOLDER
from contracts.labels import Label

CARD_FILE = "assets.extra/card.json"
"""Where a SavedModel keeps its card; TensorFlow leaves `assets.extra` alone."""

Task = Literal["binary", "multiclass", "regression"]
"""What a model predicts of a row: whether something is so, one of several classes, or a number."""


class Tensor(Record):
    """An input or output of a signature.

    Attributes:
        dtype: TensorFlow's name for it: `float32`, `int64`, `string`, …
        shape: With the batch dimension first; a dimension of None has any size, and a shape of None may be any shape.
        feature: The raw or transformed feature that an input carries; the same as the input's name if that is a legal
            tensor name.
        missing: The value that means "missing"; `"NaN"` stands for the float. None if every row must have a value. In
            `string` tensors an empty string cannot be told from a missing one.
    """

    dtype: str
    shape: list[int | None] | None
    feature: str | None = None
    missing: str | int | None = None

    @property
    def shape_text(self) -> str:
        """The shape; a question mark stands for any size."""
        if self.shape is None:
            return "any"
        return f"[{', '.join('?' if size is None else str(size) for size in self.shape)}]"


class Signature(Record):
    """One way to call the model.

    Attributes:
        inputs: By name; `examples` takes serialized tf.Examples of raw features.
        outputs: By name.
    """

    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]


class Card(Record):
    """What is known about an exported model.

    Attributes:
        format: The version of this description.
        name: The Keras model's name.
        label: The transformed feature that it predicts, or several by output.
        created: When it was exported, UTC.
        num_parameters: Trainable and non-trainable weights together.
        signatures: By name; see components/trainer/signatures.py.
        embedding_layer: The layer whose output the signature `embedding` returns unchanged; None without one.
        class_names: The classes by id, if they have names; also in `labels.txt` beside the card, one per line.
        task: What it predicts, if its signature `classify` or `regress` answers that; None otherwise.
        validation_metrics: By name, without `val_`; None stands for a value that is not a number.
        training: Facts about the training, as the Trainer recorded them.
        versions: Of Python and of the packages that made the model.
        schema_sha256: The SHA-256 of the raw schema's deterministic serialization, in hexadecimal.
    """

    format: Literal[1] = 1
    name: str
    label: Label
    created: datetime
    num_parameters: int
    signatures: dict[str, Signature]
    embedding_layer: str | None = None
    class_names: list[str] | None = None
    task: Task | None = None
    validation_metrics: dict[str, float | None] = Field(default_factory=dict)
    training: dict[str, Any] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    schema_sha256: str = ""

    @property
    def callbacks(self) -> dict[str, Any]:
        """The settings of the training's callbacks."""
        settings = self.training.get("settings")
        callbacks = settings.get("callbacks") if isinstance(settings, dict) else None
        return callbacks if isinstance(callbacks, dict) else {}


def read_card(saved_model: Path) -> Card:
    """Reads the card of a SavedModel, given its folder.

    Raises:
        ContentError: It is missing or broken.
    """
    return read_record(saved_model / CARD_FILE, Card)


def read_card_of(model: HasFiles) -> Card:
    """Reads the card of a Model artifact.

    Raises:
        ContentError: It is missing or broken.
    """
    return read_record(model.file(f"{SERVING_MODEL_FOLDER}/{CARD_FILE}"), Card)
