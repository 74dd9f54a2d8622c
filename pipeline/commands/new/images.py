"""Images among the user's data: how large they are, and what size the model shall see."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from components.example_gen.encoding import Column

LARGEST_SIDE = 32
"""Pixels of the longer side that the model sees: as CIFAR-10's. More see more, and take longer by their square."""

GRAY_MODES = ("1", "L", "LA", "I", "I;16", "F")
"""Pillow's names for images without colors."""

TRAIN_FOLDERS = ("train", "training")
EVAL_FOLDERS = ("eval", "test", "testing", "val", "valid", "validation")


class ImageCell(NamedTuple):
    """What is kept of an image.

    Attributes:
        height: Pixels.
        width: Pixels.
        channels: 1 without colors, else 3.
        digest: Of its file: equal images have equal ones.
    """

    height: int
    width: int
    channels: int
    digest: bytes


def image_cells(column: Column) -> npt.NDArray[np.object_]:
    """The images of a column, (rows,); None where one is missing.

    Args:
        column: Encoded images, at most one a row, each of which can be read.
    """
    from PIL import Image

    cells = np.full(len(column.offsets) - 1, None)
    files = [] if column.values is None else column.values.to_pylist()
    rows = np.flatnonzero(np.diff(column.offsets))
    for row, file in zip(rows, files, strict=True):
        with Image.open(io.BytesIO(file)) as image:
            channels = 1 if image.mode in GRAY_MODES else 3
            cells[row] = ImageCell(image.height, image.width, channels, hashlib.sha256(file).digest())
    return cells


def seen_size(cells: npt.NDArray[np.object_]) -> tuple[int, int, int]:
    """Height, width and channels that the model shall see: the median image, made smaller if it is large.

    Args:
        cells: At least one image.
    """
    known = [cell for cell in cells if cell is not None]
    height, width = (float(np.median([cell[side] for cell in known])) for side in (0, 1))
    scale = min(1.0, LARGEST_SIDE / max(height, width))
    return max(1, round(height * scale)), max(1, round(width * scale)), max(cell.channels for cell in known)


def splits_of_folders(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """`data.splits`, where classes' folders lie in folders such as `train` and `test`; else nothing.

    Args:
        names: The files, by their path below the data folder.
    """
    if any(name.count("/") != 2 for name in names):
        return {}
    above = sorted({name.split("/")[0] for name in names})
    trained = [name for name in above if name.lower() in TRAIN_FOLDERS]
    judged = [name for name in above if name.lower() in EVAL_FOLDERS]
    if len(above) != 2 or len(trained) != 1 or len(judged) != 1:
        return {}
    return {"splits": {"train": f"{trained[0]}/*", "eval": f"{judged[0]}/*"}}
