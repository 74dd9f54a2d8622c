"""The settings under `trainer:` in a recipe."""

from typing import Any

from pydantic import Field, model_validator

from components.settings import Settings


class TrainerSettings(Settings):
    """How the model is trained.

    Attributes:
      batch_size: Rows per training step.
      train_steps: Training steps in all; give this or `epochs`.
      epochs: Passes over the training split; give this or `train_steps`.
      steps_per_execution: Training steps that TensorFlow runs without returning to Python.
      seed: Seed of the initial weights, the shuffling and everything else that is random in training.
      params: Passed to the recipe's `build_model` and `compile_arguments` as they stand.
    """

    batch_size: int = Field(default=128, ge=1)
    train_steps: int | None = Field(default=None, ge=1)
    epochs: int | None = Field(default=None, ge=1)
    steps_per_execution: int = Field(default=50, ge=1)
    seed: int = Field(default=1, ge=0)
    params: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_length(self) -> "TrainerSettings":
        if (self.train_steps is None) == (self.epochs is None):
            raise ValueError(
                f"give either train_steps or epochs; received train_steps={self.train_steps}, epochs={self.epochs}"
            )
        return self
