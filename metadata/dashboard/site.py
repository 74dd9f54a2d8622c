"""What the dashboard shows, and what the metadata store does not know of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from metadata.queries import Queries
from metadata.records import RunRecord
from metadata.report.source import Surroundings


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
