"""The images that a node draws for the report: the `*.svg` and `*.png` files of an artifact of type Plot."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

from contracts.content import ContentError

PLOT_TYPE = "Plot"
MEDIA_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}

MOST_BYTES = 2_000_000
"""Pages embed their images; a larger file is named and not shown."""


@dataclass(frozen=True)
class Plot:
    """An image.

    Attributes:
        title: The file's name in words.
        data_uri: The whole file, for an `img`, in which browsers run no scripts; empty if it is too large.
        note: Why it is not shown; empty if it is.
    """

    title: str
    data_uri: str
    note: str = ""


def read_plots(folder: Path) -> list[Plot]:
    """Reads the images of a Plot artifact, sorted by file name.

    Raises:
        ContentError: The folder is gone, or a file cannot be read.
    """
    if not folder.is_dir():
        raise ContentError(folder, "is not there (any more)")
    return [_plot(path) for path in sorted(folder.iterdir()) if path.suffix in MEDIA_TYPES]


def _plot(path: Path) -> Plot:
    title = path.stem.replace("_", " ").replace("-", " ")
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            return Plot(title, "", f"{path} has {size:,} bytes, more than the {MOST_BYTES:,} that a page shows.")
        encoded = base64.b64encode(path.read_bytes()).decode("ascii")
    except OSError as error:
        raise ContentError(path, f"cannot be read: {error}") from error
    return Plot(title, f"data:{MEDIA_TYPES[path.suffix]};base64,{encoded}")
