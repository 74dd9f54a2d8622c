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


class PathDifference(Record):
    """How far the answers of one way to ask the model are from what was evaluated, at their worst.

    Attributes:
        path: The way, such as `REST predict by rows`.
        rows: How many rows were asked.
        differing: How many of them are off by more than `tolerance`.
        difference: The largest absolute difference; None if what differs is not a finite float.
        tolerance: What is allowed.
        output: The output that differs most; where features are compared, the transformed feature.
        row: The row in which it does, counted from 0 over the split `eval`; None if nothing differs.
        got: The answer to that row.
        expected: What it is compared with: the evaluation's prediction, or the feature that Transform wrote.
        feature: The feature that causes the difference; None if all features agree.
    """

    path: str
    rows: int
    differing: int
    difference: float | None
    tolerance: Tolerance
    output: str
    row: int | None = None
    got: str = ""
    expected: str = ""
    feature: str | None = None

    def __str__(self) -> str:
        cause = f"; the feature {self.feature} causes it" if self.feature else ""
        return (
            f"{self.path}: {self.output} is {self.got} in row {self.row} of the split eval, expected {self.expected} "
            f"({self.differing} of {self.rows} rows differ){cause}"
        )


class InfraReport(Record):
    """How the model server served the model.

    Attributes:
        blessed: Whether the server's responses match what was evaluated and trained on.
        skipped: Why it was not tried, or None.
        problems: What is wrong, a sentence each.
        paths: The largest difference of each way to ask the model, and each further output that differs too much.
        rows: How many rows were compared.
        precision: The model's precision.
        seconds: How long loading the model and querying it took.
    """

    blessed: bool
    skipped: str | None = None
    problems: list[str] = Field(default_factory=list)
    paths: list[PathDifference] = Field(default_factory=list)
    rows: int | None = None
    precision: str | None = None
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
