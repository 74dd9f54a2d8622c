"""Push, push, roll back: the running server returns the old model's predictions again, and no request fails."""

from __future__ import annotations

import shlex
import socket
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import tfx
from copied_project import Project

PATIENCE = 120
TRIPS = f"{tfx.__path__[0]}/examples/chicago_taxi_pipeline/data/simple/data.csv"
SMALL = ("--set", "data.path=trips.csv", "--set", "evaluator.metrics={AUC: {lower_bound: 0.0}}")


class Asker:
    """Keeps sending the server the same request, in a thread of its own.

    Attributes:
        answers: The responses, without those that repeat the previous one.
        failures: The errors.
    """

    def __init__(self, url: str, body: str) -> None:
        self.answers: list[str] = []
        self.failures: list[str] = []
        self._request = urllib.request.Request(url, body.encode())  # noqa: S310 (our own server)
        self._changed = threading.Condition()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def wait_for(self, count: int) -> None:
        """Waits until there are `count` different responses."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.answers) >= count, PATIENCE), self.answers

    def stop(self) -> None:
        """Stops asking."""
        self._stopped.set()
        self._thread.join()

    def _ask(self) -> None:
        while not self._stopped.is_set():
            try:
                with urllib.request.urlopen(self._request, timeout=PATIENCE) as response:  # noqa: S310
                    body = response.read().decode()
            except OSError as error:
                self.failures.append(str(error))
                continue
            with self._changed:
                if self.answers[-1:] != [body]:
                    self.answers.append(body)
                self._changed.notify_all()


@contextmanager
def asked(project: Project) -> Iterator[Asker]:
    """Runs `millrace serve` and keeps sending the request that it suggests."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = project.start("serve", "taxi", f"--rest_api_port={port}", "--port=0")
    assert process.stdout is not None
    try:
        line = next(line for line in process.stdout if line.startswith("Try"))
        _, _, _, body, url = shlex.split(line)
        asker = Asker(url, body)
        try:
            yield asker
        finally:
            asker.stop()
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


@pytest.fixture
def small(project: Project) -> Project:
    """A project with the first 3,000 trips as its data."""
    with open(TRIPS, encoding="utf-8") as trips:
        (project.folder / "trips.csv").write_text("".join(line for _, line in zip(range(3001), trips, strict=False)))
    return project


def test_a_running_server_goes_back_without_a_failed_request(small: Project) -> None:
    nothing = small.millrace("rollback")
    assert nothing.code == 1
    assert "there is nothing to roll back to" in nothing.errors
    first = small.millrace("run", *SMALL, "--set", "trainer.train_steps=20")
    assert first.code == 0, first.errors
    [old] = small.pushed_versions()
    with asked(small) as asker:
        asker.wait_for(1)
        again = ("run", *SMALL, "--set", "trainer.train_steps=60")
        second = small.millrace(*again)
        assert second.code == 0, second.errors
        asker.wait_for(2)
        rolled_back = small.millrace("rollback", "taxi")
        assert rolled_back.code == 0, rolled_back.errors
        asker.wait_for(3)
    before, after, restored = asker.answers
    assert before == restored != after
    assert asker.failures == []

    [_, new, restored_version] = small.pushed_versions()
    assert f"Restored   version {old}, instead of version {new}" in rolled_back.output
    up_to_date = small.millrace(*again)
    assert up_to_date.code == 0
    assert f"Not served: version {restored_version} is, the content of version {old}" in up_to_date.output
    assert f"millrace rollback taxi --to {new}" in up_to_date.output
    listed = small.millrace("rollback", "--list").output.splitlines()
    assert listed[2].split()[0] == restored_version
    assert listed[2].split()[-1] == "served"
