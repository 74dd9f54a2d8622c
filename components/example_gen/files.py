"""Which files a recipe's `data.path` matches, and which split each belongs to where `data.splits` holds patterns.

Kept fast: it imports neither TensorFlow, Beam nor TFX.
"""

from __future__ import annotations

import datetime
import fnmatch
import glob
import importlib.util
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from components.example_gen.formats import CIFAR10_BATCHES, choose_format, list_files
from components.example_gen.reading import ReadingSettings
from components.example_gen.settings import DataSettings
from contracts.errors import DataError, SettingsError

_SHOWN = 5
SCHEME = "://"
"""What marks a place elsewhere, such as s3://bucket/trips.csv."""


def match_splits(names: Sequence[str], patterns: Mapping[str, str]) -> dict[str, str]:
    """Assigns every file to its split.

    Args:
        names: Paths of files below the data folder, or names of CIFAR-10 batches.
        patterns: Split name -> pattern, matched against the whole name; `*` matches `/` too.

    Returns:
        Name -> split name.

    Raises:
        DataError: A name matches no pattern or several, or a pattern matches no name.
    """
    splits: dict[str, str] = {}
    unmatched: list[str] = []
    # Not fnmatch.fnmatchcase, which looks its pattern up in a cache for every name.
    tests = {split: re.compile(fnmatch.translate(pattern)).match for split, pattern in patterns.items()}
    for name in names:
        chosen = [split for split, matches in tests.items() if matches(name)]
        if len(chosen) > 1:
            matched = " and ".join(f"{split} ({patterns[split]!r})" for split in chosen)
            raise DataError(
                f"data.splits: {name} matches the patterns of {matched}, expected those of only one split.",
                "Narrow the patterns.",
            )
        if chosen:
            splits[name] = chosen[0]
        else:
            unmatched.append(name)
    listed = ", ".join(f"{split}: {pattern!r}" for split, pattern in patterns.items())
    if idle := [split for split in patterns if split not in splits.values()]:
        raise DataError(
            f"data.splits: the pattern {patterns[idle[0]]!r} of split {idle[0]!r} matches no file, expected at least "
            f"one of {list_names(names)}.",
            "Correct the pattern; it is matched against the whole of such a name, and `*` stands for any text.",
        )
    if unmatched:
        raise DataError(
            f"data.splits: {list_names(unmatched)} matches none of the patterns {listed}.",
            "Widen a pattern, or narrow data.path, so that every file belongs to one split.",
        )
    return splits


def list_names(names: Sequence[str]) -> str:
    """Returns the first few names and how many more there are, for a message."""
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


_EPOCH = datetime.date(1970, 1, 1)
_DATE_PARTS = {"{YYYY}": r"(?P<year>\d{4})", "{MM}": r"(?P<month>\d{2})", "{DD}": r"(?P<day>\d{2})"}
_SPAN = re.compile(r"\{SPAN(?::0?(\d+))?\}")
_PACKAGE = "package:"


@dataclass(frozen=True)
class InputFiles:
    """The files of one run.

    Attributes:
        span: The span that they belong to (days since 1970-01-01 for dates); None if the path has no placeholder.
        files: At least one, in a fixed order.
        format: One of the values of `data.format` besides `auto`.
        reading: How the recipe says to read them.
        root: The data folder: `data.path`, or the last folder in it before a file or a wildcard; None means the folder
            of each file.
        splits: Name of a file (see `name_of`) or CIFAR-10 batch -> its split, where `data.splits` holds patterns; else
            empty.
    """

    span: int | None
    files: tuple[Path, ...]
    format: str
    reading: ReadingSettings = field(default_factory=ReadingSettings)
    root: Path | None = None
    splits: Mapping[str, str] = field(default_factory=dict)

    def name_of(self, file: Path | str) -> str:
        """Returns a file's path below the data folder, separated by `/`."""
        return os.path.basename(file) if self.root is None else os.path.relpath(file, self.root).replace(os.sep, "/")


