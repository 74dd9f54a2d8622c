"""The settings under `infra_validator:` in a recipe."""

from typing import Any

from pydantic import Field, model_validator

from contracts.settings import Settings


class InfraValidatorSettings(Settings):
    """How a model is tried in the model server's own code before it is pushed.

    Attributes:
        rows: How many rows of the `eval` split are compared, in every way in which the model can be asked. With 0 the
            model is only loaded and warmed up, for models whose answers are random.
        max_difference: How far a number may be from what the evaluation or Transform recorded: this much, plus this
            fraction of the number. A model of mixed precision may differ by more, see `comparison.TOLERANCES`.
        max_tflite_difference: The same for the outputs of the TF Lite model.
    """

    rows: int = Field(default=2000, ge=0, le=100_000)
    max_difference: float = Field(default=1e-5, ge=0)
    max_tflite_difference: float = Field(default=0.2, ge=0)

    @model_validator(mode="before")
    @classmethod
    def _renamed(cls, values: Any) -> Any:
        if isinstance(values, dict) and "requests" in values:
            raise ValueError("requests is called rows now; received requests, expected rows")
        return values
