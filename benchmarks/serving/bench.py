"""What every benchmark of the server uses: a folder, models, rounds, clients, servers."""

from __future__ import annotations

import functools
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from benchmarks.children import ENVIRONMENT, ChildError
from benchmarks.command import Bench
from pipeline.plan.project import ENGINE

HOST = "127.0.0.1"
START_SECONDS = 120
STOP_SECONDS = 60


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@contextmanager
def model_server(base_path: Path, log: Path, flags: Sequence[str] = ()) -> Iterator[tuple[int, int]]:
    """Runs our server for the model `model`; yields the ports of REST and gRPC."""
    rest, grpc = free_port(), free_port()
    command = ["serving.main", f"--rest_api_port={rest}", f"--port={grpc}", "--model_name=model"]
    with _running([*command, f"--model_base_path={base_path}", *flags], rest, log):
        yield rest, grpc


@contextmanager
def fastapi_server(model: Path, call: str, log: Path) -> Iterator[int]:
    """Runs `fastapi_app`; yields its port."""
    port = free_port()
    command = ["uvicorn", "benchmarks.serving.fastapi_app:app", f"--port={port}", "--no-access-log"]
    with _running(command, port, log, {"MODEL": str(model), "CALL": call}):
        yield port


@contextmanager
def _running(arguments: Sequence[str], port: int, log: Path, variables: dict[str, str] | None = None) -> Iterator[None]:
    command = [sys.executable, "-W", "ignore", "-m", *arguments]
    environment = os.environ | ENVIRONMENT | (variables or {})
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=ENGINE, env=environment, stdout=output, stderr=output)
    try:
        _await_up(process, port, log)
        yield
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)


def _await_up(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    def ask() -> None:
        if process.poll() is not None:
            raise ChildError("it ended")
        urllib.request.urlopen(f"http://{HOST}:{port}/livez", timeout=5).close()

    every = Retrying(
        stop=stop_after_delay(START_SECONDS), wait=wait_fixed(0.2), retry=retry_if_exception_type(OSError), reraise=True
    )
    try:
        every(ask)
    except (OSError, ChildError) as error:
        text = log.read_text(encoding="utf-8", errors="replace")
        raise ChildError(f"A server did not start within {START_SECONDS} s.\n{text}\nLog: {log}") from error


ROW = [round(0.1 * number - 0.7123, 4) for number in range(16)]
BODY = json.dumps({"instances": [ROW]})
PREDICT = "/v1/models/model:predict"
CLIENTS = 4
SECONDS = 3.0


@dataclass(frozen=True)
class Served:
    """A model to serve.

    Attributes:
        base_path: The folder that holds version 1.
        input_name: The name of its input.
        keras: The path of the same model as a Keras model.
    """

    base_path: Path
    input_name: str
    keras: Path


class ServingBench(Bench):
    """One run of the benchmarks; models are written on first use."""

    @functools.cached_property
    def small(self) -> Served:
        """16-64-64-1: takes a tenth of a millisecond."""
        return self._model("small", [64, 64])

    @functools.cached_property
    def wide(self) -> Served:
        """16-1536-1536-1: 2.4 million parameters."""
        return self._model("wide", [1536, 1536])

    @functools.cached_property
    def heavy(self) -> Served:
        """Four layers of 2,048, with 12.6 million parameters: takes more than a millisecond."""
        return self._model("heavy", [2048] * 4)

    def ask(self, function: str, **arguments: Any) -> Any:
        """Calls `module:function` of this package in a process of its own."""
        return self.call(f"benchmarks.serving.{function}", arguments)

    def rest(self, port: int, clients: int = CLIENTS, path: str = PREDICT, **overrides: Any) -> dict[str, Any]:
        """Requests predictions of one row over REST; see `load.rest`."""
        arguments = {"seconds": SECONDS} | overrides
        return dict(self.ask("load:rest", port=port, path=path, body=BODY, clients=clients, **arguments))

    def signatures(self, model: Served) -> float:
        """See `models.signature_rate`."""
        path = str(model.base_path / "1")
        return float(self.ask("models:signature_rate", path=path, name=model.input_name, row=ROW, seconds=SECONDS))

    def repeat(self, note: str, measure: Callable[[], dict[str, float]]) -> dict[str, float]:
        """Measures once a round; returns the median of each number."""
        rounds = []
        for number in range(self.rounds):
            self.say(f"{note}, round {number + 1}")
            rounds.append(measure())
        return {key: median(entry[key] for entry in rounds) for key in rounds[0]}

    def log(self, name: str) -> Path:
        """The path of a server's log."""
        return self.folder / f"{name}-{time.monotonic_ns()}.log"

    def _model(self, name: str, widths: list[int]) -> Served:
        self.say(f"Writing the {name} model")
        base_path, keras = self.folder / name, self.folder / f"{name}.keras"
        base_path.mkdir()
        input_name = self.ask("models:write", path=str(base_path / "1"), widths=widths, keras_path=str(keras))
        return Served(base_path, input_name, keras)
