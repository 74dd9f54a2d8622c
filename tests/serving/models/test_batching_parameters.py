"""A parameter file is read, or refused with the line or the field that is wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from serving import main
from serving.errors import Code, ServingError
from serving.models import configuration
from serving.models.configuration import (
    BatchingParameters,
    answering_threads,
    batching_of_model,
    configured_batching,
    read_batching,
)
from serving.models.loader import session_load
from serving.settings import ServerSettings


def write_parameters(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "batching.config"
    path.write_text(text)
    return path


def refusal(tmp_path: Path, text: str) -> str:
    path = write_parameters(tmp_path, text)
    with pytest.raises(ServingError) as caught:
        read_batching(path)
    assert caught.value.code is Code.INVALID_ARGUMENT
    return caught.value.message.removeprefix(f"{path}: received ")


def test_every_field_is_read(tmp_path: Path) -> None:
    text = """
        max_batch_size { value: 64 }
        batch_timeout_micros { value: 1000 }
        max_enqueued_batches { value: 100 }
        num_batch_threads { value: 3 }
        enable_large_batch_splitting { value: true }
        max_execution_batch_size { value: 16 }
        allowed_batch_sizes: 8
        allowed_batch_sizes: 16
        pad_variable_length_inputs: false
    """
    assert read_batching(write_parameters(tmp_path, text)) == BatchingParameters(64, 1000, 100, 3, True, 16, (8, 16))


def test_the_defaults_are_tensorflow_servings(tmp_path: Path) -> None:
    cores = os.cpu_count() or 1
    assert (
        read_batching(write_parameters(tmp_path, ""))
        == BatchingParameters()
        == BatchingParameters(1000, 0, 10, cores, False, 1000, ())
    )


def test_the_largest_execution_is_the_largest_batch_unless_it_is_given(tmp_path: Path) -> None:
    assert read_batching(write_parameters(tmp_path, "max_batch_size { value: 7 }")).max_execution_batch_size == 7


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max_batch_size { value: 0 }", "max_batch_size 0, expected a number from 1 to 2147483647"),
        ("max_enqueued_batches { value: 0 }", "max_enqueued_batches 0, expected a number from 1 to 2147483647"),
        ("num_batch_threads { value: -1 }", "num_batch_threads -1, expected a number from 1 to 2147483647"),
        ("batch_timeout_micros { value: -1 }", "batch_timeout_micros -1, expected a number from 0 to 2147483647"),
        (
            "batch_timeout_micros { value: 2147483648 }",
            "batch_timeout_micros 2147483648, expected a number from 0 to 2147483647",
        ),
        (
            'thread_pool_name { value: "batch" }',
            "thread_pool_name batch, expected none: TensorFlow's batching operation names its threads itself",
        ),
        (
            "pad_variable_length_inputs: true",
            "pad_variable_length_inputs True, expected false: TensorFlow's batching operation does not pad; requests "
            "of different lengths are batched apart",
        ),
        (
            "max_execution_batch_size { value: 4 }",
            "max_execution_batch_size 4, expected none without enable_large_batch_splitting",
        ),
        (
            "max_batch_size { value: 8 } enable_large_batch_splitting { value: true } "
            "max_execution_batch_size { value: 9 }",
            "max_execution_batch_size 9, expected at most max_batch_size, 8",
        ),
        (
            "max_batch_size { value: 8 } allowed_batch_sizes: [4, 4, 8]",
            "allowed_batch_sizes [4, 4, 8], expected positive numbers, each larger than the one before",
        ),
        (
            "max_batch_size { value: 8 } allowed_batch_sizes: [0, 8]",
            "allowed_batch_sizes [0, 8], expected positive numbers, each larger than the one before",
        ),
        (
            "max_batch_size { value: 8 } allowed_batch_sizes: [2, 4]",
            "allowed_batch_sizes [2, 4], expected the last to be max_batch_size, 8",
        ),
        (
            "max_batch_size { value: 8 } enable_large_batch_splitting { value: true } "
            "max_execution_batch_size { value: 4 } allowed_batch_sizes: [2, 8]",
            "allowed_batch_sizes [2, 8], expected the last to be max_execution_batch_size, 4",
        ),
    ],
)
def test_values_that_do_not_fit_are_refused(tmp_path: Path, text: str, expected: str) -> None:
    assert refusal(tmp_path, text) == expected


def test_what_is_no_field_is_refused_with_its_line(tmp_path: Path) -> None:
    expected = f"batching_parameters_file {tmp_path}/batching.config, expected a BatchingParameters in text form: "
    assert refusal(tmp_path, "num_batch_threads { value: 2 }\nmax_batch_sice { value: 8 }").startswith(
        f'received {expected}2:1 : Message type "tensorflow.serving.BatchingParameters" has no field named '
        '"max_batch_sice"'
    )
    assert refusal(tmp_path, "max_batch_size: 8") == (
        f"received {expected}1:17 : 'max_batch_size: 8': Expected \"{{\"."
    )
    with pytest.raises(ServingError, match="No such file or directory"):
        read_batching(tmp_path / "missing")


@pytest.mark.parametrize(
    ("flag", "value"), [("batching_parameters_file", "b.config"), ("enable_per_model_batching_parameters", True)]
)
def test_parameters_without_batching_fail_the_start(flag: str, value: Any) -> None:
    message = f"received {flag} without enable_batching, expected --enable_batching too"
    with pytest.raises(ServingError, match=message) as caught:
        session_load(ServerSettings(**{flag: value}))
    assert caught.value.code is Code.INVALID_ARGUMENT
    result = CliRunner().invoke(main.main, ["--model_base_path=/nowhere", f"--{flag}={value}"])
    assert result.exit_code == 1
    assert result.stderr == f"Loading …\nerror: {message}\n"


def test_batching_is_off_unless_it_is_asked_for(tmp_path: Path) -> None:
    assert configured_batching(ServerSettings()) is None
    assert configured_batching(ServerSettings(enable_batching=True)) == BatchingParameters()
    path = write_parameters(tmp_path, "max_batch_size { value: 8 }")
    both = ServerSettings(enable_batching=True, batching_parameters_file=path)
    assert configured_batching(both) == BatchingParameters(max_batch_size=8, max_execution_batch_size=8)


def test_a_models_own_file_says_all_but_the_threads(tmp_path: Path) -> None:
    common = BatchingParameters(max_batch_size=8, batch_timeout_micros=5, num_batch_threads=7)
    assert batching_of_model(tmp_path, common) is None
    path = tmp_path / configuration.PER_MODEL_FILE
    path.write_text("max_batch_sice: 1")
    with pytest.raises(
        ServingError, match=f"received {path.name} {path}, expected a BatchingParameters in text form: 1:1 "
    ):
        batching_of_model(tmp_path, common)
    path.write_text("max_batch_size { value: 16 } num_batch_threads { value: 2 }")
    assert batching_of_model(tmp_path, common) == BatchingParameters(
        max_batch_size=16, max_execution_batch_size=16, num_batch_threads=7
    )


def test_requests_that_wait_have_threads_to_wait_in(tmp_path: Path) -> None:
    usual = 4 * (os.cpu_count() or 1)
    assert answering_threads(ServerSettings()) == usual
    path = write_parameters(tmp_path, "max_batch_size { value: 128 }")
    assert answering_threads(ServerSettings(enable_batching=True, batching_parameters_file=path)) == 256
    assert answering_threads(ServerSettings(enable_batching=True)) == 1024
    path = write_parameters(tmp_path, "max_batch_size { value: 1 }")
    assert answering_threads(ServerSettings(enable_batching=True, batching_parameters_file=path)) == usual
