"""What stopped a run: the file that the worker leaves in the folder of its logs."""

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
        message: What is wrong, as the user is told.
        lines: The user's own lines in the traceback, innermost last.
        findings: The anomalies of the data, of a failure that they are the cause of.
    """

    node: str
    kind: str = ""
    message: str
    lines: list[str] = Field(default_factory=list)
    findings: list[dict[str, Any]] | None = None


def read_failure(log_folder: Path) -> Failure | None:
    """The failure of a run; None where it left none.

    Args:
        log_folder: The run's folder of logs.

    Raises:
        ContentError: It cannot be read.
    """
    path = log_folder / file_names.FAILURE_FILE
    return content.read_record(path, Failure) if path.exists() else None
