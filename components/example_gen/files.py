"""Which files a recipe's `data.path` means. Fast on purpose: imports neither TensorFlow, Beam nor TFX."""

from __future__ import annotations

import datetime
import glob
import hashlib
import importlib.util
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from components.errors import DataError, SettingsError
from components.example_gen.settings import DataSettings

_EPOCH = datetime.date(1970, 1, 1)
_SUFFIXES = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_DATE_PARTS = {"{YYYY}": r"(?P<year>\d{4})", "{MM}": r"(?P<month>\d{2})", "{DD}": r"(?P<day>\d{2})"}
_SPAN = re.compile(r"\{SPAN(?::0?(\d+))?\}")
_PACKAGE = "package:"


@dataclass(frozen=True)
class InputFiles:
    """The files of one run.

    Attributes:
        span: The span they belong to (days since 1970-01-01 for dates); None if the path has no placeholder.
        files: At least one, sorted.
        format: `csv`, `parquet` or `jsonl`.
        delimiter: Between two cells of a CSV row.
    """

    span: int | None
    files: tuple[Path, ...]
    format: str
    delimiter: str = ","


def resolve(settings: DataSettings, base_dir: str | Path) -> InputFiles:
    """Finds the input files.

    Args:
        settings: Which path, format and span.
        base_dir: What a relative path is relative to.

    Raises:
        SettingsError: The path names a package that is not installed, or the format cannot be told.
        DataError: There is no such file or span.
    """
    pattern = _absolute(settings.path, Path(base_dir))
    span = None
    if "{" in settings.path:
        span, matches = _of_span(pattern, settings.span)
    else:
        matches = sorted(glob.glob(pattern, recursive=True))
    files = tuple(file for match in matches for file in _files_under(Path(match)))
    if not files:
        raise _nothing_at(pattern)
    return InputFiles(span, files, _format(settings.format, files), settings.delimiter)


def columns(input_files: InputFiles) -> list[str]:
    """Returns the names of the columns, for a check against the schema before anything runs.

    CSV: the header of the first file. Parquet: its schema. JSON lines: the keys of its first 100 rows.

    Raises:
        DataError: The file is empty or cannot be read.
    """
    # These import pyarrow, which `resolve` alone does not need.
    from components.example_gen.sources import source_of

    return source_of(input_files.format, input_files.delimiter).peek_columns(str(input_files.files[0]))


def content_digest(file: str | Path, memo_path: str | Path | None = None) -> str:
    """Returns the SHA-256 of a file's contents in hexadecimals.

    Args:
        file: The file.
        memo_path: A JSON file that remembers digests by path, size, modification time and inode, so that a file that
            did not change costs one stat. It is made if need be. None remembers nothing.
    """
    path = Path(file).resolve()
    if memo_path is None:
        return _sha256(path)
    memo_file = Path(memo_path)
    stat = path.stat()
    key = f"{path}|{stat.st_size}|{stat.st_mtime_ns}|{stat.st_ino}"
    memo = _read_memo(memo_file)
    if key not in memo:
        stale = f"{path}|"
        memo = {other: digest for other, digest in memo.items() if not other.startswith(stale)}
        memo[key] = _sha256(path)
        memo_file.parent.mkdir(parents=True, exist_ok=True)
        partial = memo_file.with_name(f"{memo_file.name}.{os.getpid()}")
        partial.write_text(json.dumps(memo, indent=0))
        partial.replace(memo_file)
    return memo[key]


def _read_memo(memo_file: Path) -> dict[str, str]:
    try:
        memo = json.loads(memo_file.read_text())
    except (FileNotFoundError, ValueError):  # A memo that cannot be read is only slower.
        return {}
    return memo if isinstance(memo, dict) else {}


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _absolute(path: str, base_dir: Path) -> str:
    if not path.startswith(_PACKAGE):
        return str(base_dir / Path(path).expanduser())
    package, _, inside = path.removeprefix(_PACKAGE).partition("/")
    spec = importlib.util.find_spec(package) if package.isidentifier() else None  # Finds it without importing it.
    if spec is None or not spec.submodule_search_locations:
        raise SettingsError(
            f"data.path names the Python package {package!r}, which is not installed.",
            f"Install {package!r}, or give the path of a file.",
        )
    return str(Path(spec.submodule_search_locations[0]) / inside)


def _files_under(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(f for f in path.iterdir() if f.is_file() and not f.name.startswith((".", "_")))


def _of_span(pattern: str, wanted: int | None) -> tuple[int, list[str]]:
    """Returns the newest or the wanted span, and the paths that belong to it."""
    regex, wild = re.escape(pattern), pattern
    # re.escape leaves the braces escaped; glob's own wildcards may stand beside a placeholder.
    regex = regex.replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
    for part, group in _DATE_PARTS.items():
        regex, wild = regex.replace(re.escape(part), group), wild.replace(part, "*")
    if found := _SPAN.search(pattern):
        digits = rf"\d{{{int(found[1])}}}" if found[1] else r"\d+"
        regex, wild = regex.replace(re.escape(found[0]), f"(?P<span>{digits})"), wild.replace(found[0], "*")
    spans: dict[int, list[str]] = {}
    for path in sorted(glob.glob(wild, recursive=True)):
        if (match := re.fullmatch(regex, path)) and (span := _span_number(match)) is not None:
            spans.setdefault(span, []).append(path)
    if not spans:
        raise _nothing_at(pattern)
    chosen = max(spans) if wanted is None else wanted
    if chosen not in spans:
        raise DataError(
            f"data.span is {wanted}, but {pattern} has only the spans {', '.join(map(str, sorted(spans)))}.",
            "Choose one of these, or leave data.span out to read the newest.",
        )
    return chosen, spans[chosen]


def _span_number(match: re.Match[str]) -> int | None:
    parts = match.groupdict()
    if "span" in parts:
        return int(parts["span"])
    try:
        date = datetime.date(int(parts["year"]), int(parts["month"]), int(parts["day"]))
    except ValueError:  # 2024-13-45 is no date, hence none of ours.
        return None
    return (date - _EPOCH).days


def _format(wanted: str, files: tuple[Path, ...]) -> str:
    if wanted != "auto":
        return wanted
    formats = {_SUFFIXES.get(Path(f.name.removesuffix(".gz")).suffix.lower()): f for f in reversed(files)}
    if None in formats:
        raise SettingsError(
            f"The format of {formats[None]} cannot be told from its name, expected one of {', '.join(_SUFFIXES)} "
            "(CSV and JSON lines may end in .gz).",
            "Set data.format to csv, parquet or jsonl, or narrow data.path to the data files.",
        )
    if len(formats) > 1:
        raise SettingsError(
            "data.path matches files of several formats: " + ", ".join(f"{f} ({kind})" for kind, f in formats.items()),
            "Narrow data.path to the files of one format.",
        )
    return str(next(iter(formats)))


def _nothing_at(pattern: str) -> DataError:
    nearest = Path(pattern)
    while not nearest.exists():
        nearest = nearest.parent
    inside = sorted(p.name for p in nearest.iterdir())[:5] if nearest.is_dir() else []
    holds = f"holds {', '.join(inside)}" if inside else "is empty"
    return DataError(
        f"data.path matches no file: {pattern}\nThe nearest path that exists is {nearest}, which {holds}.",
        "Correct data.path in the recipe, or put the data there.",
    )
