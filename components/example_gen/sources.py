"""The reader of each format. Imports pyarrow and nothing heavier, since preflight asks for the columns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from components.example_gen.cifar10_source import Cifar10Source
from components.example_gen.contract import Source
from components.example_gen.csv_source import CsvSource
from components.example_gen.files import InputFiles
from components.example_gen.formats import FORMATS
from components.example_gen.image_paths import ImagePathsSource, named_files
from components.example_gen.images_source import DigitsSource, ImagesSource
from components.example_gen.jsonl_source import JsonlSource
from components.example_gen.parquet_source import ParquetSource
from components.example_gen.python_source import PythonSource
from components.example_gen.reading import ReadingSettings
from components.example_gen.text_source import TextSource
from components.example_gen.tfrecord_source import TFRecordSource
from contracts.errors import SettingsError

_READERS: dict[str, Callable[[ReadingSettings], Source]] = {
    "csv": CsvSource,
    "parquet": ParquetSource,
    "jsonl": JsonlSource,
    "tfrecord": TFRecordSource,
    "text": TextSource,
    "python": PythonSource,
    "images": lambda _: ImagesSource(),
    "cifar10": lambda _: Cifar10Source(),
    "digits": lambda _: DigitsSource(),
}
"""The reader of each format in `formats.FORMATS`, made with the settings, which image formats do not use."""


def source_of(format_: str, reading: ReadingSettings) -> Source:
    """Returns the reader of a format.

    Args:
        format_: One of `formats.FORMATS`.
        reading: How the recipe says to read.

    Raises:
        SettingsError: There is no such format.
    """
    if format_ not in _READERS:
        raise SettingsError(
            f"received the format {format_!r}, expected one of {', '.join(FORMATS)}.", "Set data.format."
        )
    reader = _READERS[format_](reading)
    return ImagePathsSource(reader, reading.image_columns) if reading.image_columns else reader


def all_files(inputs: InputFiles) -> tuple[Path, ...]:
    """The input files, and the image files that a table among them names.

    Raises:
        DataError: The table cannot be read.
    """
    columns = inputs.reading.image_columns
    if not columns:
        return inputs.files
    return (*inputs.files, *named_files(_READERS[inputs.format](inputs.reading), columns, inputs))


def columns_of(inputs: InputFiles) -> list[str]:
    """Returns the column names, to check them against the schema before anything runs.

    They come from the first file: CSV's header, Parquet's schema, the keys of the first 100 rows of JSON lines,
    TFRecord and Python. Those of text and images are always the same.

    Raises:
        DataError: The file is empty or cannot be read.
    """
    return source_of(inputs.format, inputs.reading).peek_columns(str(inputs.files[0]))
