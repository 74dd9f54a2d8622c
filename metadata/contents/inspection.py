"""What the InfraValidator and the TF Lite node report about a model."""

from __future__ import annotations

from pydantic import Field

from metadata.contents.reading import Record


class InfraReport(Record):
    """How the model server served the model.

    Attributes:
        blessed: Whether it answers as the Evaluator saw it.
        skipped: Why it was not tried, or None.
        problems: What is wrong, a sentence each.
        requests: How many rows were asked.
        precision: The model's precision.
        seconds: To load the model and to ask it.
    """

    blessed: bool
    skipped: str | None = None
    problems: list[str] = Field(default_factory=list)
    requests: int | None = None
    precision: str | None = None
    seconds: float | None = None


class OutputDifference(Record):
    """How far an output of the TF Lite model is from the SavedModel's.

    Attributes:
        max: The largest absolute difference.
        mean: The mean one.
    """

    max: float | None
    mean: float | None


class TFLiteReport(Record):
    """What was measured of the TF Lite model; without a size none was made.

    Attributes:
        quantization: How it was asked for.
        blessed: Whether it may be pushed.
        refused: Why not, or None.
        size_bytes: The file's size.
        variables_bytes: The size of the SavedModel's variables.
        latency_ms: Of one row.
        threads: That the interpreter had.
        rows: How many it was judged on.
        accuracy: Its own.
        saved_model_accuracy: The SavedModel's.
        differences: By output.
    """

    quantization: str = ""
    blessed: bool
    refused: str | None = None
    size_bytes: int | None = None
    variables_bytes: int | None = None
    latency_ms: float | None = None
    threads: int | None = None
    rows: int | None = None
    accuracy: float | None = None
    saved_model_accuracy: float | None = None
    differences: dict[str, OutputDifference] = Field(default_factory=dict)
