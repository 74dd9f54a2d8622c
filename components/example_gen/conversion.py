"""From the text of cells to typed values, as the settings say: missing values, numbers' marks, declared types.

Every format uses it: CSV for all cells, the others where a column is declared, and for missing values.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from components.example_gen.encoding import Column, Offsets
from components.example_gen.kinds import Kind, fits_int64, infer_kind, to_values
from components.example_gen.reading import ColumnSettings, ColumnType, ReadingSettings

KIND_OF_TYPE: dict[ColumnType, Kind] = {
    "int": Kind.INT,
    "float": Kind.FLOAT,
    "text": Kind.BYTES,
    "bool": Kind.INT,
    "date": Kind.INT,
    "time": Kind.INT,
    "datetime": Kind.INT,
    "image": Kind.BYTES,
}
"""What the values of each type are stored as."""

_EXPECTED: dict[ColumnType, str] = {
    "int": "an integer of 64 bits",
    "float": "a number",
    "text": "text",
    "bool": "true or false",
    "date": "a date such as 2024-02-29",
    "time": "a time such as 12:30:15",
    "datetime": "a date and time such as 2024-02-29 12:30:15",
    "image": "the path of an image file",
}
BOOLEANS = dict.fromkeys(("true", "t", "yes", "y", "on", "1"), 1) | dict.fromkeys(
    ("false", "f", "no", "n", "off", "0"), 0
)
"""What a column of the type `bool` may hold, in small letters."""

_SAMPLE = 1_000
_SECONDS = 1_000_000  # microseconds
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


class Conversion:
    """How cells become values, by the settings.

    Args:
        reading: The settings.
    """

    def __init__(self, reading: ReadingSettings) -> None:
        self._declared = reading.columns
        self._thousands, self._decimal = reading.thousands, reading.decimal
        # Numbers, too, since some formats hold numbers that are no text: -999 equals -999.0.
        self.missing = frozenset(reading.na_values) | frozenset(_numbers(reading.na_values))

    def declared_kind(self, name: str) -> Kind | None:
        """What a declared column holds; None if its type is inferred."""
        return KIND_OF_TYPE[self._declared[name].type] if name in self._declared else None

    def with_declared(self, kinds: Mapping[str, Kind]) -> dict[str, Kind]:
        """The kinds of columns, those of declared ones as declared."""
        return {name: kind if (own := self.declared_kind(name)) is None else own for name, kind in kinds.items()}

    def without_missing(self, cells: pa.Array) -> pa.Array:
        """Replaces what stands for a missing value by null, in an array of text, bytes or numbers."""
        if not self.missing:
            return cells
        number = pa.types.is_integer(cells.type) or pa.types.is_floating(cells.type)
        tokens = [token for token in self.missing if isinstance(token, str) is not number]
        if pa.types.is_integer(cells.type):
            tokens = [int(token) for token in tokens if isinstance(token, float) and token.is_integer()]
        value_set = pa.array(tokens).cast(cells.type) if tokens else pa.array([], cells.type)
        return pc.if_else(pc.is_in(cells, value_set=value_set), pa.scalar(None, cells.type), cells)

    def infer(self, cells: pa.Array, kind: Kind) -> Kind:
        """Returns the kind of a column after one more batch of its cells; see `kinds.infer_kind`."""
        return infer_kind(self._plain_numbers(cells), kind)

    def column(self, name: str, kind: Kind, cells: pa.Array, offsets: Offsets | None = None) -> Column:
        """Converts the cells of a column.

        Args:
            name: The column's name.
            kind: What it holds.
            cells: (rows,) text, null where there is no value; or with `offsets` (values,) text without nulls.
            offsets: As in `encoding.Column`.
        """
        if offsets is None:
            offsets, cells = flattened(cells)
        if kind is Kind.EMPTY:
            return Column(name, kind, None, offsets)
        declared = self._declared.get(name)
        if declared is not None and declared.type not in ("int", "float", "text", "image"):
            moments = None if declared.format or declared.type in ("bool", "time") else _moments(cells)
            if moments is not None:
                return Column(name, kind, moments, offsets)
            return self._by_unique(name, cells, offsets, declared)
        numbers = cells if kind is Kind.BYTES else self._plain_numbers(cells)
        if declared is not None and infer_kind(numbers, Kind.EMPTY) > kind:
            return self._by_unique(name, cells, offsets, declared)
        values = to_values(numbers, kind)
        padded = _padded(cells) if declared is None and kind is Kind.INT else {}
        return Column(name, kind, values, offsets, too_large=beyond_float32(values, cells), padded=padded)

    def _by_unique(self, name: str, cells: pa.Array, offsets: Offsets, declared: ColumnSettings) -> Column:
        """Converts a declared column by converting every different cell once; what does not read becomes `wrong`."""
        encoded = cells.dictionary_encode()
        texts = encoded.dictionary.to_pylist()
        plain = self._plain_numbers(encoded.dictionary).to_pylist()
        parse = _parser(declared)
        parsed = [parse(text) for text in (plain if declared.type in ("int", "float") else texts)]
        kind = KIND_OF_TYPE[declared.type]
        type_ = pa.int64() if kind is Kind.INT else pa.float64()
        values = pa.array([value or 0 for value in parsed], type_).take(encoded.indices)
        values = values.cast(pa.float32()) if kind is Kind.FLOAT else values
        codes = encoded.indices.to_numpy()
        unread = np.flatnonzero(np.array([value is None for value in parsed], bool)[codes])
        form = f" written as {declared.format}" if declared.format else ""
        wrong = {
            int(at): f"found {texts[codes[at]]!r}, expected {_EXPECTED[declared.type]}{form} as in data.columns"
            for at in unread
        }
        return Column(name, kind, values, offsets, wrong, beyond_float32(values, cells))

    def _plain_numbers(self, cells: pa.Array) -> pa.Array:
        """Replaces the marks in numbers by those that everyone reads."""
        if self._thousands is None and self._decimal == ".":
            return cells
        groups = f"(?:[{_escaped(self._thousands)}][0-9]{{3}})*" if self._thousands else ""
        marked = rf"^\s*[+-]?[0-9]+{groups}(?:[{self._decimal}][0-9]*)?(?:[eE][+-]?[0-9]+)?\s*$"
        plain = cells if self._thousands is None else pc.replace_substring(cells, self._thousands, "")
        plain = pc.replace_substring(plain, self._decimal, ".")
        # 1.5 is no number where the decimals stand after a comma, and must not be taken for one.
        other = pc.match_substring(cells, ".") if self._decimal == "," else pa.scalar(False)
        unread = pc.if_else(other, pa.scalar("?"), cells)
        return pc.if_else(pc.match_substring_regex(cells, marked), plain, unread)


def flattened(cells: pa.Array) -> tuple[Offsets, pa.Array]:
    """Returns (rows + 1,) offsets, as in `encoding.Column`, and the cells that are not null."""
    if not cells.null_count:
        return np.arange(len(cells) + 1, dtype=np.int64), cells
    present = cells.is_valid().to_numpy(zero_copy_only=False)
    return np.concatenate(([0], np.cumsum(present, dtype=np.int64))), cells.drop_null()


def beyond_float32(values: pa.Array, written: pa.Array) -> dict[int, str]:
    """Returns the positions of the numbers that became infinite as float32, and how they were written.

    Args:
        values: The converted values.
        written: The same as text, or as float64; infinity that is written as such is not concerned.
    """
    if values.type != pa.float32():
        return {}
    infinite = np.flatnonzero(np.isinf(values.to_numpy(zero_copy_only=False)))
    texts = {int(at): str(written[int(at)].as_py()) for at in infinite}
    return {at: text for at, text in texts.items() if any(character.isdigit() for character in text)}


def _padded(cells: pa.Array) -> dict[int, str]:
    """Returns the first integer with leading zeros among the first cells: all would cost more than they tell."""
    zeros = pc.match_substring_regex(cells[:_SAMPLE], "^0[0-9]")
    first = pc.index(zeros, pa.scalar(True)).as_py()
    return {first: cells[first].as_py()} if first >= 0 else {}


def _numbers(tokens: list[str]) -> list[float]:
    numbers = []
    for token in tokens:
        try:
            numbers.append(float(token))
        except ValueError:
            continue
    return numbers


def _escaped(character: str | None) -> str:
    return f"\\{character}" if character and not character.isalnum() and not character.isspace() else character or ""


def _parser(declared: ColumnSettings) -> Callable[[str], int | float | None]:
    """Returns the function that reads a cell, and returns None where it cannot."""
    if declared.type == "bool":
        return lambda text: BOOLEANS.get(text.strip().lower())
    read: dict[ColumnType, Callable[[str], int | float]] = {
        "int": _integer,
        "float": float,
        "date": _seconds,
        "datetime": _seconds,
        "time": _seconds_of_day,
    }
    parse = read[declared.type]
    if declared.format is not None:
        parse = _formatted(declared.format, declared.type)

    def parse_or_none(text: str) -> int | float | None:
        try:
            return parse(text)
        except (ValueError, OverflowError):
            return None

    return parse_or_none


def _integer(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        # Tables that had gaps are often written with 3.0 for 3.
        if not float(text).is_integer():
            raise
        value = int(float(text))
    if not fits_int64(value):
        raise OverflowError(text)
    return value


def _formatted(format_: str, type_: ColumnType) -> Callable[[str], int]:
    def parse(text: str) -> int:
        # Not arrow's strptime, which takes the 30th of February for the 1st of March.
        moment = datetime.datetime.strptime(text, format_)
        return _of_day(moment.time()) if type_ == "time" else _since_epoch(moment)

    return parse


def _moments(cells: pa.Array) -> pa.Array | None:
    """Returns dates and times in ISO 8601 as seconds, all at once; None if one of them is something else."""
    try:
        moments = cells.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        return None
    return pa.array(moments.cast(pa.int64()).to_numpy(zero_copy_only=False) // _SECONDS)


def iso_seconds(texts: pa.Array) -> npt.NDArray[np.float64]:
    """Returns dates and times in ISO 8601 as seconds since 1970-01-01 00:00 UTC, NaN for every other text.

    Args:
        texts: (values,) text without nulls.
    """
    moments = _moments(texts)
    if moments is not None:
        seconds: npt.NDArray[np.float64] = moments.to_numpy(zero_copy_only=False).astype(np.float64)
        return seconds
    encoded = texts.dictionary_encode()
    parse = _parser(ColumnSettings(type="datetime"))
    known = [parse(text) for text in encoded.dictionary.to_pylist()]
    by_text = np.array([np.nan if value is None else value for value in known], np.float64)
    each: npt.NDArray[np.float64] = by_text[encoded.indices.to_numpy()]
    return each


def _seconds(text: str) -> int:
    try:
        moment = pa.scalar(text).cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        moment = pa.scalar(text).cast(pa.timestamp("us", "UTC"))
    return int(moment.value // _SECONDS)


def _seconds_of_day(text: str) -> int:
    return _of_day(datetime.time.fromisoformat(text.strip()))


def _of_day(time: datetime.time) -> int:
    return time.hour * 3600 + time.minute * 60 + time.second


def _since_epoch(moment: datetime.datetime) -> int:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=datetime.timezone.utc)
    return (aware - _EPOCH) // datetime.timedelta(seconds=1)
