"""The settings under `trainer:` in a recipe. Importing them does not load TensorFlow."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from components.trainer.callback_settings import CallbackSettings
from contracts.settings import Settings


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
    """How training saves memory and time, and its learning rate.

    Attributes:
        gradient_accumulation: Groups that each replica's part of a batch is split into; their gradients are added up
            before the step's single update. The update is that of the whole batch, in the memory of one group.
        recompute: Names of blocks (layers or nested models; `*` stands for any characters) whose activations are
            computed again in the backward pass instead of kept: less memory for about a third more time.
        jit_compile: Compiles the training step with XLA.
        clip_norm: The largest norm of all gradients together; None does not clip.
        learning_rate_schedule: See ScheduleSettings; None keeps the recipe's learning rate.
        learning_rate_scaling: How the learning rate follows `batch_size / base_batch_size`: `linear` (Goyal et al.,
            2017, arXiv:1706.02677), `sqrt`, or `none`.
        base_batch_size: The global batch size that the recipe's learning rate is meant for.
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


Strategy = Literal["auto", "one_device", "mirrored", "multi_worker", "parameter_server", "tpu"]
Partitioner = Literal["MinSizePartitioner", "MaxSizePartitioner", "FixedShardsPartitioner"]
Precision = Literal["auto", "float32", "mixed_bfloat16", "mixed_float16"]

MANY_PROCESSES = ("multi_worker", "parameter_server")
"""The strategies whose replicas are processes of their own."""


class InputSettings(Settings):
    """How the transformed examples reach the model.

    Attributes:
        cache: `memory` parses a split once and keeps it; `disk` keeps the parsed rows in tf.data's cache files, in a
            folder under TMPDIR that is removed when the training ends; `none` reads and parses the files in every
            epoch; `auto` keeps a split in memory if its parsed rows take at most a quarter of the machine's.
        shuffle_rows: Rows of the shuffle buffer if the split is not kept in memory; in memory all rows are shuffled.
        auto_shard: How the workers of a `multi_worker` training share the data, as in TensorFlow's AutoShardPolicy.
            With `data`, all read the same rows and each takes its part of every batch, so that a pass has every row
            once. With `file`, each reads its own files, which is less work but only correct if all files have the same
            number of rows. In memory or on disk, and for validation, it is always `data`.
    """

    cache: Literal["auto", "memory", "disk", "none"] = "auto"
    shuffle_rows: int = Field(default=100_000, ge=1)
    auto_shard: Literal["data", "file"] = "data"


class Phase(Settings):
    """A part of the training, such as the first of a fine-tuning, where only the new layers learn.

    Attributes:
        epochs: Passes over the training split.
        freeze: Names of layers that do not learn in this phase; `*` stands for any characters.
        learning_rate: Replaces the recipe's; None keeps it.
    """

    epochs: int = Field(ge=1)
    freeze: list[str] = Field(default_factory=list)
    learning_rate: float | None = Field(default=None, gt=0)


