"""What a recipe says about its raw data: where they are, how to read them, how to split them."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator

from components.settings import Settings

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_KNOWN_PLACEHOLDER = re.compile(r"SPAN(:0?\d+)?|YYYY|MM|DD")
_SPLIT_NAME = re.compile(r"[A-Za-z0-9_-]+")


class DataSettings(Settings):
    """The `data` section of a recipe.

    Attributes:
        path: A file, a folder or a glob, relative to the recipe's base folder. `{SPAN}` (`{SPAN:04}` for a fixed width)
            or `{YYYY}`, `{MM}` and `{DD}` stand for the span or the date of one delivery. `package:tfx/some/data.csv`
            names a file inside an installed Python package.
        format: The file format; `auto` reads it from the suffix (`.csv`, `.parquet`, `.jsonl`; `.gz` may follow).
        splits: Split name -> number of hash buckets; `{"train": 2, "eval": 1}` puts two thirds into `train`.
        split_by: None hashes the whole row; a column's name hashes its value, so that equal values share a split.
        on_bad_row: `fail` stops at the first malformed row; `set_aside` collects them in the RejectedRows artifact.
        delimiter: The character between two cells of a CSV row.
        span: The span to read; None takes the newest. For dates: days since 1970-01-01.
    """

    path: str
    format: Literal["auto", "csv", "parquet", "jsonl"] = "auto"
    splits: dict[str, int] = Field(default_factory=lambda: {"train": 2, "eval": 1})
    split_by: str | None = None
    on_bad_row: Literal["fail", "set_aside"] = "fail"
    delimiter: str = ","
    span: int | None = Field(default=None, ge=0)

    @field_validator("path")
    @classmethod
    def _check_path(cls, path: str) -> str:
        if not path.strip():
            raise ValueError("received an empty path, expected a file, a folder or a glob")
        names = _PLACEHOLDER.findall(path)
        for name in names:
            if not _KNOWN_PLACEHOLDER.fullmatch(name):
                raise ValueError(
                    f"received {{{name}}} in {path!r}, expected {{SPAN}}, {{SPAN:04}} or {{YYYY}}{{MM}}{{DD}}"
                )
        kinds = sorted(name.partition(":")[0] for name in names)
        if kinds not in ([], ["SPAN"], ["DD", "MM", "YYYY"]):
            raise ValueError(
                f"received {kinds} in {path!r}, expected {{SPAN}} once, or each of {{YYYY}}, {{MM}}, {{DD}} once"
            )
        return path

    @field_validator("splits")
    @classmethod
    def _check_splits(cls, splits: dict[str, int]) -> dict[str, int]:
        if not splits:
            raise ValueError("received no splits, expected at least one, such as {train: 2, eval: 1}")
        for name, buckets in splits.items():
            if not _SPLIT_NAME.fullmatch(name):
                raise ValueError(f"received the split name {name!r}, expected letters, digits, `_` and `-`")
            if buckets < 1:
                raise ValueError(f"received {buckets} hash buckets for split {name!r}, expected 1 or more")
        return splits

    @field_validator("delimiter")
    @classmethod
    def _check_delimiter(cls, delimiter: str) -> str:
        if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
            raise ValueError(f"received {delimiter!r}, expected one ASCII character that is no quote and no line break")
        return delimiter
