"""Pillow: pixels to PNG, and whether a file is an image that TensorFlow reads too."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

_COMPRESSION_LEVEL = 1  # On 32x32 crops of photographs a third faster than the default 6, and 6 % larger.
_READABLE = ("PNG", "JPEG", "MPO", "GIF", "BMP")  # MPO is the JPEG of some cameras, with a second picture behind.
_EXPECTED = "PNG, JPEG, GIF or BMP"
_WHOLE = f"{_EXPECTED} that decodes to the end"
_BMP_BITS_OFFSET = 28
_PNG_END = b"IEND\xaeB`\x82"
# Whatever Pillow's decoders raise for data that are damaged.
_DAMAGES = (OSError, SyntaxError, ValueError, TypeError, IndexError, EOFError, struct.error, zlib.error)


def encode_png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """Returns the PNG of a (height, width, 3) RGB or (height, width) grayscale image."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", compress_level=_COMPRESSION_LEVEL)
    return file.getvalue()


def find_fault(data: bytes) -> str | None:
    """Decodes a whole image file, and returns what is wrong with it, or None."""
    if not data:
        return f"found an empty file, expected a {_EXPECTED} image"
    try:
        with Image.open(io.BytesIO(data)) as image:
            if image.format not in _READABLE:
                return f"found a {image.format} image, expected {_EXPECTED}"
            if image.format == "BMP" and image.mode not in ("RGB", "RGBA", "L"):
                bits = int.from_bytes(data[_BMP_BITS_OFFSET : _BMP_BITS_OFFSET + 2], "little")
                return f"found a BMP with a palette of {bits} bits a pixel, expected one of 24 or 32 bits a pixel"
            image.load()
        # Decoding ends with the last pixel; of a PNG, TensorFlow wants the checksums and the end to be right too.
        with Image.open(io.BytesIO(data)) as image:
            image.verify()
        if image.format == "PNG" and _PNG_END not in data:
            return f"found a damaged image (the end is missing), expected {_WHOLE}"
    except UnidentifiedImageError:
        return f"found no image, expected {_EXPECTED}"
    except Image.DecompressionBombError as error:
        return f"found an image that is too large to decode safely ({error})"
    except _DAMAGES as error:
        return f"found a damaged image ({error}), expected {_WHOLE}"
    return None
