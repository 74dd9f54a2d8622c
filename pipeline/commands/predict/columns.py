"""The columns that a model's signature takes, and the conversion of cells and JSON values to them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contracts.errors import BadRowError, DataError
from contracts.near_names import did_you_mean

# The values that mean "missing" in the exported signature (components/trainer/tensors.py).
MISSING: dict[str, float | str | int] = {"float32": float("nan"), "string": "", "int64": -(2**63)}
KINDS = {"f": "a number", "i": "a whole number", "u": "a whole number", "b": "true or false", "s": "text"}
BITS = re.compile(r"(u?)int(\d+)")
TRUTHS = {"true": True, "false": False, "1": True, "0": False}
B64 = "b64"


@dataclass(frozen=True)
class Column:
    """One input of a signature.

    Attributes:
        name: The input's name.
        dtype: NumPy's name of its type, or `string`.
        shape: The shape of a row's value: `()` for one value, `(None,)` for any number of values.
        required: Whether a row without a value is refused.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...] = ()
    required: bool = False

    @property
    def missing(self) -> float | str | int | None:
        """The value that means "missing"; None if a value is required."""
        return None if self.required else MISSING.get(self.dtype)

    def from_cell(self, cell: str) -> Any:
        """Converts a CSV cell; numbers are what Python's `int` and `float` accept, as in training.

        Raises:
            ValueError: The cell does not fit; the message is what was expected.
        """
        if cell == "":
            return [] if self.shape else self._absent()
        value = self._parse(cell)
        return [value] if self.shape else value

    def from_json(self, value: Any) -> Any:
        """Converts a JSON value; null is a missing value.

        Raises:
            ValueError: The value does not fit; the message is what was expected.
        """
        if value is None:
            return [] if self.shape else self._absent()
        if self.shape:
            if not isinstance(value, list):
                raise ValueError("a list")
            return [self._nested(entry, len(self.shape) - 1) for entry in value]
        return self._checked(value)

    def _nested(self, value: Any, depth: int) -> Any:
        if depth and isinstance(value, list):
            return [self._nested(entry, depth - 1) for entry in value]
        return self._checked(value)

    def _absent(self) -> Any:
        if self.missing is None:
            raise ValueError(f"{self._kind()}: it is required")
        return self.missing

    def _kind(self) -> str:
        return KINDS[self.dtype[0]]

    def _parse(self, cell: str) -> Any:
        kind = self.dtype[0]
        try:
            if kind == "s":
                return cell
            value = TRUTHS[cell.lower()] if kind == "b" else float(cell) if kind == "f" else int(cell)
        except (KeyError, ValueError):
            raise ValueError(self._kind()) from None
        return self._checked(value)

    def _checked(self, value: Any) -> Any:
        kind = self.dtype[0]
        if kind == "s":
            return _text(value)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if kind == "f" and number:
            if value != value and self.required:
                return self._absent()
            return float(value)
        if kind == "b" and isinstance(value, bool):
            return value
        if kind in "iu" and number and isinstance(value, int):
            return self._in_range(value)
        raise ValueError(self._kind())

    def _in_range(self, value: int) -> int:
        match = BITS.fullmatch(self.dtype)
        unsigned, bits = (bool(match[1]), int(match[2])) if match else (False, 64)
        low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if not low <= value <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return value


def place(columns: Sequence[Column], names: Iterable[str], ignored: Iterable[str], where: str) -> dict[str, Column]:
    """Matches the names in a file to the signature's columns.

    Args:
        columns: The signature's columns.
        names: The names in the file.
        ignored: Known names that the signature does not take.
        where: File and line, for errors.

    Returns:
        The columns by the file's names, without ignored ones.

    Raises:
        DataError: A column is missing, given twice, or unknown.
    """
    names_in_file = list(names)
    by_name = {column.name: column for column in columns}
    placed = {
        name: by_name[_input_name(name, by_name)] for name in names_in_file if _input_name(name, by_name) in by_name
    }
    taken = [column.name for column in placed.values()]
    for name in names_in_file:
        if name not in placed and name not in set(ignored):
            free = [column.name for column in columns if column.name not in taken]
            hint = did_you_mean(name, free or by_name, otherwise=f"The model takes {', '.join(by_name)}.")
            raise DataError(f"{where}: no such column: {name!r}. {hint}", f"Or leave it out: --ignore {name}")
        if names_in_file.count(name) > 1 or (name in placed and taken.count(placed[name].name) > 1):
            raise DataError(f"{where}: the column {name!r} is there twice, expected it once.")
    if missing := [column.name for column in columns if column.name not in taken]:
        raise DataError(
            f"{where}: lacks {', '.join(missing)}.",
            "Add the columns; a value that is missing is an empty cell or null.",
        )
    return placed


def bad_value(where: str, name: str, value: Any, expected: ValueError) -> BadRowError:
    """The error for a value that does not fit its column."""
    return BadRowError(f"{where}, column {name}: received {value!r}, expected {expected}.")


def tensors(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows as the signature's inputs; lists of different lengths are padded with the value that means "missing"."""
    inputs = {}
    for column in columns:
        values = [row[column.name] for row in rows]
        if column.shape == (None,):
            width = max(map(len, values))
            values = [[*value, *[column.missing] * (width - len(value))] for value in values]
        inputs[column.name] = values
    return inputs


def _input_name(name: str, inputs: Mapping[str, Column]) -> str:
    if name in inputs:
        return name
    # The export renames features whose names a signature cannot have.
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return plain if plain[:1].isalpha() and plain in inputs else f"feature_{plain}"


def _text(value: Any) -> str | bytes:
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and set(value) == {B64} and isinstance(value[B64], str):
        try:
            return base64.b64decode(value[B64], validate=True)
        except binascii.Error:
            raise ValueError("base64") from None
    raise ValueError("text")
