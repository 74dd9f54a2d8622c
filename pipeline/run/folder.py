"""The folder of a run: what was asked for, what each node printed and how far it is, and what made it fail."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from contracts import atomic
from contracts.failure import Failure
from contracts.file_names import FAILURE_FILE, REPORT_FILE
from contracts.settings import Settings


class Request(Settings):
    """What is asked of a run; the worker, and whoever looks at the run later, reads it in the run's folder.

    Attributes:
        recipe: The recipe's name.
        overrides: `--set` texts.
        environment: An environment's name or file.
        run_id: The run's name in the metadata store.
        span: The resolved span of the input data.
        from_node: Where a partial run begins.
        to_node: Where a partial run ends.
        force: Whether nodes run although their results are in the cache.
    """

    recipe: str
    overrides: tuple[str, ...]
    environment: str
    run_id: str
    span: int | None
    from_node: str | None = None
    to_node: str | None = None
    force: bool = False


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run, and the names of the files in it."""

    path: Path

    @property
    def request_path(self) -> Path:
        """What was asked for."""
        return self.path / "request.json"

    @property
    def worker_log(self) -> Path:
        """What the worker printed before, between and after the nodes."""
        return self.path / "worker.log"

    @property
    def failure_path(self) -> Path:
        """What made the run fail, if it did."""
        return self.path / FAILURE_FILE

    @property
    def report_path(self) -> Path:
        """The run's report."""
        return self.path / REPORT_FILE

    def log_path(self, node: str) -> Path:
        """What a node printed."""
        return self.path / f"{node}.log"

    def progress_path(self, node: str) -> Path:
        """How far a node is, if it says so."""
        return self.path / f"{node}.progress.json"

    def read_request(self) -> Request | None:
        """What was asked for; None where that is not known, or was asked by another version in another form."""
        try:
            return Request.model_validate_json(self.request_path.read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def write_request(self, request: Request) -> None:
        """Writes what is asked for, whole or not at all: several processes of a run may do it at once."""
        self.path.mkdir(parents=True, exist_ok=True)
        atomic.write_text(self.request_path, request.model_dump_json(indent=2))

    def write_failure(self, failure: Failure) -> None:
        """Writes what made the run fail."""
        self.failure_path.write_text(failure.model_dump_json(exclude_none=True), encoding="utf-8")


def last_line(path: Path) -> str:
    """What a log ends with."""
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n") if path.exists() else []
    return next((line for line in reversed(lines) if line.strip()), "It left no output.")


@contextmanager
def redirect_output(path: Path) -> Iterator[None]:
    """Sends the process's standard output and error to the end of a file, C++ libraries' included."""
    sys.stdout.flush()
    sys.stderr.flush()
    before = os.dup(1), os.dup(2)
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(target, 1)
    os.dup2(target, 2)
    os.close(target)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for descriptor, saved in zip((1, 2), before, strict=True):
            os.dup2(saved, descriptor)
            os.close(saved)
