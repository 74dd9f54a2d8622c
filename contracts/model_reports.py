"""What the InfraValidator and the TF Lite node report about a model.

Fields with a default are missing if no model was tried or made, and from files that older versions wrote.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from contracts.content import HasFiles, Record, read_record

REPORT_FILE = "report.json"
"""In the InfraBlessing and TFLiteModel artifacts, whether or not there is a model beside it."""

NOT_BLESSED = "the Evaluator did not bless the model"
"""Why a model is not tried, not made, and not pushed."""


@dataclass(frozen=True)
class Tolerance:
    """How far a number may be off: |got - expected| <= absolute + relative * |expected|."""

    relative: float
    absolute: float


@dataclass(frozen=True)
class AnswerDifference:
    """A response that differs from the expected one.

    Attributes:
        row: The position of the row in the sample.
        api: `REST` or `gRPC`.
        output: The output's name; empty for the whole response.
        got: What the server returned.
        expected: What the Evaluator saw.
    """

    row: int
    api: str
    output: str
    got: str
    expected: str

    def __str__(self) -> str:
        subject = f"output {self.output}" if self.output else "the answer"
        return f"row {self.row} over {self.api}: {subject} is {self.got}, expected {self.expected}"


class InfraReport(Record):
    """How the model server served the model.

    Attributes:
        blessed: Whether the server's responses match what the Evaluator saw.
        skipped: Why it was not tried, or None.
        problems: What is wrong, a sentence each.
        differences: The responses that differ.
        requests: How many rows were sent.
        precision: The model's precision.
        tolerance: What that precision allows.
        seconds: How long loading the model and querying it took.
    """

    blessed: bool
    skipped: str | None = None
    problems: list[str] = Field(default_factory=list)
    differences: list[AnswerDifference] = Field(default_factory=list)
    requests: int | None = None
    precision: str | None = None
    tolerance: Tolerance | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class OutputDifference:
    """How far an output of the TF Lite model is from the SavedModel's; None if that is not finite.

    Attributes:
        max: The largest absolute difference; for class ids, 1 if any differs.
        mean: The mean absolute difference; for class ids, the fraction that differ.
    """

    max: float | None
    mean: float | None


class TFLiteReport(Record):
    """What was measured on the TF Lite model; without a size, none was made.

    Attributes:
        quantization: The quantization that was requested.
        blessed: Whether it may be pushed.
        refused: Why not, or None.
        size_bytes: The file's size.
        variables_bytes: The size of the SavedModel's variables.
        latency_ms: For one row.
        max_accuracy_loss: How much lower than the SavedModel's its accuracy may be.
        threads: The interpreter's threads.
        judged_by: The output whose classes were compared with the labels.
        float_ops: Ops that stayed in float32 although int8 was requested.
        rows: How many rows it was judged on.
        accuracy: Its accuracy.
        saved_model_accuracy: The SavedModel's.
        differences: By output.
    """

    quantization: str = ""
    blessed: bool
    refused: str | None = None
    size_bytes: int | None = None
    variables_bytes: int | None = None
    latency_ms: float | None = None
    max_accuracy_loss: float | None = None
    threads: int | None = None
    judged_by: str | None = None
    float_ops: list[str] | None = None
    rows: int | None = None
    accuracy: float | None = None
    saved_model_accuracy: float | None = None
    differences: dict[str, OutputDifference] = Field(default_factory=dict)


def read_infra_report(blessing: HasFiles) -> InfraReport:
    """Reads the report in an InfraBlessing artifact.

    Raises:
        ContentError: It is missing or broken.
    """
    return read_record(blessing.file(REPORT_FILE), InfraReport)


def read_tflite_report(model: HasFiles) -> TFLiteReport:
    """Reads the report in a TFLiteModel artifact.

    Raises:
        ContentError: It is missing or broken.
    """
    return read_record(model.file(REPORT_FILE), TFLiteReport)
