"""Servers in processes of their own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.children import ENVIRONMENT, ChildError
from pipeline.recipe import PROJECT_ROOT

HOST = "127.0.0.1"
START_SECONDS = 120
STOP_SECONDS = 60


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@contextmanager
def model_server(base_path: Path, log: Path, flags: Sequence[str] = ()) -> Iterator[tuple[int, int]]:
    """Runs our server for the model `model`; gives the ports of REST and gRPC."""
    rest, grpc = free_port(), free_port()
    command = ["serving.main", f"--rest_api_port={rest}", f"--port={grpc}", "--model_name=model"]
    with _running([*command, f"--model_base_path={base_path}", *flags], rest, log):
        yield rest, grpc


@contextmanager
def fastapi_server(model: Path, call: str, log: Path) -> Iterator[int]:
    """Runs `fastapi_app`; gives its port."""
    port = free_port()
    command = ["uvicorn", "benchmarks.serving.fastapi_app:app", f"--port={port}", "--no-access-log"]
    with _running(command, port, log, {"MODEL": str(model), "CALL": call}):
        yield port


@contextmanager
def _running(arguments: Sequence[str], port: int, log: Path, variables: dict[str, str] | None = None) -> Iterator[None]:
    command = [sys.executable, "-W", "ignore", "-m", *arguments]
    environment = os.environ | ENVIRONMENT | (variables or {})
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=PROJECT_ROOT, env=environment, stdout=output, stderr=output)
    try:
        _await_up(process, port, log)
        yield
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)


def _await_up(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://{HOST}:{port}/livez", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    text = log.read_text(encoding="utf-8", errors="replace")
    raise ChildError(f"A server did not start within {START_SECONDS} s.\n{text}\nLog: {log}")
