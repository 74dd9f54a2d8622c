"""What a column holds, inferred from its cells, and what shall become of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from components.example_gen.formats import FORMATS
from pipeline.commands.new.images import ImageCell
from pipeline.commands.new.table import Cells, is_number

NA_TOKENS = frozenset({"na", "n/a", "#n/a", "null", "none", "nil", "nan", "?", "-", "--", ".", "missing", "unknown"})
"""What people write for a missing value, in lower case."""

DATE_FORMATS = (
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%m/%d/%Y",
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y %H:%M:%S",
    "%d/%m/%Y",
    "%d/%m/%Y %H:%M",
    "%d/%m/%Y %H:%M:%S",
    "%Y/%m/%d",
    "%Y/%m/%d %H:%M:%S",
    "%d-%b-%Y",
    "%d %b %Y",
    "%b %d, %Y",
)
MAX_CATEGORIES = 200
"""A column of more different words is hashed."""

WORDS_OF_A_TEXT = 4
"""A column whose cells have more words than this, in the mean, is text."""

IMAGE_SUFFIXES = FORMATS["images"].suffixes
MIN_ROWS_FOR_AN_ID = 20
LEAST_SHARE = 0.005
"""A column with values in a smaller share of the rows than this may have none in a split, and teaches nothing."""

_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?.*)?")
_ZEROS_FIRST = re.compile(r"-?0\d+")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+")
_ID_NAME = re.compile(r"(^|[_\s.-])(id|uuid|guid|key|index|rowid)$|[a-z]I[dD]$", re.IGNORECASE)

Use = Literal["number", "date", "category", "hash", "text", "image", "left out"]


@dataclass(frozen=True)
class Found:
    """A column.

    Attributes:
        name: Its name.
        use: What features are made of it.
        holds: What it holds, in words.
        why: Why it is left out, or read as it is; empty if that is plain.
        distinct: How many different values it has.
        missing: How many rows have none.
        type: What `data.columns` must say, such as `text` or `date %d.%m.%Y`; None if ingest sees it by itself.
        na_values: What stands for a missing value in it.
        thousands: What groups the digits of its numbers.
        decimal: What stands before their decimals.
        repeats: Whether it is an id that several rows share.
        size: Height, width and channels that the model sees of an image; None of anything else.
    """

    name: str
    use: Use
    holds: str
    why: str = ""
    distinct: int = 0
    missing: int = 0
    type: str | None = None
    na_values: tuple[str, ...] = ()
    thousands: str | None = None
    decimal: str | None = None
    repeats: bool = False
    size: tuple[int, int, int] | None = None


def look_at(name: str, cells: Cells, decimal_comma: bool = False) -> Found:
    """What a column holds.

    Args:
        name: The column's.
        cells: All of them.
        decimal_comma: Whether numbers are written as in 1.234,5.
    """
    present = [cell for cell in cells if cell is not None]
    missing = len(cells) - len(present)
    if any(isinstance(cell, ImageCell) for cell in present):
        return Found(name, "image", "images", distinct=len(set(present)), missing=missing)
    if any(isinstance(cell, list) for cell in present):
        return Found(name, "left out", "lists", "features of lists are written by hand", missing=missing)
    tokens = _na_tokens(present, decimal_comma)
    kept = [cell for cell in present if cell not in tokens]
    distinct, missing = len(set(kept)), missing + len(present) - len(kept)
    found = Found(name, "left out", "nothing", "no row has a value", distinct, missing, na_values=tuple(tokens))
    if distinct == 1 and not missing:
        return replace(found, holds="one value", why=f"every row has {kept[0]!r}")
    if kept and len(kept) < LEAST_SHARE * len(cells):
        return replace(found, holds="hardly anything", why=f"{len(kept)} of {len(cells):,} rows have a value")
    if any(isinstance(cell, str) for cell in kept):
        return _text_column(found, [str(cell).strip() for cell in kept], decimal_comma)
    return _number_column(found, kept) if kept else found


def _na_tokens(present: Sequence[object], decimal_comma: bool) -> list[str]:
    """The texts in a column that stand for a missing value, most frequent first.

    A word such as `unknown` in a column of words is a word like any other; `NA` is not.
    """
    texts = Counter(cell for cell in present if isinstance(cell, str))
    tokens = [text for text, _ in texts.most_common() if text.strip().lower() in NA_TOKENS or not text.strip()]
    others = [text for text in texts if text not in tokens]
    if others and not all(is_number(text) or _number_marks(text, decimal_comma) for text in others):
        tokens = [text for text in tokens if text.strip().lower() in ("na", "n/a", "#n/a", "null", "nan", "?", "")]
    return tokens


def has_decimal_commas(columns: Iterable[Cells]) -> bool:
    """Whether numbers are written as in 1.234,5: then 0,906 is less than one in all columns, not 906.

    Args:
        columns: The cells of each.
    """
    return any(_shows_decimal_commas({cell.strip() for cell in cells if isinstance(cell, str)}) for cells in columns)


def _shows_decimal_commas(texts: set[str]) -> bool:
    others = {text for text in texts if text.lower() not in NA_TOKENS and not is_number(text)}
    numbers = all(_THOUSANDS.fullmatch(text) or _DECIMAL_COMMA.fullmatch(text) for text in others)
    return numbers and any(not _THOUSANDS.fullmatch(text) for text in others)


def _number_marks(text: str, decimal_comma: bool) -> tuple[str | None, str | None] | None:
    """What groups the digits of a number in text, and what stands before its decimals; None if it is no number."""
    if is_number(text):
        return None, None
    if decimal_comma and _DECIMAL_COMMA.fullmatch(text):
        return ("." if "." in text else None), ","
    if not decimal_comma and _THOUSANDS.fullmatch(text):
        return ",", None
    return None


def _text_column(found: Found, texts: list[str], decimal_comma: bool) -> Found:
    if any(_ZEROS_FIRST.fullmatch(text) for text in texts) and all(text.lstrip("-").isdecimal() for text in texts):
        return _words(replace(found, type="text"), texts, "digits with zeros first")
    marks = [mark for text in texts if (mark := _number_marks(text, decimal_comma))]
    if len(marks) == len(texts):
        thousands = next((mark for mark, _ in marks if mark), None)
        decimal = next((mark for _, mark in marks if mark), None)
        plain = [text.replace(thousands or "", "").replace(decimal or ".", ".") for text in texts]
        return _number_column(replace(found, thousands=thousands, decimal=decimal), [_number(text) for text in plain])
    if all(_ISO_DATE.fullmatch(text) for text in texts):
        return replace(found, use="date", holds="dates", why=f"{min(texts)} to {max(texts)}")
    if format_ := next((known for known in DATE_FORMATS if _is_date(texts, known)), None):
        kind = "datetime" if "%H" in format_ else "date"
        return replace(found, use="date", holds="dates", why=f"written {format_}", type=f"{kind} {format_}")
    return _words(found, texts, "words")


def _number(text: str) -> int | float:
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)


def _is_date(texts: Sequence[str], format_: str) -> bool:
    for text in dict.fromkeys(texts):
        try:
            datetime.strptime(text, format_)
        except ValueError:
            return False
    return True


def _words(found: Found, texts: list[str], holds: str) -> Found:
    if all(text.lower().endswith(IMAGE_SUFFIXES) for text in texts):
        return replace(found, use="image", holds="images", why="paths of files", type="image")
    if sum(len(text.split()) for text in texts) > WORDS_OF_A_TEXT * len(texts):
        return replace(found, use="text", holds="text", why="a bag of words")
    if found.distinct == len(texts) >= MIN_ROWS_FOR_AN_ID:
        return replace(found, holds="ids", why="every row has another")
    if _ID_NAME.search(found.name) and found.distinct > MAX_CATEGORIES:
        return replace(found, holds="ids", why=f"{found.distinct:,} that repeat", repeats=True)
    use: Use = "category" if found.distinct <= MAX_CATEGORIES else "hash"
    return replace(found, use=use, holds=holds, why=f"{found.distinct:,} different")


def _number_column(found: Found, numbers: list[int | float]) -> Found:
    whole = all(isinstance(number, int) or float(number).is_integer() for number in numbers)
    is_named_id = _ID_NAME.search(found.name) is not None
    counts_rows = whole and found.distinct == len(numbers) == max(numbers) - min(numbers) + 1
    if whole and len(numbers) >= MIN_ROWS_FOR_AN_ID and (counts_rows or is_named_id):
        if found.distinct == len(numbers):
            return replace(found, holds="ids", why="every row has another")
        if found.distinct > len(numbers) // 100:
            return replace(found, holds="ids", why=f"{found.distinct:,} that repeat", repeats=True)
    holds = "flags" if set(numbers) <= {0, 1} else "whole numbers" if whole else "numbers"
    return replace(found, use="number", holds=holds, why=f"{min(numbers):g} to {max(numbers):g}")
