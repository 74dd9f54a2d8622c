"""The settings under `trainer.optimization:` in a recipe."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from components.settings import Settings


class ScheduleSettings(Settings):
    """The learning rate over the training steps: a linear warm-up, then a decay to the end of the training.

    Attributes:
        decay: `cosine` (Loshchilov & Hutter, 2017, arXiv:1608.03983), or `none` to stay at the full rate.
        warmup_steps: Steps from 0 to the full rate.
        final_fraction: The last step's rate as a fraction of the full one.
    """

    decay: Literal["cosine", "none"] = "cosine"
    warmup_steps: int = Field(default=0, ge=0)
    final_fraction: float = Field(default=0.0, ge=0, le=1)


class OptimizationSettings(Settings):
    """What makes training fit into memory, and go faster.

    Attributes:
        gradient_accumulation: Groups that each replica's part of a batch is cut into; their gradients are added up
            before the one update of the step. The update is that of the whole batch, in the memory of a group.
        recompute: Names of blocks (layers or nested models; `*` stands for any letters) whose activations are computed
            again in the backward pass instead of kept: less memory for about a third more time.
        jit_compile: Compiles the training step by XLA.
        clip_norm: The greatest norm of all gradients together.
        learning_rate_schedule: See ScheduleSettings; None keeps the recipe's learning rate.
        learning_rate_scaling: How the learning rate follows `batch_size / base_batch_size`: `linear` (Goyal et al.,
            2017, arXiv:1706.02677), `sqrt`, or `none`.
        base_batch_size: The global batch that the recipe's learning rate is meant for.
    """

    gradient_accumulation: int = Field(default=1, ge=1)
    recompute: list[str] = Field(default_factory=list)
    jit_compile: bool = False
    clip_norm: float | None = Field(default=None, gt=0)
    learning_rate_schedule: ScheduleSettings | None = None
    learning_rate_scaling: Literal["none", "linear", "sqrt"] = "none"
    base_batch_size: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _scaling_has_a_base(self) -> OptimizationSettings:
        if (self.learning_rate_scaling == "none") != (self.base_batch_size is None):
            raise ValueError(
                "learning_rate_scaling and base_batch_size go together; "
                f"received {self.learning_rate_scaling} and {self.base_batch_size}"
            )
        return self
