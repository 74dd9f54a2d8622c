"""What the dashboard shows: an environment, what its metadata store does not know, and a TensorBoard beside it."""

from __future__ import annotations

import ctypes
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol

from metadata.queries import Queries
from metadata.records import RunRecord
from ui.report.source import Surroundings


class TensorBoard(Protocol):
    """A TensorBoard that runs beside the dashboard."""

    @property
    def folder(self) -> Path:
        """The folder whose runs it shows."""

    @property
    def url(self) -> str:
        """Where it answers; an empty text as long as it does not."""


@dataclass(frozen=True)
class Site:
    """An environment that is looked at.

    Attributes:
        name: The environment's name.
        opened: Opens the metadata store; None while there is none yet. It raises `UnreadableError`, and what ML
            Metadata raises while another process makes the store or holds it.
        store_file: The store's SQLite file; None where a server holds the store.
        log_root: Holds the logs, a folder a run.
        surroundings: What the store does not know of a run.
        held: Whether a run of a pipeline goes on; between two of its nodes nothing runs, as at its end.
        why: One sentence about a run of a node: the store, the pipeline, the node, the execution's id.
        note: What a running node says of its progress: the run's folder of logs, the node.
        command: A command line of ours that can be pasted into a shell, of its words; without words, one that makes a
            first run.
        program: How a program of the environment is called, by its name.
        tensorboard: A TensorBoard that runs beside the dashboard, or None.
    """

    name: str
    opened: Callable[[], Queries | None]
    store_file: Path | None
    log_root: Path
    surroundings: Callable[[Queries, RunRecord], Surroundings]
    held: Callable[[str], bool]
    why: Callable[[Queries, str, str, int], str]
    note: Callable[[Path, str], str]
    command: Callable[..., str]
    program: Callable[[str], str]
    tensorboard: TensorBoard | None = None


class UnreadableError(Exception):
    """The metadata store cannot be read now; the text says why and how to mend it."""


PR_SET_PDEATHSIG = 1
ADDRESS = re.compile(r"http://\S+/")


class TensorBoardProcess:
    """Starts TensorBoard on a free port of this machine; it takes some seconds until it answers.

    Args:
        folder: The folder whose runs it shows.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = ""
        command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(folder), "--host", "localhost"]
        self._process = subprocess.Popen(
            [*command, "--port", "0"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            # Should the dashboard be killed, nobody else would end it.
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
        )
        assert self._process.stderr is not None  # noqa: S101 - it is a pipe
        threading.Thread(target=self._read, args=(self._process.stderr,), daemon=True).start()

    def __enter__(self) -> TensorBoardProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # It only reads: there is nothing that it would have to finish, and nobody to wait for it.
        self._process.kill()
        self._process.wait()

    def _read(self, lines: IO[str]) -> None:
        # To the end, for a full pipe would stop it.
        for line in lines:
            found = ADDRESS.search(line)
            if found and not self.url:
                self.url = found.group()
        self.url = ""


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
