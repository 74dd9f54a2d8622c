"""Reads files of protos; one that is gone or broken is an error that names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from metadata.contents.reading import ContentError, text


def binary(path: Path, kind: Any) -> Any:
    """The message in a binary file.

    Args:
        path: The file.
        kind: The message's class.

    Raises:
        ContentError: It is not there, cannot be read, or holds something else.
    """
    try:
        return kind.FromString(path.read_bytes())
    except FileNotFoundError as error:
        raise ContentError(path, "is not there (any more)") from error
    except (OSError, DecodeError) as error:
        raise ContentError(path, f"cannot be read: {error}") from error


def textual(path: Path, kind: Any) -> Any:
    """The message in a text file; see `binary`."""
    try:
        return text_format.Parse(text(path), kind())
    except text_format.ParseError as error:
        raise ContentError(path, f"does not hold what it should: {error}") from error
