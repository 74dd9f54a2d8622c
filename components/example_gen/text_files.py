"""Text files as UTF-8, however they are stored: gzip, another encoding, lines that end in carriage returns alone.

What cannot be read is said in a sentence that names the file.
"""

from __future__ import annotations

import codecs
import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Protocol, cast

from isal import igzip, isal_zlib

from contracts.errors import DataError

_HEAD_BYTES = 1 << 16

DAMAGED_GZIP: tuple[type[Exception], ...] = (EOFError, igzip.BadGzipFile, isal_zlib.IsalError)  # type: ignore[assignment]
"""What reading damaged gzip raises; EOFError where it ends too early."""

# UTF-32's little-endian mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_GZIP = b"\x1f\x8b"
_OTHER_FILES = (
    (_GZIP, "gzip", "Let its name end in .gz."),
    (b"PAR1", "Parquet", "Set data.format: parquet."),
    (b"BZh", "bzip2", "Unpack it, or compress it with gzip."),
    (b"\xfd7zXZ", "xz", "Unpack it, or compress it with gzip."),
    (b"\x28\xb5\x2f\xfd", "Zstandard", "Unpack it, or compress it with gzip."),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook", "Save the sheet as CSV."),
    (b"%PDF", "a PDF", "Save the table as CSV."),
)
_ZIP = b"PK\x03\x04"


class TextFile(Protocol):
    """An open text file, as UTF-8."""

    def read(self, size: int) -> bytes:
        """Returns about `size` bytes more; none at the end."""

    def seek(self, position: int) -> object:
        """Goes to a position, in bytes of UTF-8; only before anything is read."""


@contextmanager
def open_text(file: str, encoding: str = "utf-8") -> Iterator[TextFile]:
    """Opens a text file, decompressing it if its name ends in `.gz`.

    Args:
        file: The path.
        encoding: One of Python's; a byte order mark of UTF-16 or UTF-32 replaces `utf-8`.

    Raises:
        DataError: It cannot be read, also while it is being read.
    """
    try:
        with _open_bytes(file) as opened:
            head = opened.read(_HEAD_BYTES)
            _check_kind(file, head)
            opened.seek(0)
            codec, newline = _form(head, encoding)
            yield cast(TextFile, opened) if codec is None else _Transcoded(opened, codec, newline)
    except EOFError as error:
        raise DataError(f"{file} ends in the middle of its gzip data.", "Copy it, or download it, again.") from error
    except DAMAGED_GZIP as error:
        raise DataError(f"{file} is damaged gzip: {error}.", "Copy it, or download it, again.") from error
    except UnicodeError as error:
        fix = "Set data.encoding to the encoding that it is in, such as utf-8, latin-1 or cp1252."
        raise DataError(f"{file} is not {encoding}: {error}.", fix) from error
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}.", "Mend its permissions, or data.path.") from error


def is_plain(file: str, encoding: str) -> bool:
    """Whether a position in the file's UTF-8 text is one in the file, so that a part of it can be read by itself."""
    if file.endswith(".gz"):
        return False
    with open(file, "rb") as opened:
        return _form(opened.read(_HEAD_BYTES), encoding)[0] is None


def _open_bytes(file: str) -> BinaryIO:
    if not file.endswith(".gz"):
        return open(file, "rb")
    with open(file, "rb") as opened:
        start = opened.read(len(_GZIP))
    if start != _GZIP[: len(start)]:
        fix = "Copy it again; or if it is not compressed, take .gz off its name."
        raise DataError(f"{file} ends in .gz and is not gzip.", fix)
    return cast(BinaryIO, igzip.open(file, "rb"))


def _check_kind(file: str, head: bytes) -> None:
    """Refuses a file that is known to be something other than text."""
    if head.startswith(_ZIP):
        names = zipfile.ZipFile(file).namelist() if zipfile.is_zipfile(file) else []
        if "[Content_Types].xml" in names:
            raise DataError(f"{file} is an Excel workbook, expected text.", "Save the sheet as CSV in UTF-8.")
        held = f" that holds {', '.join(names[:5])}" if names else ""
        raise DataError(f"{file} is a zip archive{held}, expected text.", "Unpack it, or compress the file with gzip.")
    for magic, kind, fix in _OTHER_FILES:
        if head.startswith(magic):
            raise DataError(f"{file} is {kind}, expected text.", fix)


def _form(head: bytes, encoding: str) -> tuple[str | None, str | None]:
    """Returns the codec (None for UTF-8 as it is) and the `newline` that io.TextIOWrapper reads the file with."""
    codec: str | None = codecs.lookup(encoding).name
    if codec in ("utf-8", "utf-8-sig", "ascii"):
        codec = next((name for mark, name in _MARKS if head.startswith(mark)), None)
    if b"\r" in head and b"\n" not in head:
        return codec or "utf-8-sig", None  # None turns carriage returns into line feeds.
    return codec, ""


class _Transcoded:
    """A file in another encoding, as UTF-8."""

    def __init__(self, file: BinaryIO, codec: str, newline: str | None) -> None:
        self._text = io.TextIOWrapper(file, codec, newline=newline)
        self._next = b""

    def read(self, size: int) -> bytes:
        data, self._next = self._next or self._text.read(size).encode("utf-8"), b""
        return data

    def seek(self, position: int) -> None:
        data = b""
        while len(data) < position and (more := self.read(_HEAD_BYTES)):
            data += more
        self._next = data[position:]
