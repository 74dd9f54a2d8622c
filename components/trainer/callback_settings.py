"""The settings under `trainer.callbacks` in a recipe. Importing them does not load TensorFlow."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from contracts.settings import Settings

Mode = Literal["auto", "min", "max"]


class EarlyStoppingSettings(Settings):
    """Ends the training when a metric no longer improves.

    Attributes:
        monitor: The metric, as Keras logs it; those of the evaluation split begin with `val_`.
        patience: Epochs without improvement.
        min_delta: The smallest change that counts as an improvement.
        mode: Whether the metric should fall or rise; `auto` decides by its name.
        baseline: What the metric must become better than to count as improved at all.
        start_from_epoch: Epochs before it begins to look.
        restore_best_weights: Whether to keep the model of the best epoch instead of the last one's.
    """

    monitor: str = "val_loss"
    baseline: float | None = None
    start_from_epoch: int = Field(default=0, ge=0)
    patience: int = Field(default=3, ge=0)
    min_delta: float = Field(default=0.0, ge=0)
    mode: Mode = "auto"
    restore_best_weights: bool = True


class ReduceLROnPlateauSettings(Settings):
    """Lowers the learning rate when a metric no longer improves.

    Attributes:
        monitor: The metric, as Keras logs it.
        factor: The factor that the learning rate is multiplied by.
        patience: Epochs without improvement.
        min_lr: The lowest learning rate.
        min_delta: The smallest change that counts as an improvement.
        cooldown: Epochs after a lowering in which none is counted as without improvement.
        mode: Whether the metric should fall or rise; `auto` decides by its name.
    """

    monitor: str = "val_loss"
    factor: float = Field(default=0.1, gt=0, lt=1)
    patience: int = Field(default=2, ge=0)
    min_lr: float = Field(default=0.0, ge=0)
    min_delta: float = Field(default=1e-4, ge=0)
    cooldown: int = Field(default=0, ge=0)
    mode: Mode = "auto"


class BestCheckpointSettings(Settings):
    """Exports the best epoch's model instead of the last one's.

    Attributes:
        monitor: The metric, as Keras logs it.
        mode: Whether the metric should fall or rise; `auto` decides by its name.
    """

    monitor: str = "val_loss"
    mode: Mode = "auto"


class CheckpointSettings(Settings):
    """Keeps the model as it was during the training, in the folder `checkpoints` of the ModelRun artifact.

    Attributes:
        save_freq: `epoch`, or a number of training steps; it is saved when an execution (`steps_per_execution`) that
            reaches a multiple of it ends.
        period: Epochs between two checkpoints, where `save_freq` is `epoch`.
        save_weights_only: `true` keeps weights, `epoch-0003.weights.h5`; `false` the whole model with the optimizer's
            state, `epoch-0003.keras`.
        max_to_keep: How many to keep, the latest ones; None keeps all.
    """

    save_freq: Literal["epoch"] | Annotated[int, Field(ge=1)] = "epoch"
    period: int = Field(default=1, ge=1)
    save_weights_only: bool = False
    max_to_keep: int | None = Field(default=5, ge=1)

    @model_validator(mode="after")
    def _period_of_epochs(self) -> CheckpointSettings:
        if self.save_freq != "epoch" and self.period != 1:
            raise ValueError(
                f"period counts epochs, save_freq {self.save_freq} steps; received both, expected one of them"
            )
        return self


class EmbeddingSettings(Settings):
    """Which words an embedding's rows stand for.

    Attributes:
        vocabulary: The transform graph's vocabulary, by its `vocab_filename`; None shows ids.
        first_id: The id of its first word.
    """

    vocabulary: str | None = None
    first_id: int = Field(default=0, ge=0)


class TensorBoardSettings(Settings):
    """What is written for TensorBoard, into the ModelRun artifact.

    Attributes:
        update_freq: How often the metrics of training are written: each `epoch`, each `batch`, or after so many
            batches; those of validation each epoch.
        embeddings: Layers whose weights the projector shows when the training has ended, by name; see
            EmbeddingSettings.
        histograms_every: Epochs between two histograms of all weights; 0 writes none.
        example_images: Augmented training images shown after each epoch; 0 shows none.
        profile_steps: First and last step to profile, counted from 1 over the whole training; meanwhile
            `steps_per_execution` is 1.
    """

    update_freq: Literal["epoch", "batch"] | Annotated[int, Field(ge=1)] = "epoch"
    embeddings: dict[str, EmbeddingSettings] = Field(default_factory=dict)
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
    """The callbacks of the training. A loss of NaN or infinity always ends it, and history.csv is always written.

    Attributes:
        early_stopping: See EarlyStoppingSettings; None trains to the end.
        reduce_lr_on_plateau: See ReduceLROnPlateauSettings; None never lowers the learning rate.
        best_checkpoint: See BestCheckpointSettings; None exports the model as it is at the end.
        checkpoints: See CheckpointSettings; None keeps none.
        backup: Whether an interrupted training resumes after its last whole epoch.
        tensorboard: See TensorBoardSettings; None writes nothing for TensorBoard.
    """

    early_stopping: EarlyStoppingSettings | None = None
    reduce_lr_on_plateau: ReduceLROnPlateauSettings | None = None
    best_checkpoint: BestCheckpointSettings | None = None
    checkpoints: CheckpointSettings | None = None
    backup: bool = True
    tensorboard: TensorBoardSettings | None = TensorBoardSettings()
