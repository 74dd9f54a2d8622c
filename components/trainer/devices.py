"""How a training uses the devices it has: the dtype policy, and the `tf.distribute` strategy."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tf_keras

from components.trainer import interface
from components.trainer.settings import Precision, TrainerSettings
from contracts.errors import TrainingError

Array: TypeAlias = npt.NDArray[Any]

TENSOR_CORES = (7, 0)
"""The compute capability (Volta) from which NVIDIA GPUs multiply float16 matrices several times faster than float32."""

BFLOAT16_FLAGS = frozenset({"avx512_bf16", "amx_bf16"})
"""Flags of x86 processors that multiply bfloat16 matrices in hardware."""

CPU_INFO = Path("/proc/cpuinfo")

CONFIG_VARIABLE = "TF_CONFIG"
"""The environment variable that holds, as JSON, the cluster's tasks and which of them this process is."""


@contextmanager
def precision_policy(precision: Precision, loss_scaling: bool = True) -> Iterator[str]:
    """Makes `precision` Keras's global dtype policy within the context.

    Args:
        precision: The setting.
        loss_scaling: See `resolve_precision`.

    Yields:
        The policy's name, with `auto` resolved.
    """
    previous_policy = tf_keras.mixed_precision.global_policy()
    policy = resolve_precision(precision, loss_scaling)
    tf_keras.mixed_precision.set_global_policy(policy)
    try:
        yield policy
    finally:
        tf_keras.mixed_precision.set_global_policy(previous_policy)


def resolve_precision(precision: Precision, loss_scaling: bool = True) -> str:
    """Returns the dtype policy: `precision` itself, or for `auto` the fastest on this machine's devices.

    Args:
        precision: The setting.
        loss_scaling: Whether the strategy can scale losses. If not, `auto` does not choose float16, whose small
            gradients would vanish.
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
    """The processor's feature flags, as Linux names them; empty if the system does not list them."""
    if not CPU_INFO.exists():
        return frozenset()
    lines = CPU_INFO.read_text(encoding="utf-8").splitlines()
    return frozenset(next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), []))


def check_outputs(model: tf_keras.Model) -> None:
    """Checks that no output of the model is in half precision, which is too coarse for probabilities near 0 and 1.

    Raises:
        TrainingError: An output is float16 or bfloat16.
    """
    for name, output in interface.outputs(model).items():
        if output.dtype in (tf.float16, tf.bfloat16):
            raise TrainingError(
                f"The model's output {name!r} is {output.dtype.name} under mixed precision, expected float32.",
                'Give its last layer dtype="float32" in model.py, as in Activation("softmax", dtype="float32"), '
                "or set trainer.precision: float32.",
            )


def cluster_config() -> dict[str, Any]:
    """The content of TF_CONFIG; empty if there is none."""
    config: dict[str, Any] = json.loads(os.environ.get(CONFIG_VARIABLE) or "{}")
    return config


def create_strategy(settings: TrainerSettings) -> tf.distribute.Strategy:
    """Returns the strategy for this process.

    Raises:
        TrainingError: The machine lacks the devices that the settings ask for, or the batch cannot be divided evenly.
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
        "parameter_server": lambda: _parameter_server(settings),
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
    """The strategy's name, with `auto` resolved according to this machine or cluster."""
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
    """Whether workers train asynchronously: losses cannot be scaled then, and callbacks cannot look within an epoch."""
    return isinstance(strategy, tf.distribute.ParameterServerStrategy)


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process is the one that writes results."""
    return bool(strategy.extended.should_checkpoint)


def distributed_batches(make_dataset: Callable[[], tf.data.Dataset], strategy: tf.distribute.Strategy) -> Any:
    """The argument of `fit` that shares the batches of the dataset returned by `make_dataset` among the replicas.

    The workers of `parameter_server` process whole batches: each of n workers takes every n-th.
    """
    if not is_parameter_server(strategy):
        return make_dataset()
    num_workers = len(cluster_config()["cluster"]["worker"])

    def every_nth(context: tf.distribute.InputContext) -> tf.data.Dataset:
        return make_dataset().shard(num_workers, tf.distribute.coordinator.experimental_get_current_worker_index())

    return tf_keras.utils.experimental.DatasetCreator(every_nth)


def check_files(files: Sequence[str], settings: TrainerSettings) -> None:
    """Checks that workers that share the data by file have at least one file each.

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
    """Returns when every worker of `multi_worker` has reached this call; other strategies do not wait."""
    if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        barrier = tf.function(lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.constant(1.0)))
        for arrived in strategy.experimental_local_results(strategy.run(barrier)):
            arrived.numpy()


