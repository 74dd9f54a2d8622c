"""What stopped a run: the file that the worker leaves in the run's log folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from contracts import content, file_names


class Failure(content.Record):
    """A failure.

    Attributes:
        node: The node that failed.
        kind: The class of the error.
        message: What is wrong, as shown to the user.
        lines: The user's own lines in the traceback, innermost last.
        findings: The anomalies in the data, if they caused the failure.
    """

    node: str
    kind: str = ""
    message: str
    lines: list[str] = Field(default_factory=list)
    findings: list[dict[str, Any]] | None = None


def read_failure(log_folder: Path) -> Failure | None:
    """Reads the failure of a run; None if there is none.

    Args:
        log_folder: The run's log folder.

    Raises:
        ContentError: It cannot be read.
    """
    path = log_folder / file_names.FAILURE_FILE
    return content.read_record(path, Failure) if path.exists() else None
