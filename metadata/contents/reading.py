"""How files of artifacts are read: a file that is gone, or holds something else, is an error that names it."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

MOST_FAULTS = 3


class ContentError(Exception):
    """A file is not there, or does not hold what it should.

    Args:
        path: The file.
        why: What is wrong with it, as a sentence part.
    """

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path} {why}")
        self.path = path
        self.why = why


class Record(BaseModel):
    """A part of a JSON file; what it does not name is left out, and numbers are finite."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


AnyRecord = TypeVar("AnyRecord", bound=Record)


def text(path: Path) -> str:
    """A text file in UTF-8.

    Raises:
        ContentError: It is not there, or cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ContentError(path, "is not there (any more)") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ContentError(path, f"cannot be read: {error}") from error


def record(path: Path, kind: type[AnyRecord]) -> AnyRecord:
    """A JSON file.

    Raises:
        ContentError: It is not there, cannot be read, or holds something else.
    """
    try:
        return kind.model_validate_json(text(path))
    except ValidationError as error:
        faults = [_fault(fault["loc"], fault["msg"]) for fault in error.errors()[:MOST_FAULTS]]
        raise ContentError(path, f"does not hold what it should: {'; '.join(faults)}") from error


def _fault(place: tuple[int | str, ...], message: str) -> str:
    return f"{'.'.join(map(str, place))}: {message}" if place else message
