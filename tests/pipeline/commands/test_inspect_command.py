"""`millrace inspect` as a process: its address, a port that is in use, its end."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from store_builder import StoreBuilder

from pipeline import cli
from pipeline.plan.environment import Environment

PROJECT = Path(cli.__file__).parent.parent


@pytest.fixture
def env(places: Environment, tmp_path: Path) -> str:
    """An environment file of `places`."""
    path = tmp_path / "places.yaml"
    path.write_text(places.model_dump_json())
    return str(path)


@contextmanager
def inspecting(env: str, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A dashboard in a separate process, and its address."""
    command = [sys.executable, "-m", "pipeline.cli", "inspect", "--port", "0", "--env", env, *words]
    process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        match = re.match(r"Inspect +(http://\S+)  \(Ctrl-C ends it\)", process.stdout.readline())
        assert match
        yield process, match.group(1)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_answers_and_ends_quietly(env: str, builder: StoreBuilder, number: signal.Signals) -> None:
    builder.run("small-1")
    builder.node("ExampleGen")
    with inspecting(env) as (process, address):
        with urllib.request.urlopen(address, timeout=30) as response:  # noqa: S310 - loopback
            assert "small-1" in response.read().decode()
        process.send_signal(number)
        output, errors = process.communicate(timeout=30)
        assert (process.returncode, output, errors) == (0, "", "")


def test_other_machines_are_let_in_with_a_warning(env: str) -> None:
    with inspecting(env, "--host", "0.0.0.0") as (process, _address):  # noqa: S104 - what is tried
        process.send_signal(signal.SIGINT)
        _output, errors = process.communicate(timeout=30)
        assert errors == "warning: anyone who can reach 0.0.0.0 can read all of it: there is no password.\n"


def test_a_port_that_is_taken_names_the_option(env: str) -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = CliRunner().invoke(cli.main, ["inspect", "--port", str(port), "--env", env])
    assert result.exit_code == 1
    assert f"cannot listen at 127.0.0.1, port {port}: " in result.output
    assert "Choose another port with --port" in result.output
