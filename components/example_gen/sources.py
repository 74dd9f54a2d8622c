"""Which format is read by what. Imports pyarrow, and nothing heavier: preflight asks for the columns."""

from __future__ import annotations

from collections.abc import Callable

from components.example_gen.cifar10_source import Cifar10Source
from components.example_gen.contract import Source
from components.example_gen.csv_source import CsvSource
from components.example_gen.files import InputFiles
from components.example_gen.formats import FORMATS
from components.example_gen.images_source import DigitsSource, ImagesSource
from components.example_gen.jsonl_source import JsonlSource
from components.example_gen.parquet_source import ParquetSource
from contracts.errors import SettingsError

# Of each format in `formats.FORMATS` its reader, made with the character between two cells, which CSV alone has.
_READERS: dict[str, Callable[[str], Source]] = {
    "csv": CsvSource,
    "parquet": lambda _: ParquetSource(),
    "jsonl": lambda _: JsonlSource(),
    "images": lambda _: ImagesSource(),
    "cifar10": lambda _: Cifar10Source(),
    "digits": lambda _: DigitsSource(),
}


def source_of(format_: str, delimiter: str) -> Source:
    """Returns the reader of a format.

    Args:
        format_: One of `formats.FORMATS`.
        delimiter: Between two cells of a CSV row.

    Raises:
        SettingsError: There is no such format.
    """
    if format_ not in _READERS:
        raise SettingsError(
            f"received the format {format_!r}, expected one of {', '.join(FORMATS)}.", "Set data.format."
        )
    return _READERS[format_](delimiter)


def columns_of(inputs: InputFiles) -> list[str]:
    """Returns the names of the columns, for a check against the schema before anything runs.

    CSV: the header of the first file. Parquet: its schema. JSON lines: the keys of its first 100 rows. Images: always
    the same.

    Raises:
        DataError: The file is empty or cannot be read.
    """
    return source_of(inputs.format, inputs.delimiter).peek_columns(str(inputs.files[0]))
