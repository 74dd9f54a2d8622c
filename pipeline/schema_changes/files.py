"""Writes a reviewed file at once or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from components.errors import MillraceError
from pipeline.recipe import project_relative


def replace(path: Path, before: str | None, after: str) -> None:
    """Gives a file a new text; a reader sees the old one or the new one.

    Args:
        path: The file; its folder is made if need be.
        before: The text that `after` was made from; None for no file.
        after: The new text.

    Raises:
        MillraceError: The file has another text by now.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode if path.exists() else 0o644
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(after)
            os.fchmod(file.fileno(), mode)
        if text_of(path) != before:
            raise MillraceError(f"{project_relative(path)} was changed meanwhile; nothing was written.", "Try again.")
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def text_of(path: Path) -> str | None:
    """A file's text with its line ends as they are, or None where there is no file."""
    return path.read_bytes().decode("utf-8") if path.exists() else None
