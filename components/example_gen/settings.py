"""What a recipe says about its raw data: where they are, how to read them and how to split them."""

from __future__ import annotations

import datetime
import re
from itertools import pairwise
from typing import Literal

from pydantic import Field, field_validator, model_validator

from components.example_gen.reading import ReadingSettings
from contracts.settings import Settings

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_KNOWN_PLACEHOLDER = re.compile(r"SPAN(:0?\d+)?|YYYY|MM|DD")
_SPLIT_NAME = re.compile(r"[A-Za-z0-9_-]+")


class TimeSplitSettings(Settings):
    """Which rows belong to which split, by a column that says when each was made.

    Attributes:
        column: Dates or times: declared as such in `data.columns`, text in ISO 8601, or whole numbers, which are
            seconds since 1970 where `starts` are dates, and else what `starts` are, such as years.
        starts: Split -> its first moment, such as 2024-06-01 or 2024-06-01T12:00:00 (UTC), or a number: for every split
            in `data.splits` but the first, which gets all earlier rows. The numbers in `data.splits` do not count.
    """

    column: str
    starts: dict[str, int | float | str]

    @field_validator("starts", mode="before")
    @classmethod
    def _check_starts(cls, starts: object) -> object:
        if not isinstance(starts, dict) or not starts:
            raise ValueError(
                f"received {starts!r}, expected the first moment of each later split: {{eval: 2024-06-01}}"
            )
        # YAML reads 2024-06-01 as a date.
        plain = {name: at.isoformat() if isinstance(at, datetime.date) else at for name, at in starts.items()}
        moments = [_moment(start) for start in plain.values()]
        if len({isinstance(start, str) for start in plain.values()}) > 1:
            raise ValueError(f"received {plain}, expected dates for all splits or numbers for all")
        if any(later <= earlier for earlier, later in pairwise(moments)):
            raise ValueError(f"received {plain}, expected each split to start after the one before it")
        return plain

    @property
    def moments(self) -> list[float]:
        """When the splits after the first start, in their order: seconds since 1970 where they are dates."""
        return [_moment(start) for start in self.starts.values()]


def _moment(start: object) -> float:
    if isinstance(start, int | float) and not isinstance(start, bool):
        return float(start)
    try:
        moment = datetime.datetime.fromisoformat(str(start))
    except ValueError as error:
        raise ValueError(
            f"received {start!r}, expected a date such as 2024-06-01 or 2024-06-01T12:00:00, or a number"
        ) from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.timezone.utc)).timestamp()


