"""Reads the files that pages show: nothing outside an artifact's folder, and only part of a large file."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from contracts.content import ContentError
from contracts.evaluation import read_summary
from metadata.files import is_uri
from metadata.records import ArtifactRecord

MOST_FILES = 300
SHOWN_BYTES = 128 * 1024
TAIL_BYTES = 32 * 1024
MOST_ROWS = 100
TEXT_SUFFIXES = frozenset(
    {".txt", ".json", ".jsonl", ".csv", ".tsv", ".pbtxt", ".md", ".yaml", ".yml", ".log", ".html"}
)


@dataclass(frozen=True)
class File:
    """A file of an artifact.

    Attributes:
        path: Relative to the artifact's folder.
        bytes: Its size.
        outside: Whether it is a link that leads out of the folder, whose target is never shown.
    """

    path: str
    bytes: int
    outside: bool = False

    @property
    def shown(self) -> bool:
        """Whether its contents can be shown."""
        return not self.outside and (Path(self.path).suffix in TEXT_SUFFIXES or not Path(self.path).suffix)


@dataclass(frozen=True)
class Listing:
    """The files of a folder.

    Attributes:
        files: Sorted by path.
        whole: Whether these are all.
    """

    files: list[File]
    whole: bool

    @property
    def bytes(self) -> int:
        """The sum of their sizes."""
        return sum(file.bytes for file in self.files)


def listing_of(artifact: ArtifactRecord) -> Listing | None:
    """Lists the files of an artifact without downloading any; None if it is gone.

    Raises:
        UnavailableError: Its store cannot be reached.
    """
    if not is_uri(artifact.uri):
        return listing(Path(artifact.uri))
    sizes = artifact.files.sizes(artifact.uri)
    return None if sizes is None else Listing([File(*size) for size in sizes[:MOST_FILES]], len(sizes) <= MOST_FILES)


def file_of(artifact: ArtifactRecord, path: str) -> Path | None:
    """A file of an artifact; None if it has no such file, or the path leads out of it.

    Raises:
        UnavailableError: Its store cannot be reached.
    """
    if not is_uri(artifact.uri):
        return inside(Path(artifact.uri), path)
    if "\0" in path or path.startswith("/") or ".." in Path(path).parts:
        return None
    file = artifact.file(path)
    return file if file.is_file() else None


def listing(folder: Path) -> Listing | None:
    """Lists the files below a folder; None if it does not exist (any more). A single file is listed by its name."""
    if folder.is_file():
        return Listing([File(folder.name, folder.stat().st_size)], whole=True)
    if not folder.is_dir():
        return None
    listed = list(islice(_walk(folder), MOST_FILES + 1))
    return Listing(sorted(listed[:MOST_FILES], key=lambda file: file.path), len(listed) <= MOST_FILES)


def _walk(folder: Path) -> Iterator[File]:
    root = folder.resolve()
    for where, folders, names in os.walk(folder):
        folders.sort()
        # os.walk does not follow links to folders; they are listed as links.
        links = [name for name in folders if Path(where, name).is_symlink()]
        for name in sorted([*names, *links]):
            path = Path(where, name)
            outside = not path.resolve().is_relative_to(root) or not path.is_file()
            yield File(str(path.relative_to(folder)), 0 if outside else path.stat().st_size, outside)


def inside(folder: Path, path: str) -> Path | None:
    """A file in a folder; None if there is none, or the path leads out of the folder."""
    if "\0" in path:
        return None
    root = folder.resolve()
    file = root if root.is_file() and path == folder.name else (root / path).resolve()
    return file if file.is_relative_to(root) and file.is_file() else None


@dataclass(frozen=True)
class Preview:
    """What a page shows of a file.

    Attributes:
        text: Its text, with JSON indented; empty for CSV and binary files.
        rows: The rows of a CSV file, the heading first; otherwise empty.
        cut: Whether there is more of it.
        binary: Whether it is not text.
    """

    text: str
    rows: list[list[str]]
    cut: bool
    binary: bool = False


def preview(path: Path) -> Preview:
    """Reads the beginning of a file, as text or as a table."""
    with path.open("rb") as file:
        begin = file.read(SHOWN_BYTES + 1)
    cut = len(begin) > SHOWN_BYTES
    text = _text(begin[:SHOWN_BYTES], cut)
    if text is None:
        return Preview("", [], cut, binary=True)
    if path.suffix == ".csv":
        rows = list(islice(csv.reader(io.StringIO(text)), MOST_ROWS + 1))
        return Preview("", rows, cut or len(rows) > MOST_ROWS)
    if path.suffix == ".json" and not cut:
        return Preview(_indented(text), [], cut)
    return Preview(text, [], cut)


def _text(data: bytes, cut: bool) -> str | None:
    if b"\0" in data:
        return None
    for end in range(len(data), max(len(data) - 4, -1), -1):
        # A file may have been cut off within a character.
        try:
            return data[:end].decode()
        except UnicodeDecodeError:
            if not cut:
                return None
    return None


def _indented(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text


def tail(path: Path) -> tuple[str, bool]:
    """The end of a log, from the beginning of a line, and whether there is more before it."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - TAIL_BYTES, 0))
        data = file.read()
    cut = size > TAIL_BYTES
    text = data.decode(errors="replace")
    return (text.partition("\n")[2] if cut else text), cut


def metrics_of(evaluation: ArtifactRecord) -> dict[str, float | None]:
    """The values of an evaluation by metric; empty if its file is gone or broken."""
    try:
        return read_summary(evaluation).values
    except ContentError:
        return {}