def on_one_device(
    model: tf_keras.Model, strategy: tf.distribute.Strategy, build: Callable[[], tf_keras.Model]
) -> tf_keras.Model:
    """Returns the model on one device of this process, so that a single process can export it.

    All workers must call it, because values that differ between them, such as moving averages, are averaged.

    Args:
        model: Trained under `strategy`.
        strategy: The strategy that holds the model's variables.
        build: Creates the same model with other weights.
    """
    if strategy is tf.distribute.get_strategy():
        return model
    copy = build()
    copy.set_weights(whole_weights(model.get_weights(), [tuple(weight.shape) for weight in copy.weights]))
    return copy


def whole_weights(parts: Sequence[Array], shapes: Sequence[tuple[int, ...]]) -> list[Array]:
    """Weights of these shapes, from weights of which some are shards along the first axis, which follow one another.

    Args:
        parts: The weights of a model whose variables a partitioner divided, in Keras's order.
        shapes: Those of the same model without shards.
    """
    remaining = list(parts)
    weights = []
    for shape in shapes:
        weight = remaining.pop(0)
        while weight.shape != shape:
            weight = np.concatenate([weight, remaining.pop(0)])
        weights.append(weight)
    return weights


def describe_strategy(strategy: tf.distribute.Strategy, policy: str) -> str:
    """A short description for people: the dtype policy, and the number of devices or workers that train."""
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
    """Splits the devices as the settings say, which is only possible before this process uses TensorFlow."""
    gpus = tf.config.list_physical_devices("GPU")
    if gpus and settings.gpu_memory_limit_mb:
        for gpu in gpus:
            configuration = tf.config.LogicalDeviceConfiguration(memory_limit=settings.gpu_memory_limit_mb)
            tf.config.set_logical_device_configuration(gpu, [configuration])
    if kind == "mirrored" and not gpus:
        [cpu] = tf.config.list_physical_devices("CPU")
        configurations = [tf.config.LogicalDeviceConfiguration()] * (settings.replicas or 1)
        tf.config.set_logical_device_configuration(cpu, configurations)


def _mirrored(settings: TrainerSettings) -> tf.distribute.Strategy:
    gpus = tf.config.list_logical_devices("GPU")
    devices = gpus or tf.config.list_logical_devices("CPU")
    num_replicas = settings.replicas or len(devices)
    if num_replicas > len(devices):
        raise TrainingError(
            f"trainer.replicas is {num_replicas}, but this machine has {len(gpus)} GPUs.",
            f"Set trainer.replicas to at most {len(gpus)}.",
        )
    return tf.distribute.MirroredStrategy([device.name for device in devices[:num_replicas]])


def _multi_worker(settings: TrainerSettings) -> tf.distribute.Strategy:
    if settings.communication == "nccl" and not tf.config.list_physical_devices("GPU"):
        raise TrainingError(
            "trainer.communication is nccl, which reduces between GPUs, but this machine has none.",
            "Set trainer.communication to ring or auto.",
        )
    communication = tf.distribute.experimental.CommunicationImplementation[settings.communication.upper()]
    options = tf.distribute.experimental.CommunicationOptions(implementation=communication)
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)


def _parameter_server(settings: TrainerSettings) -> tf.distribute.Strategy:
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    return tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=_partitioner(settings, resolver))


def _partitioner(settings: TrainerSettings, resolver: Any) -> Any:
    """The partitioner that the settings ask for; None without one. At most each server has a shard."""
    num_shards = resolver.cluster_spec().num_tasks("ps")
    partitioners = tf.distribute.experimental.partitioners
    match settings.partitioner:
        case "MinSizePartitioner":
            return partitioners.MinSizePartitioner(settings.shard_bytes, num_shards)
        case "MaxSizePartitioner":
            return partitioners.MaxSizePartitioner(settings.shard_bytes, num_shards)
        case "FixedShardsPartitioner":
            return partitioners.FixedShardsPartitioner(num_shards)
    return None


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
