"""CIFAR-10 as published at https://www.cs.toronto.edu/~kriz/cifar.html: the archives, or the folders in them.

The binary form has 3,073 bytes a record: the label, then 32x32 pixels, first all red values, then green, then blue.
The Python form has the same pixels as a pickled array. Both become PNGs.

A pickle is a program that may call anything it names. The Python form names three things from NumPy and, when written
again by Python 3, one of two more, depending on the protocol. Here these names stand for functions of our own, which
can make only bytes and arrays of bytes. Any other name in a pickle is refused.
"""

from __future__ import annotations

import io
import os
import pickle
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from components.example_gen.contract import Batch, Piece
from components.example_gen.files import InputFiles
from components.example_gen.formats import CIFAR10_BATCHES, CIFAR10_BINARY, cifar10_members
from components.example_gen.images_source import ImageRow, ImageSource, encode_png, to_batches
from components.example_gen.kinds import Kind
from contracts.errors import DataError

_Bytes = npt.NDArray[np.uint8]

# What unpickling a damaged or forged stream can raise.
_DAMAGES = (pickle.UnpicklingError, EOFError, ValueError, TypeError, LookupError, AttributeError, OverflowError)


class UnsafePickleError(Exception):
    """A pickle that cannot be read, or that names something it has no business with."""


def load_pickle(data: bytes) -> Any:
    """Returns the object in a pickle of plain containers, numbers, text, bytes and uint8 arrays.

    Python 2's text is returned as bytes.

    Raises:
        UnsafePickleError: The pickle names anything else, or is damaged.
    """
    try:
        return _Unpickler(io.BytesIO(data), encoding="bytes").load()
    except _DAMAGES as error:
        raise UnsafePickleError(str(error) or type(error).__name__) from error


class _ArrayType:
    """Stands for numpy.ndarray where a pickle names the type of the array that it is about to fill."""


def _empty_array(*_: object) -> _Bytes:
    return np.zeros(0, np.uint8)


def _uint8(name: object, *_: object) -> np.dtype[np.uint8]:
    if name not in ("u1", b"u1"):
        raise pickle.UnpicklingError(f"it holds an array of {name!r}, expected uint8")
    return np.dtype(np.uint8)


def _array_of(buffer: object, dtype: object, shape: tuple[int, ...], order: Literal["C", "F"]) -> _Bytes:
    """What NumPy writes in protocol 5: the array's memory and how to interpret it."""
    if not isinstance(buffer, bytes | bytearray) or not isinstance(dtype, np.dtype) or order not in ("C", "F"):
        raise pickle.UnpicklingError(f"it holds an array of {dtype!r}, expected uint8")
    return np.frombuffer(buffer, np.uint8).reshape(shape, order=order)


def _encoded(text: object, codec: object) -> bytes:
    """What Python 3 writes for bytes in protocols that know only text."""
    if not isinstance(text, str) or codec not in ("latin1", b"latin1"):
        raise pickle.UnpicklingError(f"it holds text in {codec!r}, expected latin1")
    return text.encode("latin1")


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type | Callable[..., object]:
        allowed: dict[str, type | Callable[..., object]] = {
            "numpy.core.multiarray._reconstruct": _empty_array,
            "numpy._core.multiarray._reconstruct": _empty_array,  # NumPy 2
            "numpy.ndarray": _ArrayType,
            "numpy.dtype": _uint8,
            "numpy.core.numeric._frombuffer": _array_of,
            "numpy._core.numeric._frombuffer": _array_of,  # NumPy 2
            "_codecs.encode": _encoded,
        }
        if f"{module}.{name}" not in allowed:
            raise pickle.UnpicklingError(f"it names {module}.{name}, expected only arrays and plain values")
        return allowed[f"{module}.{name}"]


NUM_CLASSES = 10
PIXEL_BYTES = 3 * 32 * 32
RECORD_BYTES = 1 + PIXEL_BYTES
_FIX = "Download the archive again, and compare its MD5 with the one on CIFAR-10's page."


class Cifar10Source(ImageSource):
    """CIFAR-10, binary or Python, packed or not, one piece per batch; see `contract.Source`.

    It has no malformed rows: if one record is wrong, so are the others.
    """

    def pieces(self, inputs: InputFiles) -> list[Piece]:
        path = str(inputs.files[0]) if len(inputs.files) == 1 else str(inputs.files[0].parent)
        sizes = _sizes(path)
        *batches, meta = cifar10_members(path, sizes, _FIX)
        classes = _class_names(path, meta)
        pieces = []
        for batch, member in zip(CIFAR10_BATCHES, batches, strict=True):
            size = sizes[member]
            if meta == CIFAR10_BINARY and (size % RECORD_BYTES or not size):
                raise DataError(
                    f"{path}, {member}: found {size:,} bytes, expected records of {RECORD_BYTES:,} bytes, "
                    f"1 for the label and {PIXEL_BYTES:,} for the pixels.",
                    _FIX,
                )
            pieces.append(Piece(path, 0, None, size, names=(batch, member), classes=classes))
        return pieces

    def read_batches(self, piece: Piece, kinds: Mapping[str, Kind]) -> Iterator[Batch]:
        yield from to_batches(_rows(piece), piece.classes)