class TrainerSettings(Settings):
    """How the model is trained.

    Attributes:
        batch_size: Rows per training step over all replicas together (the global batch).
        train_steps: The number of training steps; give this, `epochs` or `phases`.
        epochs: Passes over the training split; give this, `train_steps` or `phases`.
        phases: Trained one after the other; give this, `train_steps` or `epochs`.
        steps_per_execution: Training steps that TensorFlow runs without returning to Python.
        seed: Seed of the initial weights, the shuffling and everything else that is random in training.
        strategy: The `tf.distribute` strategy; `auto` takes what the machine has (all its GPUs, a TPU, or the cluster
            that TF_CONFIG names), else one device.
        replicas: Devices of `mirrored`; None takes all GPUs. On a machine without GPUs, the number of CPU devices with
            which to rehearse it.
        workers: Processes that train. Without a TF_CONFIG in the environment they are started on this machine.
        parameter_servers: Processes that hold the variables, for `parameter_server`.
        partitioner: How a large variable is divided among parameter servers, by the classes of
            tf.distribute.experimental.partitioners, into at most `parameter_servers` shards; None keeps each whole.
        shard_bytes: The least bytes of a shard for `MinSizePartitioner`, the most for `MaxSizePartitioner`.
        communication: How workers of `multi_worker` reduce their gradients.
        precision: The Keras dtype policy; `auto` takes the fastest on the device, or float32 for a model that cannot be
            built in it or has so few weights that it gains nothing.
        gpu_memory_limit_mb: The most memory to use of a GPU, in MiB; None takes memory as it is needed.
        sample_weight: The transformed feature that weights each row's loss and metrics; it is no input of the model.
        embedding_layer: The layer whose output the model's `embedding` signature returns.
        debug: Helps to find faults in data or model: runs eagerly, checks every value and names the feature.
        input: See InputSettings.
        optimization: See OptimizationSettings.
        callbacks: See CallbackSettings.
        params: Passed to the functions of the recipe's model.py as they stand.
    """

    batch_size: int = Field(default=128, ge=1)
    train_steps: int | None = Field(default=None, ge=1)
    epochs: int | None = Field(default=None, ge=1)
    phases: list[Phase] = Field(default_factory=list)
    steps_per_execution: int = Field(default=50, ge=1)
    seed: int = Field(default=1, ge=0)
    strategy: Strategy = "auto"
    replicas: int | None = Field(default=None, ge=1)
    workers: int = Field(default=1, ge=1)
    parameter_servers: int = Field(default=1, ge=1)
    partitioner: Partitioner | None = None
    shard_bytes: int = Field(default=256 << 10, ge=1)
    communication: Literal["auto", "ring", "nccl"] = "auto"
    precision: Precision = "auto"
    gpu_memory_limit_mb: int | None = Field(default=None, ge=256)
    sample_weight: str | None = None
    embedding_layer: str | None = None
    debug: bool = False
    input: InputSettings = InputSettings()
    optimization: OptimizationSettings = OptimizationSettings()
    callbacks: CallbackSettings = CallbackSettings()
    params: dict[str, Any] = Field(default_factory=dict)

    @property
    def in_several_processes(self) -> bool:
        """Whether a cluster of processes trains: the one that TF_CONFIG names, or else one started for the training."""
        return self.workers > 1 or self.strategy == "parameter_server"

    @property
    def several_devices(self) -> str | None:
        """The setting that asks for more than one device; None if none does."""
        if self.strategy not in ("auto", "one_device"):
            return f"trainer.strategy {self.strategy}"
        if self.workers > 1:
            return f"trainer.workers {self.workers}"
        return None if self.replicas is None else f"trainer.replicas {self.replicas}"

    @model_validator(mode="after")
    def _one_length(self) -> TrainerSettings:
        lengths = {"train_steps": self.train_steps, "epochs": self.epochs, "phases": self.phases or None}
        if sum(value is not None for value in lengths.values()) != 1:
            received = ", ".join(f"{name}={value}" for name, value in lengths.items() if value is not None) or "none"
            raise ValueError(f"give exactly one of train_steps, epochs and phases; received {received}")
        return self

    @model_validator(mode="after")
    def _strategy_fits(self) -> TrainerSettings:
        if self.workers > 1 and self.strategy not in ("auto", *MANY_PROCESSES):
            raise ValueError(
                f"workers is {self.workers}, but strategy {self.strategy} runs in one process; "
                f"expected one of {', '.join(MANY_PROCESSES)}"
            )
        if self.replicas is not None and self.strategy not in ("auto", "mirrored"):
            raise ValueError(f"replicas is for strategy mirrored; received strategy {self.strategy}")
        # Each worker of parameter_server processes whole batches.
        replicas = self.replicas or (1 if self.strategy == "parameter_server" else self.workers)
        if self.batch_size % replicas:
            raise ValueError(
                f"batch_size is the rows of all replicas together, expected a multiple of {replicas}; "
                f"received {self.batch_size}"
            )
        return self

    @model_validator(mode="after")
    def _combine(self) -> TrainerSettings:
        schedule = self.optimization.learning_rate_schedule
        if schedule and self.callbacks.reduce_lr_on_plateau:
            raise ValueError(
                "optimization.learning_rate_schedule and callbacks.reduce_lr_on_plateau both set the learning rate; "
                "keep one of them"
            )
        if self.debug and self.optimization.jit_compile:
            raise ValueError("debug runs eagerly, which optimization.jit_compile cannot; keep one of them")
        return self

    @model_validator(mode="after")
    def _strategy_can(self) -> TrainerSettings:
        conflict = self.conflict_with("multi_worker" if self.strategy == "auto" and self.workers > 1 else self.strategy)
        if conflict:
            raise ValueError(conflict)
        if self.partitioner is not None and self.strategy != "parameter_server":
            raise ValueError(f"partitioner is for strategy parameter_server; received strategy {self.strategy}")
        if self.partitioner is not None and self.callbacks.checkpoints:
            raise ValueError(
                "callbacks.checkpoints cannot keep variables that partitioner divides, for a model on one device has "
                "others; keep one of them"
            )
        if self.communication == "nccl" and self.strategy not in ("auto", "multi_worker"):
            raise ValueError(f"communication is for strategy multi_worker; received strategy {self.strategy}")
        return self

    def conflict_with(self, strategy: str) -> str | None:
        """A message about settings that a strategy does not support in TensorFlow 2.16; None if it supports all.

        Args:
            strategy: One of `Strategy`, or the one that `auto` resolved to.
        """
        parameter_server = strategy == "parameter_server"
        tensorboard = self.callbacks.tensorboard
        profiles = tensorboard is not None and tensorboard.profile_steps is not None
        checkpoints = self.callbacks.checkpoints
        within_epochs = checkpoints is not None and checkpoints.save_freq != "epoch"
        unsupported = {
            "debug": self.debug and parameter_server,
            "callbacks.tensorboard.profile_steps": profiles and parameter_server,
            "input.cache disk": self.input.cache == "disk" and parameter_server,
            "callbacks.checkpoints.save_freq in steps": within_epochs and parameter_server,
            "precision mixed_float16": self.precision == "mixed_float16" and parameter_server,
            "optimization.jit_compile": self.optimization.jit_compile and strategy in MANY_PROCESSES,
        }
        names = [name for name, is_set in unsupported.items() if is_set]
        return f"strategy {strategy} cannot do {' and '.join(names)}; keep one of them" if names else None


def own_training_refusal(path: str, received: str) -> tuple[str, str]:
    """The fault, and how to mend it, of a recipe with a `train` of its own that asks for several devices.

    Args:
        path: The recipe's model.py.
        received: What asks for them.
    """
    return (
        f"{path} has a function train, which trains on one device in one process; received {received}.",
        "Take that back, or remove train from model.py: then `model.fit` trains what build_model returns.",
    )
