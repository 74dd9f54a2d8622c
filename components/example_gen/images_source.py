"""Images: what their formats share, folders with one sub-folder per class, and scikit-learn's handwritten digits.

Pillow is imported only where images are read and written: preflight imports this module too.
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from components.example_gen.blocks import Block, read_blocks
from components.example_gen.contract import SHARD_BYTES, Batch, Piece
from components.example_gen.encoding import Column
from components.example_gen.files import InputFiles, list_names
from components.example_gen.kinds import Kind
from contracts.errors import DataError
from contracts.rejected_rows import RejectedRow

BATCH_BYTES = 4 << 20
COLUMNS = {"image": Kind.BYTES, "label": Kind.INT, "class": Kind.BYTES, "name": Kind.BYTES}

_COMPRESSION_LEVEL = 1  # A third faster than the default 6 and 6 % larger, on 32x32 crops of photographs.
_READABLE = ("PNG", "JPEG", "MPO", "GIF", "BMP")  # MPO is some cameras' JPEG with a second picture appended.
_IMAGE_FORMATS = "PNG, JPEG, GIF or BMP"
_WHOLE = f"{_IMAGE_FORMATS} that decodes to the end"
_BMP_BITS_OFFSET = 28
_PNG_END = b"IEND\xaeB`\x82"
# What Pillow's decoders raise for damaged data.
_DAMAGES = (OSError, SyntaxError, ValueError, TypeError, IndexError, EOFError, struct.error, zlib.error)


@dataclass(frozen=True)
class ImageRow:
    """One image.

    Attributes:
        image: Encoded in a format that TensorFlow's `decode_image` reads.
        label: The class id, from 0.
        name: Where it comes from; unique within the input.
    """

    image: bytes
    label: int
    name: str


def to_batches(rows: Iterable[ImageRow | RejectedRow], classes: Sequence[str]) -> Iterator[Batch]:
    """Yields rows in batches of about BATCH_BYTES.

    Args:
        rows: Good and malformed ones.
        classes: The class names, by class id.
    """
    good: list[ImageRow] = []
    rejected: list[RejectedRow] = []
    size = 0
    for row in rows:
        if isinstance(row, RejectedRow):
            rejected.append(row)
            continue
        good.append(row)
        size += len(row.image)
        if size >= BATCH_BYTES:
            yield _to_batch(good, rejected, classes)
            good, rejected, size = [], [], 0
    yield _to_batch(good, rejected, classes)


def _to_batch(rows: list[ImageRow], rejected: list[RejectedRow], classes: Sequence[str]) -> Batch:
    values = {
        "image": pa.array([row.image for row in rows], pa.binary()),
        "label": pa.array([row.label for row in rows], pa.int64()),
        # The system's file names are bytes; those that are not UTF-8 must come through unchanged.
        "class": pa.array([os.fsencode(classes[row.label]) for row in rows], pa.binary()),
        "name": pa.array([os.fsencode(row.name) for row in rows], pa.binary()),
    }
    offsets = np.arange(len(rows) + 1, dtype=np.int64)
    return Batch([Column(name, kind, values[name], offsets) for name, kind in COLUMNS.items()], len(rows), rejected)


class ImageSource:
    """The base of all image sources, whose columns are always the same."""

    def peek_columns(self, file: str) -> list[str]:
        return list(COLUMNS)

    def infer(self, piece: Piece, fail: bool) -> dict[str, Kind]:
        return COLUMNS


class ImagesSource(ImageSource):
    """Images, one file a row, whose class is the name of the folder that holds the file; see `contract.Source`.

    A file that is not an image, is damaged, or lies directly in the data folder is a malformed row.
    """

    def pieces(self, inputs: InputFiles) -> list[Piece]:
        folder = str(inputs.root or inputs.files[0].parent)
        sizes = {inputs.name_of(file): file.stat().st_size for file in inputs.files}
        classes = _classes(folder, list(sizes), nested=bool(inputs.splits))
        groups: list[list[str]] = []
        open_groups: dict[str | None, int] = {}  # Split -> the index of its group that is not full yet.
        size: dict[int, int] = {}
        for name, file_size in sizes.items():
            split = inputs.splits.get(name)
            group = open_groups.get(split)
            if group is None or size[group] + file_size > SHARD_BYTES:
                group = open_groups[split] = len(groups)
                groups.append([])
                size[group] = 0
            groups[group].append(name)
            size[group] += file_size
        return [
            Piece(folder, 0, None, size[group], names=tuple(names), classes=classes)
            for group, names in enumerate(groups)
        ]

    def read_batches(self, piece: Piece, kinds: Mapping[str, Kind]) -> Iterator[Batch]:
        labels = {name: label for label, name in enumerate(piece.classes)}
        yield from to_batches((_read_image(piece.file, name, labels) for name in piece.names), piece.classes)


def _classes(folder: str, names: list[str], nested: bool) -> tuple[str, ...]:
    """Returns the class names in order, after checking that the folders are laid out as expected."""
    by_depth: dict[int, str] = {}
    for name in names:
        by_depth.setdefault(name.count("/"), name)
    by_depth.pop(0, None)  # Malformed rows.
    if not by_depth:
        raise DataError(
            f"{folder} has no sub-folders with files, expected one sub-folder of images for each class; "
            f"it holds {list_names(names)}.",
            "Put the images of each class into a folder named as the class.",
        )
    if len(by_depth) > 1:
        raise DataError(
            f"{folder} holds files at different depths: {', '.join(by_depth.values())}; expected one sub-folder for "
            "each class, and no folders in it.",
            "Move the images up into the folders of their classes.",
        )
    if not nested and max(by_depth) > 1:
        raise DataError(
            f"{folder} holds {next(iter(by_depth.values()))}, expected one sub-folder for each class and images in it.",
            "Let data.path name the folder that holds the classes' folders; or where the folders above these are "
            'splits, set data.splits to patterns such as {train: "train/*", eval: "test/*"}.',
        )
    return tuple(sorted({name.split("/")[-2] for name in names if "/" in name}))


def _read_image(folder: str, name: str, labels: Mapping[str, int]) -> ImageRow | RejectedRow:
    path = os.path.join(folder, name)
    if "/" not in name:
        reason = "lies directly in the data folder, expected a sub-folder that is named as its class"
        return RejectedRow(path, None, None, reason, None)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        return RejectedRow(path, None, None, f"cannot be read ({error.strerror})", None)
    if fault := find_fault(data):
        return RejectedRow(path, None, None, fault, None)
    return ImageRow(data, labels[name.split("/")[-2]], name)


def encode_png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """Returns the PNG of a (height, width, 3) RGB or (height, width) grayscale image."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", compress_level=_COMPRESSION_LEVEL)
    return file.getvalue()


