"""Which strategy a training runs under, what is refused, and how workers share the rows."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from pydantic import ValidationError
from tensorflow.python.data.experimental.ops import distribute
from tiny_artifacts import Tiny

from components.trainer import cluster, devices, features, inputs
from components.trainer.settings import InputSettings, TrainerSettings
from contracts.errors import TrainingError
from pipeline.plan.project import ENGINE
from pipeline.plan.source_code import SourceCode


def settings(**given: Any) -> TrainerSettings:
    return TrainerSettings.model_validate({"epochs": 1, "batch_size": 12, **given})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"workers": 2, "strategy": "mirrored"}, "workers is 2, but strategy mirrored runs in one process"),
        ({"replicas": 2, "strategy": "tpu"}, "replicas is for strategy mirrored; received strategy tpu"),
        ({"workers": 5}, "expected a multiple of 5; received 12"),
        ({"replicas": 5, "strategy": "mirrored"}, "expected a multiple of 5; received 12"),
        ({"strategy": "parameter_server", "debug": True}, "strategy parameter_server cannot do debug; keep one"),
        (
            {"strategy": "parameter_server", "precision": "mixed_float16"},
            "strategy parameter_server cannot do precision mixed_float16; keep one of them",
        ),
        (
            {"strategy": "parameter_server", "callbacks": {"tensorboard": {"profile_steps": [20, 30]}}},
            "strategy parameter_server cannot do callbacks.tensorboard.profile_steps; keep one of them",
        ),
        (
            {"workers": 2, "optimization": {"jit_compile": True}},
            "strategy multi_worker cannot do optimization.jit_compile; keep one of them",
        ),
        (
            {"strategy": "mirrored", "communication": "nccl"},
            "communication is for strategy multi_worker; received strategy mirrored",
        ),
    ],
)
def test_what_the_settings_alone_rule_out(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        settings(**given)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"partitioner": "MinSizePartitioner"}, "partitioner is for strategy parameter_server; received strategy auto"),
        (
            {
                "partitioner": "MinSizePartitioner",
                "strategy": "parameter_server",
                "callbacks": {"checkpoints": {}},
            },
            "callbacks.checkpoints cannot keep variables that partitioner divides",
        ),
        (
            {"input": {"cache": "disk"}, "strategy": "parameter_server"},
            "strategy parameter_server cannot do input.cache disk; keep one of them",
        ),
    ],
)
def test_what_parameter_servers_alone_divide_or_cannot_do(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        settings(**given)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("partitioner", "shards"),
    [("MinSizePartitioner", [2, 1]), ("MaxSizePartitioner", [2, 1]), ("FixedShardsPartitioner", [3, 1]), (None, None)],
)
def test_a_partitioner_divides_by_bytes_and_servers(partitioner: Any, shards: list[int] | None) -> None:
    cluster_spec = tf.train.ClusterSpec({"ps": ["a:1", "b:1", "c:1"]})
    asked = settings(strategy="parameter_server", partitioner=partitioner, shard_bytes=128)
    found = devices._partitioner(asked, SimpleNamespace(cluster_spec=lambda: cluster_spec))
    # 64 rows of 4 bytes are two shards of 128 bytes.
    assert (found and list(found(tf.TensorShape([64, 1]), tf.float32))) == shards


def test_shards_are_put_together_where_the_model_has_one_weight() -> None:
    table, kernel, bias = np.arange(10.0).reshape(5, 2), np.ones((2, 3)), np.zeros(3)
    parts = [table[:2], table[2:4], table[4:], kernel, bias[:1], bias[1:]]
    for found, expected in zip(
        devices.whole_weights(parts, [(5, 2), (2, 3), (3,)]), [table, kernel, bias], strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_workers_of_parameter_servers_have_whole_batches() -> None:
    assert settings(strategy="parameter_server", workers=5).workers == 5


CLUSTER = {"worker": ["a:1", "b:1"]}


@pytest.mark.parametrize(
    ("given", "config", "expected"),
    [
        ({}, None, "one_device"),
        ({"workers": 2}, None, "multi_worker"),
        ({"replicas": 2}, None, "mirrored"),
        ({"strategy": "one_device"}, None, "one_device"),
        ({}, {"cluster": CLUSTER}, "multi_worker"),
        ({}, {"cluster": {**CLUSTER, "ps": ["c:1"], "chief": ["d:1"]}}, "parameter_server"),
    ],
)
def test_auto_takes_what_there_is(
    given: dict[str, Any], config: Any, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    if config:
        monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    assert devices.resolve_strategy(settings(**given)) == expected


@pytest.mark.parametrize(
    ("given", "gpus", "expected"),
    [
        ({}, 0, False),
        ({"workers": 2}, 0, True),
        ({"strategy": "parameter_server"}, 0, True),
        ({"replicas": 2}, 0, True),
        ({"replicas": 2}, 2, False),
        ({"gpu_memory_limit_mb": 1024}, 0, False),
        ({"gpu_memory_limit_mb": 1024}, 1, True),
    ],
)
def test_when_processes_are_needed(
    given: dict[str, Any], gpus: int, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["gpu"] * gpus)
    assert cluster.is_needed(settings(**given)) is expected
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": CLUSTER, "task": {"type": "worker", "index": 0}}))
    assert not cluster.is_needed(settings(**given))


def test_one_device_is_the_default_strategy_and_the_chief() -> None:
    strategy = devices.create_strategy(settings(strategy="one_device"))
    assert strategy is tf.distribute.get_strategy()
    assert devices.is_chief(strategy)
    assert devices.describe_strategy(strategy, "float32") == "float32"


def test_nccl_without_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    with pytest.raises(TrainingError) as caught:
        devices.create_strategy(settings(strategy="multi_worker", communication="nccl"))
    assert str(caught.value) == (
        "trainer.communication is nccl, which reduces between GPUs, but this machine has none.\n"
        "Set trainer.communication to ring or auto."
    )


def test_fewer_files_than_workers_that_share_by_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": CLUSTER}))
    by_file = settings(input={"auto_shard": "file"})
    devices.check_files(["one", "two"], by_file)
    devices.check_files(["one"], settings())
    with pytest.raises(TrainingError) as caught:
        devices.check_files(["one"], by_file)
    assert str(caught.value) == (
        "trainer.input.auto_shard is file, but the training split has 1 files, "
        "expected one for each of the 2 workers.\n"
        "Set auto_shard to data."
    )


def test_each_worker_gets_gpus_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["a", "b", "c"])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert cluster._divide_gpus(2) == ["0,2", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,6,7")
    assert cluster._divide_gpus(3) == ["5", "6", "7"]
    with pytest.raises(TrainingError) as caught:
        cluster._divide_gpus(4)
    assert str(caught.value) == (
        "trainer.workers is 4, but this machine has 3 GPUs, expected at least one for each.\n"
        "Set trainer.workers to at most 3, or rehearse on the processor with CUDA_VISIBLE_DEVICES=-1."
    )


def test_cores_are_divided_where_each_worker_gets_one() -> None:
    assert cluster._divide([0, 1, 2, 4, 5], 2) == [[0, 2, 5], [1, 4]]
    assert cluster._divide([0, 1], 3) == [[], [], []]
    assert cluster._divide([0, 1], 1) == [[]]


def test_the_processes_code_counts_for_the_trainer_s_fingerprint() -> None:
    assert ENGINE / "components/trainer/worker_process.py" in SourceCode().closure(["components.trainer.run"])


@pytest.mark.parametrize("cache", ["memory", "none"])
def test_two_workers_share_every_batch_and_a_pass_has_every_row(cache: str, tiny: Tiny) -> None:
    found = [_worker_ids(tiny, cache, worker) for worker in (0, 1)]
    batches = [one + other for one, other in zip(*found, strict=True)]
    assert [len(batch) for batch in batches] == [30] * 4
    assert [len(part) for part in found[0]] == [15] * 4
    assert sorted(i for batch in batches for i in batch) == list(range(120))


def _worker_ids(tiny: Tiny, cache: str, worker: int) -> list[list[int]]:
    """The ids of a worker's part of four batches; rebatched and sharded as tf.distribute does it."""
    wanted = InputSettings(cache=cache)
    of_model = features.from_schema(tiny.output.transformed_metadata.schema, "big")
    split = inputs.open_split(tiny.files("train"), inputs.Layout.from_transform(tiny.output, of_model, "big"), wanted)
    batches = split.training_batches(30, 1, wanted)
    parts = batches.rebatch(distribute.batch_sizes_for_worker(30, 2, 1, worker))
    shared = distribute._AutoShardDataset(parts, 2, worker, 2)
    return [features["id"].tolist() for features, _ in shared.take(4).as_numpy_iterator()]
