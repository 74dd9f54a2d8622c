"""Reads the files that pages show: of an artifact's folder nothing outside it, and of a large file a part."""

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
        path: Below the artifact's folder.
        bytes: Its size.
        outside: Whether it is a link to something that is not in the folder, of which nothing is shown.
    """

    path: str
    bytes: int
    outside: bool = False

    @property
    def shown(self) -> bool:
        """Whether it can be looked at."""
        return not self.outside and (Path(self.path).suffix in TEXT_SUFFIXES or not Path(self.path).suffix)


@dataclass(frozen=True)
class Listing:
    """The files of a folder.

    Attributes:
        files: In the order of their paths.
        whole: Whether these are all.
    """

    files: list[File]
    whole: bool

    @property
    def bytes(self) -> int:
        """The sum of their sizes."""
        return sum(file.bytes for file in self.files)


def listing_of(artifact: ArtifactRecord) -> Listing | None:
    """The files of an artifact, of which none is brought here; None where it is gone.

    Raises:
        UnavailableError: What holds it cannot be reached.
    """
    if not is_uri(artifact.uri):
        return listing(Path(artifact.uri))
    sizes = artifact.files.sizes(artifact.uri)
    return None if sizes is None else Listing([File(*size) for size in sizes[:MOST_FILES]], len(sizes) <= MOST_FILES)


def file_of(artifact: ArtifactRecord, path: str) -> Path | None:
    """A file of an artifact; None where it has none, or the path leads out of it.

    Raises:
        UnavailableError: What holds it cannot be reached.
    """
    if not is_uri(artifact.uri):
        return inside(Path(artifact.uri), path)
    if "\0" in path or path.startswith("/") or ".." in Path(path).parts:
        return None
    found = artifact.file(path)
    return found if found.is_file() else None


def listing(folder: Path) -> Listing | None:
    """The files below a folder; None where it is not there (any more). A file alone is listed by its name."""
    if folder.is_file():
        return Listing([File(folder.name, folder.stat().st_size)], whole=True)
    if not folder.is_dir():
        return None
    found = list(islice(_walk(folder), MOST_FILES + 1))
    return Listing(sorted(found[:MOST_FILES], key=lambda file: file.path), len(found) <= MOST_FILES)


def _walk(folder: Path) -> Iterator[File]:
    root = folder.resolve()
    for where, folders, names in os.walk(folder):
        folders.sort()
        # os.walk does not follow links to folders; they are listed as what they are.
        links = [name for name in folders if Path(where, name).is_symlink()]
        for name in sorted([*names, *links]):
            path = Path(where, name)
            outside = not path.resolve().is_relative_to(root) or not path.is_file()
            yield File(str(path.relative_to(folder)), 0 if outside else path.stat().st_size, outside)


def inside(folder: Path, path: str) -> Path | None:
    """A file of a folder; None where there is none, or it leads out of the folder."""
    if "\0" in path:
        return None
    root = folder.resolve()
    found = root if root.is_file() and path == folder.name else (root / path).resolve()
    return found if found.is_relative_to(root) and found.is_file() else None


@dataclass(frozen=True)
class Preview:
    """What a page shows of a file.

    Attributes:
        text: Its text, JSON indented; empty where it is none.
        rows: Of a table in CSV, the heading first; else nothing.
        cut: Whether there is more of it.
        binary: Whether it is no text.
    """

    text: str
    rows: list[list[str]]
    cut: bool
    binary: bool = False


def preview(path: Path) -> Preview:
    """The begin of a file, as text or as a table."""
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
        # Where the file was cut, it may have been within a character.
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
    """The end of a log, from the begin of a line, and whether there is more before it."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - TAIL_BYTES, 0))
        data = file.read()
    cut = size > TAIL_BYTES
    text = data.decode(errors="replace")
    return (text.partition("\n")[2] if cut else text), cut


def metrics_of(evaluation: ArtifactRecord) -> dict[str, float | None]:
    """The values of an evaluation by metric; none where its file is gone or is no such file."""
    try:
        return read_summary(evaluation).values
    except ContentError:
        return {}
