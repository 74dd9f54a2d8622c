"""What the InfraValidator and the TF Lite node report about a model.

Fields that have a default are missing where a model was not tried or made, and in what older versions wrote.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from contracts.content import HasFiles, Record, read_record

REPORT_FILE = "report.json"
"""In the InfraBlessing artifact and in the TFLiteModel artifact, whether or not there is a model beside it."""

NOT_BLESSED = "the Evaluator did not bless the model"
"""Why a model is not tried, not made, and not pushed."""


@dataclass(frozen=True)
class Tolerance:
    """How far a number may be off: |got - expected| <= absolute + relative * |expected|."""

    relative: float
    absolute: float


@dataclass(frozen=True)
class AnswerDifference:
    """Something that was answered otherwise.

    Attributes:
        row: The position of the row in the sample.
        api: `REST` or `gRPC`.
        output: The output's name; empty where the whole answer is meant.
        got: What the server answered.
        expected: What the Evaluator saw.
    """

    row: int
    api: str
    output: str
    got: str
    expected: str

    def __str__(self) -> str:
        what = f"output {self.output}" if self.output else "the answer"
        return f"row {self.row} over {self.api}: {what} is {self.got}, expected {self.expected}"


class InfraReport(Record):
    """How the model server served the model.

    Attributes:
        blessed: Whether it answers as the Evaluator saw it.
        skipped: Why it was not tried, or None.
        problems: What is wrong, a sentence each.
        differences: Each answer that was another.
        requests: How many rows were asked.
        precision: The model's precision.
        tolerance: What that allows.
        seconds: To load the model and to ask it.
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
    """How far an output of the TF Lite model is from the SavedModel's; None where that is not finite.

    Attributes:
        max: The largest absolute difference of any value; of class ids, 1 if any differs.
        mean: The mean absolute difference; of class ids, the fraction that differs.
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
        max_accuracy_loss: How much lower than the SavedModel's its accuracy may be.
        threads: That the interpreter had.
        judged_by: The output whose classes were compared with the labels.
        float_ops: Ops that stayed in float32, where int8 was asked for.
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
    max_accuracy_loss: float | None = None
    threads: int | None = None
    judged_by: str | None = None
    float_ops: list[str] | None = None
    rows: int | None = None
    accuracy: float | None = None
    saved_model_accuracy: float | None = None
    differences: dict[str, OutputDifference] = Field(default_factory=dict)


def read_infra_report(blessing: HasFiles) -> InfraReport:
    """The report in an InfraBlessing artifact.

    Raises:
        ContentError: It is missing or broken.
    """
    return read_record(blessing.file(REPORT_FILE), InfraReport)


def read_tflite_report(model: HasFiles) -> TFLiteReport:
    """The report in a TFLiteModel artifact.

    Raises:
        ContentError: It is missing or broken.
    """
    return read_record(model.file(REPORT_FILE), TFLiteReport)