def resolve(settings: DataSettings, base_dir: str | Path) -> InputFiles:
    """Finds the input files.

    Args:
        settings: Give the path, format and span.
        base_dir: The folder that a relative path starts from.

    Raises:
        SettingsError: The path names a bucket, or a package that is not installed, or the format cannot be determined.
        DataError: There is no such file or span, or the patterns in `data.splits` do not assign every file to one
            split.
    """
    if SCHEME in settings.path:
        raise SettingsError(
            f"data.path is {settings.path}, expected files of this machine: raw data are not read from buckets.",
            "Mount the bucket, or copy what is wanted: aws s3 cp --recursive, gcloud storage cp --recursive.",
        )
    pattern = _absolute(settings.path, Path(base_dir))
    span = None
    if "{" in settings.path:
        span, matches = _match_span(pattern, settings.span)
    else:
        # A name that exists is that file's, though it may have brackets, as browsers give to second downloads.
        matches = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern, recursive=True))
    paths = [Path(match) for match in matches]
    format_ = choose_format(settings.format, paths)
    files = list_files(format_, paths) if format_ else ()
    if not format_ or not files:
        raise _nothing_at(pattern)
    if format_ != "images":
        _check_readable(files)
    inputs = InputFiles(span, files, format_, settings, _root(pattern, paths))
    if not settings.patterns:
        return inputs
    names = CIFAR10_BATCHES if format_ == "cifar10" else [inputs.name_of(file) for file in files]
    return replace(inputs, splits=match_splits(names, settings.patterns))


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


def _root(pattern: str, matches: Iterable[Path]) -> Path:
    parts = Path(pattern).parts
    wild = (depth for depth, part in enumerate(parts) if glob.has_magic(part) and not os.path.exists(pattern))
    fixed = next(wild, len(parts))
    roots = [Path(*match.parts[:fixed]) for match in matches]
    return Path(os.path.commonpath([root if root.is_dir() else root.parent for root in roots]))


def _match_span(pattern: str, requested: int | None) -> tuple[int, list[str]]:
    """Returns the requested span, or else the newest, and the paths that belong to it."""
    regex, wild = re.escape(pattern), pattern
    # re.escape has escaped the braces too; the path may hold glob's wildcards besides placeholders.
    regex = regex.replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
    for part, group in _DATE_PARTS.items():
        regex, wild = regex.replace(re.escape(part), group), wild.replace(part, "*")
    if placeholder := _SPAN.search(pattern):
        digits = rf"\d{{{int(placeholder[1])}}}" if placeholder[1] else r"\d+"
        regex, wild = regex.replace(re.escape(placeholder[0]), f"(?P<span>{digits})"), wild.replace(placeholder[0], "*")
    spans: dict[int, list[str]] = {}
    for path in sorted(glob.glob(wild, recursive=True)):
        if (match := re.fullmatch(regex, path)) and (span := _span_number(match)) is not None:
            spans.setdefault(span, []).append(path)
    if not spans:
        raise _nothing_at(pattern)
    chosen = max(spans) if requested is None else requested
    if chosen not in spans:
        raise DataError(
            f"data.span is {requested}, but {pattern} has only the spans {', '.join(map(str, sorted(spans)))}.",
            "Choose one of these, or leave data.span out to read the newest.",
        )
    return chosen, spans[chosen]


def _span_number(match: re.Match[str]) -> int | None:
    parts = match.groupdict()
    if "span" in parts:
        return int(parts["span"])
    try:
        date = datetime.date(int(parts["year"]), int(parts["month"]), int(parts["day"]))
    except ValueError:  # 2024-13-45 is not a date, so the path is not a delivery.
        return None
    return (date - _EPOCH).days


def _check_readable(files: Sequence[Path]) -> None:
    for file in files:
        if not file.exists():
            raise DataError(
                f"{file} is a link to {os.readlink(file)}, which does not exist.", "Mend or remove the link."
            )
        if not os.access(file, os.R_OK):
            raise DataError(f"{file} may not be read by this user.", f"Mend its permissions: chmod u+r {file}.")


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