class DataSettings(ReadingSettings):
    """The `data` section of a recipe; those of its settings that say how to read are in `ReadingSettings`.

    Attributes:
        path: A file, a folder or a glob, relative to the recipe's base folder. `{SPAN}` (`{SPAN:04}` for a fixed width)
            or `{YYYY}`, `{MM}` and `{DD}` stand for the span or the date of one delivery. `package:tfx/some/data.csv`
            names a file inside an installed Python package.
        format: The file format; `auto` reads it from the suffix (`.csv`, `.tsv`, `.parquet`, `.jsonl`, `.tfrecord`,
            `.py`; `.gz` may follow that of CSV, JSON lines and TFRecord) or the names below.

            - `tfrecord`: serialized `tf.train.Example`s.
            - `text`: each line is a row with the one column `text`.
            - `python`: a module whose function `rows()` yields one dict a row, as a line of JSON lines would hold.
            - `images`: a folder with one sub-folder of PNG, JPEG, GIF or BMP files for each class, or with such
                folders one level down where `splits` holds patterns (`train/cats/1.png`). Files and folders whose names
                begin with `.` or `_` are ignored. `auto` recognises a folder that holds images only in sub-folders.
            - `cifar10`: `cifar-10-binary.tar.gz` or `cifar-10-python.tar.gz`, or the folder unpacked from one
                (`cifar-10-batches-bin`, `cifar-10-batches-py`).
            - `digits`: scikit-learn's `package:sklearn/datasets/data/digits.csv.gz`.

            These three give the columns `image` (an encoded image: the file's bytes, or a PNG), `label` (the class's
            number from 0: in the order of the folders' names, as CIFAR-10 numbers it, or the digit), `class` (its name)
            and `name` (the file's path below the data folder, or batch or file and row from 1: `data_batch_1:17`).
        splits: Split name -> number of hash buckets; `{"train": 2, "eval": 1}` puts two thirds into `train`. Or, for
            all splits, split name -> pattern: `{"train": "train/*", "eval": "test/*"}` puts whole files into a split,
            each into exactly one. A pattern is matched, respecting case, against a file's path below the data folder
            (`data.path`, or the last folder in it before a wildcard), or a CIFAR-10 batch's name without suffix
            (`data_batch_1`, `test_batch`); `*` stands for any text, including `/`, `?` for one character, `[ab]` for
            one of several.
        split_by: None hashes the whole row; a column's name hashes its value, so that equal values share a split. Works
            only with hash buckets.
        split_by_time: None leaves time out of it; else older rows go to the first split, newer ones to the later ones.
            A row without a moment is malformed.
        on_bad_row: `fail` stops at the first malformed row; `set_aside` collects them in the RejectedRows artifact.
        on_missing_label: What becomes of a row without a value in the raw column that the label is named after: `fail`
            ends the run, with their number and the first; `set_aside` collects them in RejectedRows; `keep` lets
            features.py decide. A label that features.py makes from other columns is not concerned.
        on_overflow: What becomes of a number too large for the 32 bits in which floats are kept, such as 1e39: `fail`
            ends the run; `clip` makes it the largest that fits; `set_aside` sets its row aside; `keep` makes it
            infinite.
        span: The span to read; None takes the newest. For dates: days since 1970-01-01.
    """

    path: str
    format: Literal["auto", "csv", "parquet", "jsonl", "tfrecord", "text", "python", "images", "cifar10", "digits"] = (
        "auto"
    )
    splits: dict[str, int | str] = Field(default={"train": 2, "eval": 1})
    split_by: str | None = None
    split_by_time: TimeSplitSettings | None = None
    on_bad_row: Literal["fail", "set_aside"] = "fail"
    on_missing_label: Literal["fail", "set_aside", "keep"] = "fail"
    on_overflow: Literal["fail", "clip", "set_aside", "keep"] = "fail"
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

    @property
    def buckets(self) -> dict[str, int]:
        """Split name -> number of hash buckets; empty where the splits are patterns."""
        return {name: rule for name, rule in self.splits.items() if isinstance(rule, int)}

    @property
    def patterns(self) -> dict[str, str]:
        """Split name -> pattern; empty where the splits are hash buckets."""
        return {name: rule for name, rule in self.splits.items() if isinstance(rule, str)}

    @field_validator("splits", mode="before")
    @classmethod
    def _check_split_types(cls, splits: object) -> object:
        # Before pydantic, which would report the wrong value once for each of the two types.
        for name, rule in splits.items() if isinstance(splits, dict) else ():
            if isinstance(rule, bool) or not isinstance(rule, int | str):
                raise ValueError(
                    f"received {rule!r} for split {name!r}, expected a whole number of hash buckets or a pattern"
                )
        return splits

    @field_validator("splits")
    @classmethod
    def _check_splits(cls, splits: dict[str, int | str]) -> dict[str, int | str]:
        if not splits:
            raise ValueError("received no splits, expected at least one, such as {train: 2, eval: 1}")
        if len({type(rule) for rule in splits.values()}) > 1:
            raise ValueError(f"received {splits}, expected hash buckets for every split or a pattern for every split")
        for name, rule in splits.items():
            if not _SPLIT_NAME.fullmatch(name):
                raise ValueError(f"received the split name {name!r}, expected letters, digits, `_` and `-`")
            if isinstance(rule, int) and rule < 1:
                raise ValueError(f"received {rule} hash buckets for split {name!r}, expected 1 or more")
            if isinstance(rule, str) and not rule.strip():
                raise ValueError(f"received an empty pattern for split {name!r}, expected one such as 'train/*'")
        return splits

    @model_validator(mode="after")
    def _check_split_by(self) -> DataSettings:
        if self.split_by is not None and self.patterns:
            raise ValueError(
                f"received split_by {self.split_by!r} with the patterns {self.patterns}, expected either: "
                "patterns put whole files into a split, and leave nothing to divide by a column"
            )
        return self

    @model_validator(mode="after")
    def _check_split_by_time(self) -> DataSettings:
        by_time = self.split_by_time
        if by_time is None:
            return self
        if self.split_by is not None or self.patterns:
            other = "split_by" if self.split_by is not None else "patterns in splits"
            raise ValueError(f"received split_by_time with {other}, expected one of them: each row has one split")
        first, *later = self.splits
        if list(by_time.starts) != later:
            raise ValueError(
                f"received split_by_time.starts for {', '.join(by_time.starts)}, expected one for each split after "
                f"{first!r}, in the order of splits: {', '.join(later) or 'none'}"
            )
        return self
