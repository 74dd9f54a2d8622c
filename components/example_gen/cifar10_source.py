"""CIFAR-10 as it is published: https://www.cs.toronto.edu/~kriz/cifar.html, archives or the folders in them.

The binary form has 3,073 bytes a record: the label, and 32x32 pixels, all red ones, then all green, then all blue.
The Python form has the same pixels as a pickled array. Both become PNGs.
"""

from __future__ import annotations

import os
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from components.errors import DataError
from components.example_gen import safe_pickle
from components.example_gen.files import InputFiles
from components.example_gen.formats import CIFAR10_BATCHES, CIFAR10_BINARY, CIFAR10_PYTHON
from components.example_gen.image_rows import COLUMNS, ImageRow, to_batches
from components.example_gen.kinds import Kind
from components.example_gen.sources import Batch, Piece

NUM_CLASSES = 10
PIXEL_BYTES = 3 * 32 * 32
RECORD_BYTES = 1 + PIXEL_BYTES
_FIX = "Download the archive again, and compare its MD5 with the one on CIFAR-10's page."
_Bytes = npt.NDArray[np.uint8]


class Cifar10Source:
    """CIFAR-10, binary or Python, packed or not, a batch a piece; see `sources.Source`.

    It has no malformed rows: where one record is wrong, so are the others.
    """

    def peek_columns(self, file: str) -> list[str]:
        return list(COLUMNS)

    def pieces(self, inputs: InputFiles) -> list[Piece]:
        path = str(inputs.files[0]) if len(inputs.files) == 1 else str(inputs.files[0].parent)
        members = _sizes(path)
        meta = CIFAR10_PYTHON if CIFAR10_PYTHON in members else CIFAR10_BINARY
        suffix = "" if meta == CIFAR10_PYTHON else ".bin"
        wanted = [f"{batch}{suffix}" for batch in CIFAR10_BATCHES] + [meta]
        if missing := [name for name in wanted if name not in members]:
            raise DataError(
                f"{path} lacks {', '.join(missing)}, expected {', '.join(wanted)}, as in CIFAR-10; "
                f"it holds {', '.join(members) or 'no files'}.",
                _FIX,
            )
        classes = _class_names(path, meta)
        pieces = []
        for batch in CIFAR10_BATCHES:
            size = members[f"{batch}{suffix}"]
            if suffix and (size % RECORD_BYTES or not size):
                raise DataError(
                    f"{path}, {batch}{suffix}: found {size:,} bytes, expected records of {RECORD_BYTES:,} bytes, "
                    f"1 for the label and {PIXEL_BYTES:,} for the pixels.",
                    _FIX,
                )
            pieces.append(Piece(path, 0, None, size, names=(batch, f"{batch}{suffix}"), classes=classes))
        return pieces

    def infer(self, piece: Piece, fail: bool) -> dict[str, Kind]:
        return COLUMNS

    def read(self, piece: Piece, kinds: Mapping[str, Kind]) -> Iterator[Batch]:
        yield from to_batches(_rows(piece), piece.classes)


def _rows(piece: Piece) -> Iterator[ImageRow]:
    # Where images are written and nowhere else: preflight imports this module too.
    from components.example_gen.image_codec import encode_png

    batch, member = piece.names
    where = f"{piece.file}, {member}"
    data = _read(piece.file, member)
    labels, pixels = _from_binary(data) if member.endswith(".bin") else _from_pickle(where, data)
    wrong = np.flatnonzero((labels < 0) | (labels >= NUM_CLASSES))
    if len(wrong):
        raise DataError(
            f"{where}, record {wrong[0] + 1}: found the label {labels[wrong[0]]}, expected 0 to {NUM_CLASSES - 1}.",
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
    batch = _unpickle(where, data, (b"data", b"labels"))
    pixels, labels = batch[b"data"], batch[b"labels"]
    if not isinstance(pixels, np.ndarray) or pixels.ndim != 2 or pixels.shape[1] != PIXEL_BYTES or not len(pixels):
        found = f"the shape {pixels.shape}" if isinstance(pixels, np.ndarray) else f"a {type(pixels).__name__}"
        raise DataError(f"{where}: found {found} as b'data', expected an array of (records, {PIXEL_BYTES:,}).", _FIX)
    if not isinstance(labels, list) or len(labels) != len(pixels) or not all(type(x) is int for x in labels):
        raise DataError(f"{where}: found other b'labels' than a list of {len(pixels):,} whole numbers.", _FIX)
    return np.array(labels, np.int64), pixels


def _class_names(path: str, meta: str) -> tuple[str, ...]:
    data = _read(path, meta)
    if meta == CIFAR10_BINARY:
        encoded = data.split()
    else:
        found = _unpickle(f"{path}, {meta}", data, (b"label_names",))[b"label_names"]
        encoded = [name for name in found if isinstance(name, bytes)] if isinstance(found, list) else []
    names = tuple(name.decode("utf-8", "replace") for name in encoded)
    if len(names) != NUM_CLASSES:
        raise DataError(f"{path}, {meta}: found {len(names)} names of classes, expected {NUM_CLASSES}.", _FIX)
    return names


def _unpickle(where: str, data: bytes, keys: tuple[bytes, ...]) -> dict[bytes, object]:
    try:
        content = safe_pickle.loads(data)
    except safe_pickle.UnsafePickleError as error:
        raise DataError(f"{where} is no pickle of CIFAR-10: {error}.", _FIX) from error
    found = list(content) if isinstance(content, dict) else [type(content).__name__]
    if not isinstance(content, dict) or any(key not in content for key in keys):
        raise DataError(f"{where}: found {found}, expected a dictionary with {', '.join(map(repr, keys))}.", _FIX)
    return content


def _sizes(path: str) -> dict[str, int]:
    """Returns name -> size in bytes of the files of an archive or a folder, without the folders they are in."""
    if os.path.isdir(path):
        return {entry.name: entry.stat().st_size for entry in os.scandir(path) if entry.is_file()}
    with _opened(path) as archive:
        return {os.path.basename(member.name): member.size for member in archive.getmembers() if member.isfile()}


def _read(path: str, name: str) -> bytes:
    """Returns the bytes of a file of an archive, unpacked in memory alone, or of a folder."""
    if os.path.isdir(path):
        with open(os.path.join(path, name), "rb") as file:
            return file.read()
    with _opened(path) as archive:
        member = next(m for m in archive if m.isfile() and os.path.basename(m.name) == name)
        extracted = archive.extractfile(member)
        return extracted.read() if extracted else b""


@contextmanager
def _opened(path: str) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(path) as archive:
            yield archive
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise DataError(f"{path} cannot be read as a tar archive: {error}.", _FIX) from error
