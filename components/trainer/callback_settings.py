"""The settings under `trainer.callbacks:` in a recipe."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from components.settings import Settings

Mode = Literal["auto", "min", "max"]


class EarlyStoppingSettings(Settings):
    """Ends the training when a metric no longer improves.

    Attributes:
        monitor: The metric, as Keras logs it; those of the evaluation split begin with `val_`.
        patience: Epochs without improvement.
        min_delta: The least change that counts as one.
        mode: Whether the metric should fall or rise; `auto` tells by its name.
        restore_best_weights: Whether the model of the best epoch is kept instead of the last one's.
    """

    monitor: str = "val_loss"
    patience: int = Field(default=3, ge=0)
    min_delta: float = Field(default=0.0, ge=0)
    mode: Mode = "auto"
    restore_best_weights: bool = True


class ReduceLROnPlateauSettings(Settings):
    """Lowers the learning rate when a metric no longer improves.

    Attributes:
        monitor: The metric, as Keras logs it.
        factor: What the learning rate is multiplied with.
        patience: Epochs without improvement.
        min_lr: The least learning rate.
        mode: Whether the metric should fall or rise; `auto` tells by its name.
    """

    monitor: str = "val_loss"
    factor: float = Field(default=0.1, gt=0, lt=1)
    patience: int = Field(default=2, ge=0)
    min_lr: float = Field(default=0.0, ge=0)
    mode: Mode = "auto"


class BestCheckpointSettings(Settings):
    """Exports the best epoch's model instead of the last one's.

    Attributes:
        monitor: The metric, as Keras logs it.
        mode: Whether the metric should fall or rise; `auto` tells by its name.
    """

    monitor: str = "val_loss"
    mode: Mode = "auto"


class TensorBoardSettings(Settings):
    """What is written for TensorBoard, into the ModelRun artifact.

    Attributes:
        histograms_every: Epochs between two histograms of all weights; 0 writes none.
        example_images: Training images, as augmented, shown after each epoch; 0 shows none.
        profile_steps: First and last step of a profile.
    """

    histograms_every: int = Field(default=0, ge=0)
    example_images: int = Field(default=0, ge=0)
    profile_steps: tuple[int, int] | None = None

    @field_validator("profile_steps")
    @classmethod
    def _ordered(cls, steps: tuple[int, int] | None) -> tuple[int, int] | None:
        if steps is not None and not 1 <= steps[0] <= steps[1]:
            raise ValueError(f"received {list(steps)}, expected [first, last] with 1 <= first <= last")
        return steps


class CallbackSettings(Settings):
    """What watches the training. A loss that is no number always ends it, and history.csv is always written.

    Attributes:
        early_stopping: See EarlyStoppingSettings; None trains to the end.
        reduce_lr_on_plateau: See ReduceLROnPlateauSettings; None never lowers the learning rate.
        best_checkpoint: See BestCheckpointSettings; None exports the model as it is at the end.
        backup: Whether an interrupted training is taken up again after its last whole epoch.
        tensorboard: See TensorBoardSettings; None writes nothing for TensorBoard.
    """

    early_stopping: EarlyStoppingSettings | None = None
    reduce_lr_on_plateau: ReduceLROnPlateauSettings | None = None
    best_checkpoint: BestCheckpointSettings | None = None
    backup: bool = True
    tensorboard: TensorBoardSettings | None = TensorBoardSettings()
