"""The folder of a run: the request, each node's log and progress, and why the run failed."""

from __future__ import annotations

import os
import sys
import tempfile
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
    """What a run was asked to do; stored in the run's folder for the worker, and for whoever looks at the run later.

    Attributes:
        recipe: The recipe's name.
        overrides: `--set` texts.
        environment: An environment's name or file.
        run_id: The run's name in the metadata store.
        span: The resolved span of the input data.
        from_node: Where a partial run begins.
        to_node: Where a partial run ends.
        force: Whether to run nodes even if their results are cached.
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
        """The request."""
        return self.path / "request.json"

    @property
    def worker_log(self) -> Path:
        """The worker's output before, between and after the nodes."""
        return self.path / "worker.log"

    @property
    def failure_path(self) -> Path:
        """Why the run failed, if it did."""
        return self.path / FAILURE_FILE

    @property
    def report_path(self) -> Path:
        """The run's report."""
        return self.path / REPORT_FILE

    def log_path(self, node: str) -> Path:
        """The log of a node."""
        return self.path / f"{node}.log"

    def progress_path(self, node: str) -> Path:
        """The progress of a node, if it reports any."""
        return self.path / f"{node}.progress.json"

    def read_request(self) -> Request | None:
        """Reads the request; None if there is none, or if another version wrote it in another form."""
        try:
            return Request.model_validate_json(self.request_path.read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def write_request(self, request: Request) -> None:
        """Writes the request atomically: several processes of a run may do it at once."""
        self.path.mkdir(parents=True, exist_ok=True)
        atomic.write_text(self.request_path, request.model_dump_json(indent=2))

    def write_failure(self, failure: Failure) -> None:
        """Writes why the run failed; among the temporary files where there is no space left here."""
        text = failure.model_dump_json(exclude_none=True)
        try:
            atomic.write_text(self.failure_path, text)
        except OSError:
            atomic.write_text(Path(tempfile.gettempdir(), FAILURE_FILE), text)


def last_line(path: Path) -> str:
    """The last line of a log that is not empty."""
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n") if path.exists() else []
    return next((line for line in reversed(lines) if line.strip()), "It left no output.")


@contextmanager
def redirect_output(path: Path) -> Iterator[None]:
    """Appends the process's standard output and error to a file, those of C++ libraries included."""
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
