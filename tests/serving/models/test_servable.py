"""A loaded version returns the model's values, and refuses with TensorFlow Serving's messages."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import psutil
import pytest
import tensorflow as tf
import tiny_models

from serving.errors import Code, ServingError
from serving.models.servable import Servable, load

Load = Callable[..., Servable]


def refusal(servable: Servable, signature: str, inputs: dict[str, Any], **options: Any) -> tuple[Code, str]:
    with pytest.raises(ServingError) as caught:
        servable.run(signature, inputs, **options)
    return caught.value.code, caught.value.message


def test_runs_a_signature(loaded: Load) -> None:
    outputs = loaded("half_plus_2").run("serving_default", {"x": np.array([2, 5], np.float32)})
    assert sorted(outputs) == ["twice", "y"]
    np.testing.assert_array_equal(outputs["y"], np.array([3.0, 4.5], np.float32))
    assert outputs["y"].dtype == np.float32


def test_agrees_with_tensorflows_own_loader(loaded: Load, saved_models: Path) -> None:
    x = np.linspace(-3, 3, 50, dtype=np.float32)
    expected = tf.saved_model.load(str(saved_models / "half_plus_1")).signatures["serving_default"](x=x)
    np.testing.assert_array_equal(loaded("half_plus_1").run("serving_default", {"x": x})["y"], expected["y"].numpy())


def test_computes_only_the_outputs_asked_for_in_their_order(loaded: Load) -> None:
    servable, inputs = loaded("half_plus_1"), {"x": np.array([4], np.float32)}
    assert servable.run("serving_default", inputs, ["twice"]) == {"twice": np.array([8], np.float32)}
    assert list(servable.run("serving_default", inputs, ["y", "twice"])) == ["y", "twice"]


def test_several_signatures_are_computed_in_one_run(loaded: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    servable, runs, run = loaded("tf1"), [], Servable._run
    monkeypatch.setattr(Servable, "_run", lambda *args: runs.append(args) or run(*args))
    examples = np.array([tiny_models.example(word=word) for word in ("plum", "pear")], object)
    outputs = servable.run_together(
        {"regress": ["outputs"], "serving_default": ["scores", "classes"]}, {"inputs": examples}
    )
    assert len(runs) == 1
    assert list(outputs) == ["regress", "serving_default"]
    assert outputs["regress"]["outputs"].tolist() == [20.0, 10.0]
    assert outputs["serving_default"]["scores"].tolist() == [[20.0], [10.0]]
    assert outputs["serving_default"]["classes"].tolist() == [b"plum", b"pear"]


def test_takes_shapes_that_the_signature_does_not_name(loaded: Load) -> None:
    square = np.array([[1, 2], [3, 4]], np.float32)
    np.testing.assert_array_equal(loaded("half_plus_1").run("serving_default", {"x": square})["y"], square / 2 + 1)


def test_parses_serialized_examples(loaded: Load) -> None:
    examples = np.array([tiny_models.example(x=4.0), tiny_models.example(x=6.0)], dtype=object)
    assert loaded("half_plus_1").run("examples", {"examples": examples})["y"].tolist() == [3.0, 4.0]


def test_every_type_comes_back_as_it_was_sent(loaded: Load) -> None:
    sent = {
        "string": np.array([b"\x00\xff", b""], dtype=object),
        "bool": np.array([True, False]),
        "uint8": np.array([[0, 255]], np.uint8),
        "int64": np.array(-(2**62)),
        "half": np.array([0.1], np.float16),
        "bfloat16": np.array([0.1], ml_dtypes.bfloat16),
        "float64": np.array([[[1e-300]]]),
    }
    servable = loaded("echo")
    names = {
        f"{tf.as_dtype(info.dtype).name}_out": name
        for name, info in servable.signatures["serving_default"].inputs.items()
    }
    inputs = {names[f"{'float16' if name == 'half' else name}_out"]: value for name, value in sent.items()}
    outputs = servable.run("serving_default", inputs)
    for name, value in sent.items():
        received = outputs[f"{'float16' if name == 'half' else name}_out"]
        assert received.dtype == value.dtype
        np.testing.assert_array_equal(received, value)


@pytest.mark.parametrize(
    "words", [np.array(["a", "ü"]), np.array(["a", "ü"], dtype=object), np.array([b"a", "ü".encode()])]
)
def test_strings_come_in_any_of_numpys_ways(loaded: Load, words: np.ndarray[Any, Any]) -> None:
    servable = loaded("tf1")
    with pytest.raises(ServingError, match="Could not parse example input, value: 'a'"):
        servable.run("predict", {"inputs": words})


def test_runs_what_tensorflow_1_exported(loaded: Load) -> None:
    servable = loaded("tf1")
    examples = np.array([tiny_models.example(word=word) for word in ("plum", "apple", "kiwi")], dtype=object)
    classes = servable.run("serving_default", {"inputs": examples})
    assert classes["classes"].tolist() == [b"plum", b"apple", b"kiwi"]
    assert classes["scores"].tolist() == [[20.0], [0.0], [-10.0]]
    assert servable.run("regress", {"inputs": examples})["outputs"].tolist() == [20.0, 0.0, -10.0]
    assert servable.run("predict", {"inputs": examples})["index"].tolist() == [2, 0, -1]
    assert servable.signature("regress").method_name == "tensorflow/serving/regress"


def test_signatures_say_names_types_and_shapes(loaded: Load) -> None:
    servable = loaded("half_plus_1")
    assert list(servable.signatures) == ["examples", "serving_default"]
    signature = servable.signature("serving_default")
    assert signature.method_name == "tensorflow/serving/predict"
    assert (signature.inputs["x"].dtype, signature.inputs["x"].shape) == (tf.float32, (None,))
    assert sorted(signature.outputs) == ["twice", "y"]
    assert loaded("echo").signature("serving_default").outputs["bool_out"].shape is None


def test_refuses_names_and_types_that_do_not_fit(loaded: Load) -> None:
    servable, x = loaded("half_plus_1"), np.zeros(1, np.float32)
    assert refusal(servable, "other", {"x": x}) == (
        Code.FAILED_PRECONDITION,
        'Serving signature key "other" not found.',
    )
    assert refusal(servable, "serving_default", {"x": x, "z": x}) == (
        Code.INVALID_ARGUMENT,
        "input size does not match signature: 2!=1 len({x,z}) != len({x}). Sent extra: {z}. Missing but required: {}.",
    )
    assert refusal(servable, "serving_default", {"z": x}) == (
        Code.INVALID_ARGUMENT,
        "input tensor alias not found in signature: z. Inputs expected to be in the set {x}.",
    )
    assert refusal(servable, "serving_default", {"x": x}, outputs=["w"]) == (
        Code.INVALID_ARGUMENT,
        "output tensor alias not found in signature: w Outputs expected to be in the set {twice,y}.",
    )
    assert refusal(servable, "serving_default", {"x": x}, outputs=["y", "y"]) == (
        Code.INVALID_ARGUMENT,
        "duplicate output tensor alias: y",
    )
    assert refusal(servable, "serving_default", {"x": np.array(["a"])}) == (
        Code.INVALID_ARGUMENT,
        "input tensor x of signature serving_default has type string, expected float32",
    )
    assert refusal(servable, "examples", {"examples": x}) == (
        Code.INVALID_ARGUMENT,
        "input tensor examples of signature examples has type float32, expected string",
    )


def test_the_graphs_refusal_comes_without_nodes_and_traces(loaded: Load) -> None:
    code, message = refusal(loaded("half_plus_1"), "examples", {"examples": np.array([tiny_models.example()], object)})
    assert code is Code.INVALID_ARGUMENT
    assert message == "Name: <unknown>, Feature: x (data type: float) is required but could not be found."


def test_objects_that_are_no_strings_are_refused(loaded: Load) -> None:
    assert refusal(loaded("half_plus_1"), "examples", {"examples": np.array([1.5], object)}) == (
        Code.INVALID_ARGUMENT,
        "Unsupported object type float",
    )


def test_a_computation_is_given_up_when_time_is_up(loaded: Load) -> None:
    servable = loaded("slow")
    assert servable.run("serving_default", {"n": np.array(10)}, timeout=30)["counted"] == 10
    code, _ = refusal(servable, "serving_default", {"n": np.array(10**12)}, timeout=0.05)
    assert code is Code.DEADLINE_EXCEEDED


def test_threads_of_its_own_give_the_same_answers(loaded: Load) -> None:
    servable = loaded("half_plus_1", inter_op_parallelism=1, intra_op_parallelism=1)
    assert servable.run("serving_default", {"x": np.array([2], np.float32)})["y"].tolist() == [2.0]


def test_many_threads_get_their_own_answers(loaded: Load) -> None:
    servable, mismatches = loaded("half_plus_1"), []

    def ask(number: int) -> None:
        for _ in range(100):
            output = servable.run("serving_default", {"x": np.full(3, number, np.float32)})["y"]
            mismatches.extend(value for value in output.tolist() if value != number / 2 + 1)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert mismatches == []


def test_refuses_what_cannot_be_loaded(saved_models: Path, tmp_path: Path) -> None:
    with pytest.raises(ServingError, match=r"Could not find SavedModel \.pb or \.pbtxt at supplied") as caught:
        load("none", 1, tmp_path)
    assert caught.value.code is Code.NOT_FOUND
    with pytest.raises(ServingError, match=r"Could not load the SavedModel at .*could not be found in SavedModel"):
        load("tags", 1, saved_models / "half_plus_1", tags=["gpu"])
    broken = shutil.copytree(saved_models / "half_plus_1", tmp_path / "broken")
    for file in (broken / "variables").iterdir():
        file.unlink()
    with pytest.raises(ServingError, match="is not a valid checkpoint"):
        load("broken", 1, broken)
    (broken / "saved_model.pb").write_bytes(b"not a proto")
    with pytest.raises(ServingError, match=r"Could not load the SavedModel at .*Cannot parse file"):
        load("broken", 1, broken)


def test_closing_gives_memory_and_threads_back(saved_models: Path) -> None:
    process = psutil.Process()

    def once() -> None:
        servable = load("half_plus", 1, saved_models / "half_plus_1")
        servable.run("serving_default", {"x": np.zeros(1, np.float32)})
        servable.close()

    for _ in range(3):
        once()
    threads, memory = process.num_threads(), process.memory_info().rss
    for _ in range(20):
        once()
    assert process.num_threads() == threads
    assert process.memory_info().rss - memory < 20 * 2**20
