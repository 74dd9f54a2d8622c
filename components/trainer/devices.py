"""What a training makes of the devices it has: the dtype policy, and the `tf.distribute` strategy."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tensorflow as tf
import tf_keras

from components.trainer.settings import Precision, TrainerSettings
from contracts.errors import TrainingError

TENSOR_CORES = (7, 0)
"""The compute capability (Volta) from which NVIDIA GPUs multiply float16 matrices several times faster than float32."""

BFLOAT16_FLAGS = frozenset({"avx512_bf16", "amx_bf16"})
"""Flags of x86 processors that multiply bfloat16 matrices in hardware."""

CPU_INFO = Path("/proc/cpuinfo")

CONFIG_VARIABLE = "TF_CONFIG"
"""Names the environment variable with the cluster's tasks, and which of them this process is, as JSON."""


@contextmanager
def precision_policy(precision: Precision, loss_scaling: bool = True) -> Iterator[str]:
    """Makes `precision` Keras's global dtype policy for a while.

    Args:
        precision: What is asked for.
        loss_scaling: See `resolve_precision`.

    Yields:
        The policy's name, with `auto` resolved.
    """
    earlier = tf_keras.mixed_precision.global_policy()
    chosen = resolve_precision(precision, loss_scaling)
    tf_keras.mixed_precision.set_global_policy(chosen)
    try:
        yield chosen
    finally:
        tf_keras.mixed_precision.set_global_policy(earlier)


def resolve_precision(precision: Precision, loss_scaling: bool = True) -> str:
    """Returns the dtype policy: `precision` itself, or for `auto` what this machine's devices are fast at.

    Args:
        precision: What is asked for.
        loss_scaling: Whether the strategy can scale losses; without that, small float16 gradients vanish, and `auto`
            does not choose it.
    """
    if precision != "auto":
        return precision
    if tf.config.list_logical_devices("TPU"):
        return "mixed_bfloat16"
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        capable = loss_scaling and all(_compute_capability(gpu) >= TENSOR_CORES for gpu in gpus)
        return "mixed_float16" if capable else "float32"
    return "mixed_bfloat16" if cpu_flags() & BFLOAT16_FLAGS else "float32"


def cpu_flags() -> frozenset[str]:
    """The processor's feature flags, as Linux names them; none where the system does not tell."""
    if not CPU_INFO.exists():
        return frozenset()
    lines = CPU_INFO.read_text(encoding="utf-8").splitlines()
    return frozenset(next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), []))


def check_outputs(model: tf_keras.Model) -> None:
    """Checks that no output of the model is in half precision, which near 0 and 1 has no probabilities left.

    Raises:
        TrainingError: An output is float16 or bfloat16.
    """
    for name, output in zip(model.output_names, model.outputs, strict=True):
        if output.dtype in (tf.float16, tf.bfloat16):
            raise TrainingError(
                f"The model's output {name!r} is {output.dtype.name} under mixed precision, expected float32.",
                'Give its last layer dtype="float32" in model.py, as in Activation("softmax", dtype="float32"), '
                "or set trainer.precision: float32.",
            )


def cluster_config() -> dict[str, Any]:
    """What TF_CONFIG says; empty where there is none."""
    config: dict[str, Any] = json.loads(os.environ.get(CONFIG_VARIABLE) or "{}")
    return config


def create_strategy(settings: TrainerSettings) -> tf.distribute.Strategy:
    """Returns the strategy for this process.

    Raises:
        TrainingError: The machine does not have what the settings want, or the batch cannot be shared out evenly.
    """
    kind = resolve_strategy(settings)
    conflict = settings.conflict_with(kind)
    if conflict:
        raise TrainingError(f"The trainer's settings do not fit the cluster: {conflict}.")
    _configure_devices(kind, settings)
    strategy = {
        "one_device": lambda: tf.distribute.get_strategy(),
        "mirrored": lambda: _mirrored(settings),
        "multi_worker": lambda: _multi_worker(settings),
        "parameter_server": _parameter_server,
        "tpu": _tpu,
    }[kind]()
    replicas = strategy.num_replicas_in_sync
    if settings.batch_size % replicas:
        raise TrainingError(
            f"trainer.batch_size is {settings.batch_size}, expected a multiple of the {replicas} replicas found.",
            f"Set trainer.batch_size to {settings.batch_size // replicas * replicas or replicas}.",
        )
    return strategy


def resolve_strategy(settings: TrainerSettings) -> str:
    """The strategy's name, with `auto` resolved to what this machine or cluster has."""
    if settings.strategy != "auto":
        return settings.strategy
    config = cluster_config()
    if config:
        return "parameter_server" if "ps" in config["cluster"] else "multi_worker"
    if settings.workers > 1:
        return "multi_worker"
    if (settings.replicas or len(tf.config.list_physical_devices("GPU"))) > 1:
        return "mirrored"
    return "tpu" if tf.config.list_physical_devices("TPU") else "one_device"


