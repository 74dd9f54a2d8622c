"""The scripts that start Flink: sizes, processes, and their messages if something is missing."""

from __future__ import annotations

import shutil
import socket
import sys
from pathlib import Path

import pytest

from contracts.errors import MillraceError
from flink import cluster, commands, jars
from flink.cluster import Cluster, Ports, Process


def executable(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_sizes_grow_with_the_machine_within_bounds() -> None:
    assert commands.process_sizes(4096) == commands.Sizes(384, 256, 384, 256, 256)
    assert commands.process_sizes(24 * 1024) == commands.Sizes(768, 512, 1536, 1536, 512)
    assert commands.process_sizes(1024 * 1024) == commands.Sizes(1024, 1024, 4096, 4096, 512)


@pytest.mark.parametrize(
    ("says", "message"),
    [
        (None, "there is no java in the PATH that starts"),
        ("exit 1", "there is no java in the PATH that starts"),
        ("echo 'openjdk version \"25.0.2\" 2026' >&2", "java is Java 25"),
        ("echo 'java version \"1.8.0_1\"' >&2", "java is Java 8"),
    ],
)
def test_a_java_that_will_not_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str | None, message: str
) -> None:
    if says:
        executable(tmp_path, "java", says)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MillraceError, match=message) as caught:
        commands.find_java()
    assert caught.value.fix is not None
    assert "default-jre-headless" in caught.value.fix


@pytest.fixture
def fake_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java that prints its version and otherwise exits at once; the jars are there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    executable(folder, "java", 'case "$1" in -version) echo \'version "17.0.1"\' >&2;; *) echo "no space left";; esac')
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setattr(jars, "fetch", lambda _folder: None)
    monkeypatch.setattr(cluster, "machine_megabytes", lambda: 8192)
    return folder


def free_ports() -> Ports:
    sockets = [socket.socket() for _ in range(5)]
    for bound in sockets:
        bound.bind(("localhost", 0))
    ports = Ports(*(bound.getsockname()[1] for bound in sockets))
    for bound in sockets:
        bound.close()
    return ports


def test_a_taken_port_is_named(tmp_path: Path, fake_java: Path) -> None:
    ports = free_ports()
    with socket.socket() as taken:
        taken.bind(("localhost", ports.job))
        taken.listen()
        with pytest.raises(MillraceError, match=f"port {ports.job}, which Flink's jobserver needs") as caught:
            Cluster(tmp_path / "flink", ports).start()
    assert caught.value.fix is not None
    assert f"--job-port {ports.job + 100}" in caught.value.fix


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_a_process_that_died_shows_its_last_lines(tmp_path: Path, fake_java: Path) -> None:
    cluster = Cluster(tmp_path / "flink", free_ports())
    with pytest.raises(MillraceError, match=r"Flink.s jobmanager died\. Its last lines:\n  no space left"):
        cluster.start()
    assert not cluster.stop()


def test_too_little_memory_is_told(tmp_path: Path, fake_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "machine_megabytes", lambda: 2048)
    with pytest.raises(MillraceError, match="needs 4096 MB of memory; this machine has 2048 MB"):
        Cluster(tmp_path / "flink", free_ports()).start()


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_a_process_is_known_by_more_than_its_id(tmp_path: Path) -> None:
    sleeper = tmp_path / "sleeper"
    sleeper.write_text(f"#!{sys.executable}\nimport time\nprint('up', flush=True)\ntime.sleep(60)\n")
    sleeper.chmod(0o755)
    process = Process("one", tmp_path)
    process.start([str(sleeper)])
    pid = process.pid()
    assert pid is not None
    shutil.copy(tmp_path / "one.pid", tmp_path / "two.pid")
    assert Process("two", tmp_path).pid() is None, "the id is another process's by now"
    assert not Process("two", tmp_path).stop()
    assert process.pid() == pid
    assert process.stop()
    assert process.pid() is None
    assert not process.stop()
