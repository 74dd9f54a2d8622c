"""Reads the files of artifacts; a missing or malformed file is an error that names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, TypeVar

from google.protobuf import text_format
from google.protobuf.message import DecodeError
from pydantic import BaseModel, ConfigDict, ValidationError

MOST_FAULTS = 3


class ContentError(Exception):
    """A file is missing, or does not hold what it should.

    Args:
        path: The file.
        why: What is wrong with it, as the end of a sentence that begins with the path.
    """

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path} {why}")
        self.path = path
        self.why = why


class Record(BaseModel):
    """Part of a JSON file; unknown keys are ignored, and numbers must be finite."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class HasFiles(Protocol):
    """An artifact, wherever its files are kept."""

    def file(self, name: str) -> Path:
        """The path of one of its files; the path does not exist if the artifact has no such file."""


AnyRecord = TypeVar("AnyRecord", bound=Record)


def read_text(path: Path) -> str:
    """Reads a UTF-8 text file.

    Raises:
        ContentError: The file is missing, or cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ContentError(path, "is not there (any more)") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ContentError(path, f"cannot be read: {error}") from error


def read_record(path: Path, kind: type[AnyRecord]) -> AnyRecord:
    """Reads a JSON file as a record.

    Raises:
        ContentError: The file is missing, cannot be read, or holds something else.
    """
    try:
        return kind.model_validate_json(read_text(path))
    except ValidationError as error:
        faults = [_fault(fault["loc"], fault["msg"]) for fault in error.errors()[:MOST_FAULTS]]
        raise ContentError(path, f"does not hold what it should: {'; '.join(faults)}") from error


def _fault(place: tuple[int | str, ...], message: str) -> str:
    return f"{'.'.join(map(str, place))}: {message}" if place else message


def read_proto(path: Path, kind: Any) -> Any:
    """Reads the protocol buffer message in a binary file.

    Args:
        path: The file.
        kind: The message's class.

    Raises:
        ContentError: The file is missing, cannot be read, or holds something else.
    """
    try:
        return kind.FromString(path.read_bytes())
    except FileNotFoundError as error:
        raise ContentError(path, "is not there (any more)") from error
    except (OSError, DecodeError) as error:
        raise ContentError(path, f"cannot be read: {error}") from error


def read_text_proto(path: Path, kind: Any) -> Any:
    """Reads the message in a text file; see `read_proto`."""
    try:
        return text_format.Parse(read_text(path), kind())
    except text_format.ParseError as error:
        raise ContentError(path, f"does not hold what it should: {error}") from error