def is_parameter_server(strategy: tf.distribute.Strategy) -> bool:
    """Whether workers train asynchronously: it cannot scale losses, and callbacks cannot look within an epoch."""
    return isinstance(strategy, tf.distribute.ParameterServerStrategy)


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process is the one that writes results."""
    return bool(strategy.extended.should_checkpoint)


def distributed_batches(make: Callable[[], tf.data.Dataset], strategy: tf.distribute.Strategy) -> Any:
    """What `fit` is given so that the replicas share the batches of the dataset that `make` returns.

    A worker of `parameter_server` works through whole batches of its own: of n workers each takes every n-th.
    """
    if not is_parameter_server(strategy):
        return make()
    num_workers = len(cluster_config()["cluster"]["worker"])

    def every_nth(context: tf.distribute.InputContext) -> tf.data.Dataset:
        return make().shard(num_workers, tf.distribute.coordinator.experimental_get_current_worker_index())

    return tf_keras.utils.experimental.DatasetCreator(every_nth)


def check_files(files: Sequence[str], settings: TrainerSettings) -> None:
    """Checks that workers that share the data by file have a file each.

    Raises:
        TrainingError: There are fewer files than workers.
    """
    tasks = cluster_config().get("cluster", {})
    num_workers = len([*tasks.get("chief", []), *tasks.get("worker", [])])
    if settings.input.auto_shard == "file" and "ps" not in tasks and len(files) < num_workers:
        raise TrainingError(
            f"trainer.input.auto_shard is file, but the training split has {len(files)} files, "
            f"expected one for each of the {num_workers} workers.",
            "Set auto_shard to data.",
        )


def wait_for_all(strategy: tf.distribute.Strategy) -> None:
    """Returns when every worker of `multi_worker` has reached this call; other strategies have one."""
    if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        barrier = tf.function(lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.constant(1.0)))
        for arrived in strategy.experimental_local_results(strategy.run(barrier)):
            arrived.numpy()


def on_one_device(
    model: tf_keras.Model, strategy: tf.distribute.Strategy, build: Callable[[], tf_keras.Model]
) -> tf_keras.Model:
    """Returns the model on one device of this process, so that it can be exported by one process alone.

    All workers must call it: what each has its own value of, such as moving averages, is averaged among them.

    Args:
        model: Trained under `strategy`.
        strategy: Whose variables it has.
        build: Makes the same model with other weights.
    """
    if strategy is tf.distribute.get_strategy():
        return model
    weights = model.get_weights()
    copy = build()
    copy.set_weights(weights)
    return copy


def describe_strategy(strategy: tf.distribute.Strategy, policy: str) -> str:
    """A few words for people: the dtype policy, and over how many devices or workers the training is spread."""
    tasks = cluster_config().get("cluster", {})
    if is_parameter_server(strategy):
        return f"{policy}, {_number(tasks['worker'], 'worker')}, {_number(tasks['ps'], 'parameter server')}"
    if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return f"{policy}, {_number([*tasks.get('chief', []), *tasks.get('worker', ['this one'])], 'worker')}"
    if isinstance(strategy, tf.distribute.MirroredStrategy):
        return f"{policy}, mirrored on {strategy.num_replicas_in_sync} devices"
    if isinstance(strategy, tf.distribute.TPUStrategy):
        return f"{policy}, {strategy.num_replicas_in_sync} TPU cores"
    return policy


def _configure_devices(kind: str, settings: TrainerSettings) -> None:
    """Splits the devices as the settings say; that can only be done before this process uses TensorFlow."""
    gpus = tf.config.list_physical_devices("GPU")
    if gpus and settings.gpu_memory_limit_mb:
        for gpu in gpus:
            limited = tf.config.LogicalDeviceConfiguration(memory_limit=settings.gpu_memory_limit_mb)
            tf.config.set_logical_device_configuration(gpu, [limited])
    if kind == "mirrored" and not gpus:
        [cpu] = tf.config.list_physical_devices("CPU")
        parts = [tf.config.LogicalDeviceConfiguration()] * (settings.replicas or 1)
        tf.config.set_logical_device_configuration(cpu, parts)


def _mirrored(settings: TrainerSettings) -> tf.distribute.Strategy:
    gpus = tf.config.list_logical_devices("GPU")
    devices = gpus or tf.config.list_logical_devices("CPU")
    wanted = settings.replicas or len(devices)
    if wanted > len(devices):
        raise TrainingError(
            f"trainer.replicas is {wanted}, but this machine has {len(gpus)} GPUs.",
            f"Set trainer.replicas to at most {len(gpus)}.",
        )
    return tf.distribute.MirroredStrategy([device.name for device in devices[:wanted]])


def _multi_worker(settings: TrainerSettings) -> tf.distribute.Strategy:
    if settings.communication == "nccl" and not tf.config.list_physical_devices("GPU"):
        raise TrainingError(
            "trainer.communication is nccl, which reduces between GPUs, but this machine has none.",
            "Set trainer.communication to ring or auto.",
        )
    communication = tf.distribute.experimental.CommunicationImplementation[settings.communication.upper()]
    options = tf.distribute.experimental.CommunicationOptions(implementation=communication)
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)


def _parameter_server() -> tf.distribute.Strategy:
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    return tf.distribute.ParameterServerStrategy(resolver)


def _tpu() -> tf.distribute.Strategy:
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect()
    except (ValueError, tf.errors.NotFoundError) as error:
        raise TrainingError(
            f"trainer.strategy is tpu, but no TPU is found: {error}",
            "Run where a TPU is, or set trainer.strategy to auto.",
        ) from error
    return tf.distribute.TPUStrategy(resolver)


def _compute_capability(gpu: tf.config.PhysicalDevice) -> tuple[int, int]:
    return tf.config.experimental.get_device_details(gpu).get("compute_capability", (0, 0))  # type: ignore[no-any-return]


def _number(tasks: Sequence[str], name: str) -> str:
    return f"{len(tasks)} {name}" + ("" if len(tasks) == 1 else "s")
