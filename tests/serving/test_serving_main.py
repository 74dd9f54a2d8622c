"""The server's flags, and the process that they start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import arithmetic_model
import grpc
import pytest
import tensorflow as tf
from click.testing import CliRunner, Result
from server_helpers import HOST, free_port
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from pipeline.plan.project import ENGINE
from serving import main as command
from serving.settings import ServerSettings


def call(*words: str) -> Result:
    return CliRunner().invoke(command.main, list(words))


def test_every_setting_has_a_flag_of_its_name_and_a_text() -> None:
    flags = {flag.name: flag for flag in command.flags()}
    assert set(flags) == set(ServerSettings.model_fields)
    assert all(flag.help for flag in flags.values())
    assert flags["port"].help == "gRPC's port; 0 for none."


def test_an_unknown_flag_is_refused_with_the_nearest_one() -> None:
    result = call("--rest_api_prt=1")
    assert result.exit_code == 2
    assert "No such option '--rest_api_prt'" in result.stderr
    assert "'--rest_api_port'" in result.stderr


def test_a_value_out_of_range_is_refused() -> None:
    result = call("--port=99999")
    assert result.exit_code == 2
    assert result.stderr == "error: received --port=99999, expected less than or equal to 65535\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [([], True), (["--enable_model_warmup"], True), (["--enable_model_warmup=false"], False)],
)
def test_a_boolean_is_written_as_tensorflow_has_it(
    words: list[str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    started_with: list[ServerSettings] = []
    monkeypatch.setattr(command, "_run", started_with.append)
    monkeypatch.setattr(command, "_configure_logging", lambda: None)
    assert call(*words).exit_code == 0
    assert started_with[0].enable_model_warmup is expected


def started(port: int, name: str, base_path: Path, *flags: str) -> subprocess.Popen[str]:
    """Starts a server in a process of its own."""
    model = [f"--model_name={name}", f"--model_base_path={base_path}"]
    return subprocess.Popen(
        [sys.executable, "-m", "serving.main", f"--port={port}", *model, *flags],
        cwd=ENGINE,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_process_says_where_it_serves_and_ends_with_0_after_sigterm(tmp_path: Path) -> None:
    arithmetic_model.save(tmp_path / "arithmetic")
    port = free_port()
    process = started(port, "arithmetic", tmp_path / "arithmetic")
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == f"Serving    arithmetic, version 1, from {tmp_path / 'arithmetic'}\n"
        assert process.stdout.readline() == f"gRPC       {HOST}:{port}\n"
        with grpc.insecure_channel(f"{HOST}:{port}") as channel:
            grpc.channel_ready_future(channel).result(timeout=30)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert out.endswith("Stopped: every request in flight was answered.\n")
    assert process.returncode == 0
    assert "Traceback" not in err
    assert "Loaded arithmetic version 1" in err


def test_a_computation_without_end_does_not_keep_the_process(saved_models: Path, tmp_path: Path) -> None:
    (tmp_path / "1").symlink_to(saved_models / "slow")
    port = free_port()
    process = started(port, "slow", tmp_path, "--drain_timeout_seconds=0.5")
    assert process.stdout is not None
    try:
        assert process.stdout.readline().startswith("Serving    slow, version 1")
        request = predict_pb2.PredictRequest(model_spec={"name": "slow"})
        with grpc.insecure_channel(f"{HOST}:{port}") as channel:
            call = prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict
            for steps in (3, 10**15):
                request.inputs["n"].CopyFrom(tf.make_tensor_proto(steps, tf.int64))
                future = call.future(request)
                if steps == 3:
                    assert list(future.result(timeout=30).outputs["counted"].int64_val) == [3]
            with pytest.raises(grpc.FutureTimeoutError):
                future.result(timeout=0.5)
            process.send_signal(signal.SIGTERM)
            err = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    assert "error: some requests were not answered within 0.5 seconds of being stopped\n" in err
    assert process.returncode == 1
