"""Mixed precision: which dtype policy a device is fast at, and what must stay float32 all the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf
import tf_keras

from components.errors import TrainingError
from components.trainer.settings import Precision

TENSOR_CORES = (7, 0)
"""The compute capability (Volta) from which NVIDIA GPUs multiply float16 matrices several times faster than float32."""

BFLOAT16_FLAGS = frozenset({"avx512_bf16", "amx_bf16"})
"""Flags of x86 processors that multiply bfloat16 matrices in hardware."""

CPU_INFO = Path("/proc/cpuinfo")


@contextmanager
def policy(precision: Precision, loss_scaling: bool = True) -> Iterator[str]:
    """Makes `precision` Keras's global dtype policy for a while.

    Args:
        precision: What is asked for.
        loss_scaling: See `resolve`.

    Yields:
        The policy's name, with `auto` resolved.
    """
    earlier = tf_keras.mixed_precision.global_policy()
    chosen = resolve(precision, loss_scaling)
    tf_keras.mixed_precision.set_global_policy(chosen)
    try:
        yield chosen
    finally:
        tf_keras.mixed_precision.set_global_policy(earlier)


def resolve(precision: Precision, loss_scaling: bool = True) -> str:
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


def _compute_capability(gpu: tf.config.PhysicalDevice) -> tuple[int, int]:
    return tf.config.experimental.get_device_details(gpu).get("compute_capability", (0, 0))  # type: ignore[no-any-return]
