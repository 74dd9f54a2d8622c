"""What a recipe says about the form of its raw data: how text is divided into cells, and what the cells mean.

Imports nothing heavy, like `settings`, of which these are a part.
"""

from __future__ import annotations

import codecs
from collections import Counter
from typing import Literal, TypeAlias

from pydantic import Field, field_validator, model_validator

from contracts.settings import Settings

ColumnType: TypeAlias = Literal["int", "float", "text", "bool", "date", "time", "datetime", "image"]

_TIMES = ("date", "time", "datetime")


class ColumnSettings(Settings):
    """The type of a column: a name such as `float`, or `{type: date, format: "%d.%m.%Y"}`, in short `date %d.%m.%Y`.

    Attributes:
        type: `int`; `float`; `text`; `bool` becomes 1 and 0; `date` and `datetime` become the seconds since 1970-01-01
            00:00 UTC, int64; `time` the seconds since midnight. A time without a zone counts as UTC, and fractions of a
            second are dropped; `image` is the path of an image file (PNG, JPEG, GIF or BMP), relative to the folder of
            the table's file, and becomes that file's bytes.
        format: How dates and times are written, as for Python's strptime; by default as in ISO 8601 (`2024-02-29`,
            `12:30:15`, `2024-02-29 12:30`, `2024-02-29T12:30:15+02:00`).
    """

    type: ColumnType
    format: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        type_, _, format_ = value.partition(" ")
        return {"type": type_} | ({"format": format_} if format_ else {})

    @model_validator(mode="after")
    def _check_format(self) -> ColumnSettings:
        if self.format is not None and (self.type not in _TIMES or "%" not in self.format):
            raise ValueError(
                f"received the format {self.format!r} for {self.type}, expected one such as '%d.%m.%Y %H:%M', and only "
                "for date, time and datetime"
            )
        return self


class ReadingSettings(Settings):
    """The part of the `data` section that says how to read; docs/data.md has examples.

    Attributes:
        delimiter: What separates the cells of a CSV row; `tab` or `\\t` is a tab. By default a comma, and a tab in
            files that end in `.tsv` or `.tab`.
        encoding: The encoding of text files (CSV, JSON lines, text), one of Python's: `utf-8`, `utf-16`, `latin-1`,
            `cp1252`, `shift_jis`. A byte order mark of UTF-16 or UTF-32 is understood without this setting.
        header: Whether CSV files begin with a line of column names. Where they do not: `false` calls the columns
            `column_1`, `column_2`; or a list of names.
        columns: Column -> type. A value that does not read as its column's type makes its row malformed. The type of
            every other column is inferred from all its cells.
        na_values: What stands for a missing value, besides an empty cell: `[NA, "?", -999]`.
        thousands: What groups the digits of numbers in text, such as `,` in `1,234`.
        decimal: What stands before the decimals of numbers in text; `,` for `3,14`.
    """

    delimiter: str | None = None
    encoding: str = "utf-8"
    header: bool | list[str] = True
    columns: dict[str, ColumnSettings] = Field(default_factory=dict)
    na_values: list[str] = Field(default_factory=list)
    thousands: str | None = None
    decimal: Literal[".", ","] = "."

    @property
    def image_columns(self) -> list[str]:
        """The columns that hold paths of image files."""
        return [name for name, column in self.columns.items() if column.type == "image"]

    def delimiter_of(self, file: str) -> str:
        """What separates the cells of a CSV file."""
        if self.delimiter is not None:
            return self.delimiter
        return "\t" if file.lower().removesuffix(".gz").endswith((".tsv", ".tab")) else ","

    @field_validator("delimiter")
    @classmethod
    def _check_delimiter(cls, delimiter: str | None) -> str | None:
        if delimiter in ("\\t", "tab"):
            return "\t"
        if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0'):
            raise ValueError(
                f"received {delimiter!r}, expected one ASCII character other than a quote or line break, or 'tab'"
            )
        return delimiter

    @field_validator("encoding")
    @classmethod
    def _check_encoding(cls, encoding: str) -> str:
        try:
            codec = codecs.lookup(encoding)
        except LookupError as error:
            raise ValueError(
                f"received {encoding!r}, expected one of Python's encodings, such as utf-8, utf-16, latin-1 or cp1252"
            ) from error
        if not codec._is_text_encoding:
            raise ValueError(f"received {encoding!r}, which encodes no text, expected one such as utf-8 or latin-1")
        return encoding

    @field_validator("header", mode="before")
    @classmethod
    def _check_header(cls, header: object) -> object:
        # Before pydantic, which would report a wrong value once for each of the two types.
        if isinstance(header, list):
            if not header or not all(isinstance(name, str) and name for name in header):
                raise ValueError(f"received {header!r}, expected true, false or a list of column names")
            if double := [name for name, times in Counter(header).items() if times > 1]:
                raise ValueError(f"received {double[0]!r} more than once, expected a name of its own for every column")
        elif not isinstance(header, bool):
            raise ValueError(f"received {header!r}, expected true, false or a list of column names")
        return header

    @field_validator("na_values", mode="before")
    @classmethod
    def _check_na_values(cls, tokens: object) -> object:
        if not isinstance(tokens, list):
            raise ValueError(f"received {tokens!r}, expected a list such as [NA, '?']")
        for token in tokens:
            if token is None or isinstance(token, bool) or not isinstance(token, str | int | float):
                raise ValueError(
                    f"received {token!r}, expected text or numbers; YAML reads null, yes and no unless quoted"
                )
        return [str(token) for token in tokens]

    @field_validator("thousands")
    @classmethod
    def _check_thousands(cls, thousands: str | None) -> str | None:
        if thousands is not None and (len(thousands) != 1 or thousands.isalnum() or thousands in "+-"):
            raise ValueError(f"received {thousands!r}, expected one character such as ',', '.', ' ' or \"'\"")
        return thousands

    @model_validator(mode="after")
    def _check_number_marks(self) -> ReadingSettings:
        if self.thousands == self.decimal:
            raise ValueError(
                f"received {self.decimal!r} as thousands and as decimal, expected two characters; "
                "for 1.234,5 they are thousands: '.' and decimal: ','"
            )
        return self