def _rows(piece: Piece) -> Iterator[ImageRow]:
    batch, member = piece.names
    where = f"{piece.file}, {member}"
    data = _file_bytes(piece.file, member)
    labels, pixels = _from_binary(data) if member.endswith(".bin") else _from_pickle(where, data)
    invalid = np.flatnonzero((labels < 0) | (labels >= NUM_CLASSES))
    if len(invalid):
        raise DataError(
            f"{where}, record {invalid[0] + 1}: found the label {labels[invalid[0]]}, expected 0 to {NUM_CLASSES - 1}.",
            _FIX,
        )
    for row, (label, planes) in enumerate(zip(labels.tolist(), pixels.reshape(-1, 3, 32, 32), strict=True), 1):
        image = np.ascontiguousarray(planes.transpose(1, 2, 0))  # (channel, y, x) -> (y, x, channel)
        yield ImageRow(encode_png(image), label, f"{batch}:{row}")


def _from_binary(data: bytes) -> tuple[npt.NDArray[np.int64], _Bytes]:
    """Returns the (records,) labels and the (records, 3072) pixels."""
    records = np.frombuffer(data, np.uint8).reshape(-1, RECORD_BYTES)
    return records[:, 0].astype(np.int64), records[:, 1:]


def _from_pickle(where: str, data: bytes) -> tuple[npt.NDArray[np.int64], _Bytes]:
    batch = _unpickle(where, data, ("data", "labels"))
    pixels, labels = batch["data"], batch["labels"]
    if not isinstance(pixels, np.ndarray) or pixels.ndim != 2 or pixels.shape[1] != PIXEL_BYTES or not len(pixels):
        received = f"the shape {pixels.shape}" if isinstance(pixels, np.ndarray) else f"a {type(pixels).__name__}"
        raise DataError(f"{where}: found {received} as 'data', expected an array of (records, {PIXEL_BYTES:,}).", _FIX)
    if not isinstance(labels, list) or len(labels) != len(pixels) or not all(type(x) is int for x in labels):
        raise DataError(f"{where}: found 'labels' that are not a list of {len(pixels):,} whole numbers.", _FIX)
    return np.array(labels, np.int64), pixels


def _class_names(path: str, meta: str) -> tuple[str, ...]:
    data = _file_bytes(path, meta)
    encoded: list[bytes | str]
    if meta == CIFAR10_BINARY:
        encoded = [*data.split()]
    else:
        named = _unpickle(f"{path}, {meta}", data, ("label_names",))["label_names"]
        encoded = [name for name in named if isinstance(name, bytes | str)] if isinstance(named, list) else []
    names = tuple(map(_text, encoded))
    if len(names) != NUM_CLASSES:
        raise DataError(f"{path}, {meta}: found {len(names)} class names, expected {NUM_CLASSES}.", _FIX)
    return names


def _unpickle(where: str, data: bytes, keys: tuple[str, ...]) -> dict[str, object]:
    """Returns a pickled dictionary with text as keys; Python 2 wrote them as bytes, Python 3 as text."""
    try:
        content = load_pickle(data)
    except UnsafePickleError as error:
        raise DataError(f"{where} is not a CIFAR-10 pickle: {error}.", _FIX) from error
    keys_read = list(content) if isinstance(content, dict) else [type(content).__name__]
    entries = {_text(key): value for key, value in content.items()} if isinstance(content, dict) else {}
    if any(key not in entries for key in keys):
        raise DataError(f"{where}: found {keys_read}, expected a dictionary with {', '.join(map(repr, keys))}.", _FIX)
    return entries


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _sizes(path: str) -> dict[str, int]:
    """Returns file name (without folders) -> size in bytes for the files in an archive or folder."""
    if os.path.isdir(path):
        return {entry.name: entry.stat().st_size for entry in os.scandir(path) if entry.is_file()}
    with _open_archive(path) as archive:
        return {os.path.basename(member.name): member.size for member in archive.getmembers() if member.isfile()}


def _file_bytes(path: str, name: str) -> bytes:
    """Returns the bytes of a file in a folder, or in an archive, which is unpacked only in memory."""
    if os.path.isdir(path):
        with open(os.path.join(path, name), "rb") as file:
            return file.read()
    with _open_archive(path) as archive:
        member = next(m for m in archive if m.isfile() and os.path.basename(m.name) == name)
        extracted = archive.extractfile(member)
        return extracted.read() if extracted else b""


@contextmanager
def _open_archive(path: str) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(path) as archive:
            yield archive
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise DataError(f"{path} cannot be read as a tar archive: {error}.", _FIX) from error
