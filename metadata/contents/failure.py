"""What stopped a run: the file that the worker leaves in the folder of its logs."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from metadata.contents import places, reading


class Failure(reading.Record):
    """A failure.

    Attributes:
        node: The node that failed.
        message: What is wrong, as the user is told.
        lines: The user's own lines in the traceback, innermost last.
    """

    node: str
    message: str
    lines: list[str] = Field(default_factory=list)


def of(log_folder: Path) -> Failure | None:
    """The failure of a run; None where it left none.

    Args:
        log_folder: The run's folder of logs.

    Raises:
        ContentError: It cannot be read.
    """
    path = log_folder / places.FAILURE_FILE
    return reading.record(path, Failure) if path.exists() else None