def find_fault(data: bytes) -> str | None:
    """Decodes a whole image file and returns what is wrong with it, or None."""
    from PIL import Image, UnidentifiedImageError

    if not data:
        return f"found an empty file, expected a {_IMAGE_FORMATS} image"
    try:
        with Image.open(io.BytesIO(data)) as image:
            if image.format not in _READABLE:
                return f"found a {image.format} image, expected {_IMAGE_FORMATS}"
            if image.format == "BMP" and image.mode not in ("RGB", "RGBA", "L"):
                bits = int.from_bytes(data[_BMP_BITS_OFFSET : _BMP_BITS_OFFSET + 2], "little")
                return f"found a BMP with a palette of {bits} bits a pixel, expected one of 24 or 32 bits a pixel"
            image.load()
        # Decoding ends with the last pixel; TensorFlow also requires a PNG's checksums and its end to be right.
        with Image.open(io.BytesIO(data)) as image:
            image.verify()
        if image.format == "PNG" and _PNG_END not in data:
            return f"found a damaged image (the end is missing), expected {_WHOLE}"
    except UnidentifiedImageError:
        return f"found no image, expected {_IMAGE_FORMATS}"
    except Image.DecompressionBombError as error:
        return f"found an image that is too large to decode safely ({error})"
    except _DAMAGES as error:
        return f"found a damaged image ({error}), expected {_WHOLE}"
    return None


_SIDE = 8
_BRIGHTEST = 16
_CLASSES = tuple(map(str, range(10)))
_EXPECTED = f"{_SIDE * _SIDE} pixels from 0 to {_BRIGHTEST} and a digit, divided by commas"


class DigitsSource(ImageSource):
    """`digits.csv.gz` as grayscale PNGs of 8x8 pixels, with 16 scaled to 255; see `contract.Source`."""

    def pieces(self, inputs: InputFiles) -> list[Piece]:
        pieces = [Piece(str(f), 0, None, os.path.getsize(f), 1, classes=_CLASSES) for f in inputs.files]
        for piece in pieces:
            if next(read_blocks(piece, None), None) is None:
                raise DataError(f"{piece.file} is empty, expected rows of {_EXPECTED}.", "Check data.path.")
        return pieces

    def read_batches(self, piece: Piece, kinds: Mapping[str, Kind]) -> Iterator[Batch]:
        rows = (row for block in read_blocks(piece, None) for row in _digit_rows(piece.file, block))
        yield from to_batches(rows, piece.classes)


def _digit_rows(file: str, block: Block) -> Iterator[ImageRow | RejectedRow]:
    for line_number, raw in enumerate(io.BytesIO(block.data), block.first_line):
        values = _parse_digit(raw)
        if values is None:
            yield RejectedRow(file, line_number, None, f"found no digit, expected {_EXPECTED}", raw)
            continue
        # Rounded half up: 16 -> 255, 8 -> 128.
        pixels = (values[:-1] * 255 + _BRIGHTEST // 2) // _BRIGHTEST
        image = encode_png(pixels.astype(np.uint8).reshape(_SIDE, _SIDE))
        yield ImageRow(image, int(values[-1]), f"{os.path.basename(file)}:{line_number}")


def _parse_digit(raw: bytes) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    """Returns the (65,) pixels and digit of a line, or None if the line is malformed."""
    try:
        values = np.array([int(cell) for cell in raw.split(b",")], np.int64)
    except (ValueError, OverflowError):
        return None
    limits = np.array([_BRIGHTEST] * (_SIDE * _SIDE) + [9])
    return values if values.shape == limits.shape and ((values >= 0) & (values <= limits)).all() else None
