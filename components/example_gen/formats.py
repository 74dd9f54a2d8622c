"""THE table of formats: how to recognise the format of the data, and which files of a folder belong to them.

Imports nothing heavy, like `files`; `sources` has the reader of each format.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from contracts.errors import DataError, SettingsError


@dataclass(frozen=True)
class Format:
    """How the files of a format are recognised.

    Attributes:
        suffixes: Suffixes of its files.
        files: Whole file names; they take precedence over suffixes.
        folders: Whole folder names.
        images: Whether its columns are an image with its label, class and name.
    """

    suffixes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    images: bool = False


FORMATS = {
    "csv": Format((".csv", ".tsv", ".tab")),
    "parquet": Format((".parquet", ".pq")),
    "jsonl": Format((".jsonl", ".ndjson")),
    "tfrecord": Format((".tfrecord", ".tfrecords")),
    "text": Format(),
    "python": Format((".py",)),
    "images": Format((".png", ".jpg", ".jpeg", ".gif", ".bmp"), images=True),
    "cifar10": Format(
        files=("cifar-10-binary.tar.gz", "cifar-10-python.tar.gz"),
        folders=("cifar-10-batches-bin", "cifar-10-batches-py"),
        images=True,
    ),
    "digits": Format(files=("digits.csv.gz",), images=True),
}
"""Keyed by the values of `data.format` other than `auto`."""

_BY_SUFFIX = {suffix: name for name, spec in FORMATS.items() for suffix in spec.suffixes}
_BY_FILE = {file: name for name, spec in FORMATS.items() for file in spec.files}
_BY_FOLDER = {folder: name for name, spec in FORMATS.items() for folder in spec.folders}

IMAGE_FORMATS = frozenset(name for name, spec in FORMATS.items() if spec.images)

CIFAR10_BATCHES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
CIFAR10_BINARY, CIFAR10_PYTHON = "batches.meta.txt", "batches.meta"
"""The file of class names, which tells the two forms of CIFAR-10 apart."""


def choose_format(setting: str, matches: Sequence[Path]) -> str | None:
    """Returns `data.format`, or where it is `auto` the format that the names indicate; None if there is no file.

    Args:
        setting: `data.format`.
        matches: The files and folders that `data.path` names.

    Raises:
        SettingsError: The names indicate no format, several formats, or a data set that cannot be read.
    """
    for match in matches:
        if match.name.startswith("cifar-100-"):
            raise SettingsError(
                f"data.path names {match}, which is CIFAR-100; expected CIFAR-10, whose records have one label.",
                "Use CIFAR-10, or save the images in one folder a class and set data.format: images.",
            )
    if setting != "auto":
        return setting
    formats: dict[str | None, Path] = {}
    for match in matches:
        for format_, path in _recognised(match):
            formats.setdefault(format_, path)
    if None in formats:
        raise SettingsError(
            f"The format of {formats[None]} cannot be told from its name, expected one of {', '.join(_BY_SUFFIX)} "
            f"(CSV, JSON lines and TFRecord may end in .gz), or {', '.join((*_BY_FILE, *_BY_FOLDER))}.",
            "Set data.format, or narrow data.path to the data files.",
        )
    if len(formats) > 1:
        raise SettingsError(
            "data.path matches files of several formats: " + ", ".join(f"{f} ({kind})" for kind, f in formats.items()),
            "Narrow data.path to the files of one format.",
        )
    return next(iter(formats), None)


def list_files(format_: str, matches: Sequence[Path]) -> tuple[Path, ...]:
    """Returns the data files, in a fixed order; empty if there are none.

    Args:
        format_: What `choose_format` returned.
        matches: The files and folders that `data.path` names, sorted.

    Raises:
        DataError: A folder cannot be read, or does not hold CIFAR-10.
    """
    if format_ == "images":
        return tuple(file for match in matches for file in _files_below(match))
    files = tuple(file for match in matches for file in _files_in(match))
    return _cifar10_files(matches, files) if format_ == "cifar10" and files else files


def _recognised(match: Path) -> Iterator[tuple[str | None, Path]]:
    """Yields the format that each file's name indicates, or None, and the file."""
    if match.is_dir() and match.name in _BY_FOLDER:
        yield _BY_FOLDER[match.name], match
        return
    files = _files_in(match)
    for file in files:
        yield _BY_FILE.get(file.name) or _BY_SUFFIX.get(Path(file.name.removesuffix(".gz")).suffix.lower()), file
    if not files and any(_BY_SUFFIX.get(file.suffix.lower()) == "images" for file in _files_below(match)):
        yield "images", match


def _files_in(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(
        f for f in path.iterdir() if (f.is_file() or f.is_symlink()) and not f.is_dir() and not _is_hidden(f.name)
    )


def _files_below(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    # Follows links, since people keep large folders elsewhere; a cycle of links ends at the system's limit.
    for folder, folders, names in os.walk(path, onerror=_refuse_unreadable, followlinks=True):
        folders[:] = sorted(name for name in folders if not _is_hidden(name))
        yield from (Path(folder, name) for name in sorted(names) if not _is_hidden(name))


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _refuse_unreadable(error: OSError) -> None:
    raise DataError(f"{error.filename} cannot be read: {error.strerror}.", "Mend its permissions.") from error


def cifar10_members(where: str, names: Iterable[str], fix: str) -> list[str]:
    """Returns the file names of the six batches and, last, of the class names in a CIFAR-10 archive or folder.

    Args:
        where: The archive or folder, for the message.
        names: The names of the files in it.
        fix: What to do if some are missing, for the message.

    Raises:
        DataError: A file is missing.
    """
    present = set(names)
    suffix, meta = ("", CIFAR10_PYTHON) if CIFAR10_PYTHON in present else (".bin", CIFAR10_BINARY)
    expected = [f"{batch}{suffix}" for batch in CIFAR10_BATCHES] + [meta]
    if missing := [name for name in expected if name not in present]:
        raise DataError(
            f"{where} lacks {', '.join(missing)}, expected {', '.join(expected)}, as in CIFAR-10; "
            f"it holds {', '.join(names) or 'no files'}.",
            fix,
        )
    return expected


def _cifar10_files(matches: Sequence[Path], files: tuple[Path, ...]) -> tuple[Path, ...]:
    """Returns the one archive, or the files of batches and class names in the one folder."""
    if len(matches) > 1:
        raise DataError(
            f"data.path matches {len(matches)} files and folders, expected one CIFAR-10 archive or folder.",
            "Narrow data.path.",
        )
    if len(files) == 1:
        return files
    present = {file.name: file for file in files}
    fix = "Unpack the archive again, or let data.path name the archive itself."
    return tuple(present[name] for name in cifar10_members(str(matches[0]), present, fix))
