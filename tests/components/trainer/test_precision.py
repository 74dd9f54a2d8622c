"""Which precision a device gets, and what stays float32."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from components.trainer import building
from components.trainer import devices as precision
from components.trainer.settings import TrainerSettings
from contracts.errors import TrainingError


def devices(monkeypatch: pytest.MonkeyPatch, capabilities: list[tuple[int, int]], tpus: int = 0) -> None:
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: ["TPU"] * tpus if kind == "TPU" else [])
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: capabilities if kind == "GPU" else [])
    details = tf.config.experimental
    monkeypatch.setattr(details, "get_device_details", lambda gpu: {"compute_capability": gpu})


def cpu(monkeypatch: pytest.MonkeyPatch, folder: Path, flags: str) -> None:
    info = folder / "cpuinfo"
    info.write_text(f"processor\t: 0\nvendor_id\t: AuthenticAMD\nflags\t\t: {flags}\nbugs\t: none\n")
    monkeypatch.setattr(precision, "CPU_INFO", info)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("fpu avx2 avx512f", "float32"),
        ("fpu avx512_bf16 avx512f", "mixed_bfloat16"),
        ("fpu amx_bf16 amx_tile", "mixed_bfloat16"),
        ("fpu not_avx512_bf16", "float32"),
    ],
)
def test_a_processor_that_multiplies_bfloat16_gets_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, flags: str, expected: str
) -> None:
    devices(monkeypatch, [])
    cpu(monkeypatch, tmp_path, flags)
    assert precision.resolve_precision("auto") == expected


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ([(7, 0)], "mixed_float16"),
        ([(9, 0), (8, 6)], "mixed_float16"),
        ([(6, 1)], "float32"),
        ([(9, 0), (6, 1)], "float32"),
    ],
)
def test_gpus_get_float16_where_all_have_tensor_cores(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capabilities: list[tuple[int, int]], expected: str
) -> None:
    devices(monkeypatch, capabilities)
    cpu(monkeypatch, tmp_path, "avx512_bf16")
    assert precision.resolve_precision("auto") == expected


def test_a_gpu_gets_no_float16_where_losses_cannot_be_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    devices(monkeypatch, [(9, 0)])
    assert precision.resolve_precision("auto", loss_scaling=False) == "float32"


def test_a_tpu_gets_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    devices(monkeypatch, [(6, 1)], tpus=8)
    assert precision.resolve_precision("auto") == "mixed_bfloat16"


def test_what_is_asked_for_is_taken_whatever_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    devices(monkeypatch, [(9, 0)])
    assert precision.resolve_precision("float32") == "float32"
    assert precision.resolve_precision("mixed_bfloat16") == "mixed_bfloat16"


def test_a_system_without_cpuinfo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(precision, "CPU_INFO", tmp_path / "none")
    assert precision.cpu_flags() == frozenset()


def test_the_policy_is_global_for_a_while_only() -> None:
    with precision.precision_policy("mixed_bfloat16") as chosen:
        assert chosen == tf_keras.mixed_precision.global_policy().name == "mixed_bfloat16"
    assert tf_keras.mixed_precision.global_policy().name == "float32"
    with contextlib.suppress(KeyError), precision.precision_policy("mixed_float16"):
        raise KeyError
    assert tf_keras.mixed_precision.global_policy().name == "float32"


def model(**last: Any) -> tf_keras.Model:
    inputs = tf_keras.Input([4], name="numbers")
    hidden = tf_keras.layers.Dense(3)(inputs)
    return tf_keras.Model(inputs, tf_keras.layers.Dense(1, name="score", **last)(hidden))


def test_an_output_in_half_precision_is_refused() -> None:
    with precision.precision_policy("mixed_bfloat16"):
        half, full = model(), model(dtype="float32")
    precision.check_outputs(full)
    with pytest.raises(TrainingError) as caught:
        precision.check_outputs(half)
    assert str(caught.value) == (
        "The model's output 'score' is bfloat16 under mixed precision, expected float32.\n"
        'Give its last layer dtype="float32" in model.py, as in Activation("softmax", dtype="float32"), '
        "or set trainer.precision: float32."
    )


def plain(width: int) -> Any:
    """Builds a model by plain TensorFlow code, which puts a float32 feature beside a layer's output."""

    def build() -> tf_keras.Model:
        inputs = tf_keras.Input([4], name="numbers")
        both = tf.concat([tf_keras.layers.Dense(width)(inputs), inputs], axis=1)
        return tf_keras.Model(inputs, tf_keras.layers.Dense(1, name="score", dtype="float32")(both))

    return build


def layered(width: int) -> Any:
    """Builds a model of layers alone."""

    def build() -> tf_keras.Model:
        inputs = tf_keras.Input([4], name="numbers")
        hidden = tf_keras.layers.Dense(width)(inputs)
        return tf_keras.Model(inputs, tf_keras.layers.Dense(1, name="score", dtype="float32")(hidden))

    return build


@pytest.mark.parametrize(
    ("build", "why"),
    [
        (plain(8), "Precision: float32 instead of mixed_bfloat16: the model cannot be built in it: "),
        (layered(8), "Precision: float32 instead of mixed_bfloat16: a model of 49 weights gains nothing from it"),
        (layered(10_000), ""),
    ],
)
def test_auto_takes_less_precision_only_where_it_suits_the_model(build: Any, why: str) -> None:
    settings = TrainerSettings(epochs=1)
    tf_keras.utils.set_random_seed(settings.seed)
    tf_keras.backend.reset_uids()
    expected = build()
    with precision.precision_policy("mixed_bfloat16"):
        tf_keras.utils.set_random_seed(settings.seed)
        tf_keras.backend.reset_uids()
        model, reason = building.build_to_suit(build, settings)
        assert tf_keras.mixed_precision.global_policy().name == ("float32" if why else "mixed_bfloat16")
    assert tf_keras.mixed_precision.global_policy().name == "float32"
    assert reason.startswith(why)
    assert bool(reason) == bool(why)
    assert [layer.name for layer in model.layers] == [layer.name for layer in expected.layers]
    for one, other in zip(model.get_weights(), expected.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_precision_that_is_asked_for_is_taken_or_fails() -> None:
    settings = TrainerSettings(epochs=1, precision="mixed_bfloat16")
    with precision.precision_policy("mixed_bfloat16"):
        assert building.build_to_suit(layered(8), settings)[0].layers[1].compute_dtype == "bfloat16"
        with pytest.raises((TypeError, ValueError, tf.errors.InvalidArgumentError)):
            building.build_to_suit(plain(8), settings)
