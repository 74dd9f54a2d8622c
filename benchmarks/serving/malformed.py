"""Sends 100,000 malformed requests, REST and gRPC, to its own server: `python -m benchmarks.serving.malformed`.

Expected: no fault of the server (no crash, no missing response, no 5xx, no INTERNAL), the right value for a good
request afterwards, and memory that grows by no more than 5 % after the first tenth. Takes some minutes on two cores.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import psutil

from benchmarks.serving.malformed_client import HOST, PATIENCE_SECONDS, Tally, send
from benchmarks.serving.malformed_http import MODEL, PATH

LIMIT_OF_GROWTH = 0.05
PARTS = 10
START_SECONDS = 300.0
SHOWN_FAULTS = 10
MEBIBYTE = 2**20


@dataclasses.dataclass(frozen=True)
class Report:
    """The results.

    Attributes:
        requests: How many malformed requests were sent.
        seconds: How long that took.
        tally: The responses, and the faults among them.
        memory: The server's resident bytes after the warm-up and after each further part.
        still_answers: Whether the server answers a good request correctly afterwards.
    """

    requests: int
    seconds: float
    tally: Tally
    memory: tuple[int, ...]
    still_answers: bool

    @property
    def growth(self) -> float:
        """How much memory grew after the warm-up, as a fraction."""
        return max(self.memory) / self.memory[0] - 1

    @property
    def good(self) -> bool:
        """Whether the server passed."""
        return self.still_answers and not self.tally.faults and self.growth <= LIMIT_OF_GROWTH


def run(requests: int, seed: int, connections: int) -> Report:
    """Starts a server, sends it malformed requests, and stops it.

    Args:
        requests: The total number of requests.
        seed: Determines the requests.
        connections: How many connections to use at a time, to each port.
    """
    tally, started = Tally(), time.perf_counter()
    with _server() as (process, port, rest_port):
        memory = []
        for part in range(PARTS):
            asyncio.run(_send_part(port, rest_port, requests // PARTS, f"{seed}/{part}", connections, tally))
            memory.append(process.memory_info().rss if process.is_running() else 0)
        return Report(requests, time.perf_counter() - started, tally, tuple(memory), _answers(rest_port))


async def _send_part(port: int, rest_port: int, requests: int, seed: str, connections: int, tally: Tally) -> None:
    per_connection = requests // connections
    await asyncio.gather(
        *(send(port, rest_port, per_connection, f"{seed}/{index}", tally) for index in range(connections))
    )


@contextmanager
def _server() -> Iterator[tuple[psutil.Process, int, int]]:
    """Runs a server of the small model in a process of its own; yields the process and the ports of gRPC and REST."""
    # Not imported for --help: TensorFlow takes seconds to import.
    from benchmarks.serving import models

    with tempfile.TemporaryDirectory() as folder:
        models.save_several(Path(folder, "1"))
        port, rest_port = _free_ports()
        # A machine that pauses for a while is not the server's fault.
        patience = f"--rest_api_timeout_in_ms={PATIENCE_SECONDS * 1000:.0f}"
        flags = [f"--port={port}", f"--rest_api_port={rest_port}", f"--model_name={MODEL}", patience]
        command = [sys.executable, "-m", "serving.main", *flags, f"--model_base_path={folder}"]
        with Path(folder, "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
            try:
                _await_ready(process, rest_port, Path(folder, "log"))
                yield psutil.Process(process.pid), port, rest_port
            finally:
                process.terminate()


def _free_ports() -> tuple[int, int]:
    with socket.socket() as first, socket.socket() as second:
        for probe in (first, second):
            probe.bind((HOST, 0))
        return int(first.getsockname()[1]), int(second.getsockname()[1])


def _await_ready(process: subprocess.Popen[bytes], rest_port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://{HOST}:{rest_port}/readyz"):
                return
        except OSError:
            time.sleep(0.2)
    raise click.ClickException(f"the server did not start:\n{log.read_text(errors='replace')}")


def _answers(rest_port: int) -> bool:
    body = json.dumps({"instances": [1.0, 2.0]}).encode()
    try:
        with urllib.request.urlopen(f"http://{HOST}:{rest_port}{PATH}:predict", body) as response:
            return bool(json.load(response) == {"predictions": [2.5, 3.0]})
    except OSError:
        return False


def report_lines(report: Report) -> Iterator[str]:
    """The report as text."""
    rate = report.requests / report.seconds
    yield f"{report.requests:,} malformed requests in {report.seconds:.0f} s ({rate:.0f} a second)"
    for status, count in report.tally.statuses.most_common():
        yield f"  {status:<28} {count:>8,}"
    memory = ", ".join(f"{size / MEBIBYTE:.0f}" for size in report.memory)
    yield f"Memory in MiB, a tenth of the requests apart: {memory}; growth after the first {report.growth:+.1%}"
    yield f"A good request afterwards: {'answered' if report.still_answers else 'not answered'}"
    yield f"The server's faults: {len(report.tally.faults)}"
    yield from report.tally.faults[:SHOWN_FAULTS]


@click.command(help=__doc__)
@click.option("--requests", default=100_000, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--connections", default=8, show_default=True)
def main(requests: int, seed: int, connections: int) -> None:
    """Runs it, prints the report, and fails if the server did not pass."""
    report = run(requests, seed, connections)
    for line in report_lines(report):
        click.echo(line)
    sys.exit(0 if report.good else 1)


if __name__ == "__main__":
    main()
