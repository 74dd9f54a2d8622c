"""In which format data are, and which files of a folder belong to them. Imports nothing heavy, as `files`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from components.errors import DataError, SettingsError

IMAGE_FORMATS = ("images", "cifar10", "digits")
"""Those that give an image, its label, class and name."""

CIFAR10_BATCHES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
CIFAR10_BINARY, CIFAR10_PYTHON = "batches.meta.txt", "batches.meta"
"""The file of the class names, by which the two forms of CIFAR-10 are told apart."""

_SUFFIXES = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".png": "images",
    ".jpg": "images",
    ".jpeg": "images",
    ".gif": "images",
    ".bmp": "images",
}
_CIFAR10_FOLDERS = ("cifar-10-batches-bin", "cifar-10-batches-py")
_NAMES = {
    "cifar-10-binary.tar.gz": "cifar10",
    "cifar-10-python.tar.gz": "cifar10",
    "digits.csv.gz": "digits",
}


def choose_format(wanted: str, matches: Sequence[Path]) -> str | None:
    """Returns `data.format`, or what the names tell where it is `auto`; None if there is no file.

    Args:
        wanted: `data.format`.
        matches: The files and folders that `data.path` names.

    Raises:
        SettingsError: The names tell nothing, or several formats, or a data set that cannot be read.
    """
    for match in matches:
        if match.name.startswith("cifar-100-"):
            raise SettingsError(
                f"data.path names {match}, which is CIFAR-100; expected CIFAR-10, whose records have one label.",
                "Use CIFAR-10, or save the images in one folder a class and set data.format: images.",
            )
    if wanted != "auto":
        return wanted
    formats: dict[str | None, Path] = {}
    for match in matches:
        for format_, path in _told_by_name(match):
            formats.setdefault(format_, path)
    if None in formats:
        raise SettingsError(
            f"The format of {formats[None]} cannot be told from its name, expected one of {', '.join(_SUFFIXES)} "
            f"(CSV and JSON lines may end in .gz), or {', '.join((*_NAMES, *_CIFAR10_FOLDERS))}.",
            "Set data.format, or narrow data.path to the data files.",
        )
    if len(formats) > 1:
        raise SettingsError(
            "data.path matches files of several formats: " + ", ".join(f"{f} ({kind})" for kind, f in formats.items()),
            "Narrow data.path to the files of one format.",
        )
    return next(iter(formats), None)


def list_files(format_: str, matches: Sequence[Path]) -> tuple[Path, ...]:
    """Returns the data files, in a fixed order; none if there are none.

    Args:
        format_: What `choose_format` returned.
        matches: The files and folders that `data.path` names, sorted.

    Raises:
        DataError: A folder cannot be read, or is no CIFAR-10.
    """
    if format_ == "images":
        return tuple(file for match in matches for file in _files_below(match))
    files = tuple(file for match in matches for file in _files_in(match))
    return _cifar10_files(matches, files) if format_ == "cifar10" and files else files


def _told_by_name(match: Path) -> Iterator[tuple[str | None, Path]]:
    if match.is_dir() and match.name in _CIFAR10_FOLDERS:
        yield "cifar10", match
        return
    files = _files_in(match)
    for file in files:
        plain = file.name.removesuffix(".gz") if file.name not in _NAMES else file.name
        yield _NAMES.get(file.name) or _SUFFIXES.get(Path(plain).suffix.lower()), file
    if not files and any(_SUFFIXES.get(file.suffix.lower()) == "images" for file in _files_below(match)):
        yield "images", match


def _files_in(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(f for f in path.iterdir() if f.is_file() and not _is_hidden(f.name))


def _files_below(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    # Follows links, as people keep large folders elsewhere; a circle of links ends at the system's limit.
    for folder, folders, names in os.walk(path, onerror=_refuse_unreadable, followlinks=True):
        folders[:] = sorted(name for name in folders if not _is_hidden(name))
        yield from (Path(folder, name) for name in sorted(names) if not _is_hidden(name))


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _refuse_unreadable(error: OSError) -> None:
    raise DataError(f"{error.filename} cannot be read: {error.strerror}.", "Mend its permissions.") from error


def _cifar10_files(matches: Sequence[Path], files: tuple[Path, ...]) -> tuple[Path, ...]:
    """Returns the one archive, or the batches and the class names of the one folder."""
    if len(matches) > 1:
        raise DataError(
            f"data.path matches {len(matches)} files and folders, expected one CIFAR-10 archive or folder.",
            "Narrow data.path.",
        )
    if len(files) == 1:
        return files
    present = {file.name: file for file in files}
    suffix, meta = ("", CIFAR10_PYTHON) if CIFAR10_PYTHON in present else (".bin", CIFAR10_BINARY)
    wanted = [f"{batch}{suffix}" for batch in CIFAR10_BATCHES] + [meta]
    if missing := [name for name in wanted if name not in present]:
        raise DataError(
            f"{matches[0]} lacks {', '.join(missing)}, expected {', '.join(wanted)}, as in CIFAR-10; "
            f"it holds {', '.join(present)}.",
            "Unpack the archive again, or let data.path name the archive itself.",
        )
    return tuple(present[name] for name in wanted)
