"""A folder of images, in one folder a class. The encoded bytes are kept as they are."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from components.errors import DataError
from components.example_gen.files import InputFiles
from components.example_gen.image_rows import COLUMNS, ImageRow, to_batches
from components.example_gen.kinds import Kind
from components.example_gen.sources import SHARD_BYTES, Batch, Piece, RejectedRow
from components.example_gen.splits import list_names


class ImagesSource:
    """Images, one file a row, the class being the name of the folder that holds the file; see `sources.Source`.

    A file that is no image, or is damaged, is a malformed row; so is one that lies directly in the data folder.
    """

    def peek_columns(self, file: str) -> list[str]:
        return list(COLUMNS)

    def pieces(self, inputs: InputFiles) -> list[Piece]:
        folder = str(inputs.root or inputs.files[0].parent)
        sizes = {inputs.name_of(file): file.stat().st_size for file in inputs.files}
        classes = _classes(folder, list(sizes), nested=bool(inputs.splits))
        groups: list[list[str]] = []
        of_split: dict[str | None, int] = {}  # Split -> its group that is not full yet.
        size: dict[int, int] = {}
        for name, file_size in sizes.items():
            split = inputs.splits.get(name)
            group = of_split.get(split)
            if group is None or size[group] + file_size > SHARD_BYTES:
                group = of_split[split] = len(groups)
                groups.append([])
                size[group] = 0
            groups[group].append(name)
            size[group] += file_size
        return [
            Piece(folder, 0, None, size[group], names=tuple(names), classes=classes)
            for group, names in enumerate(groups)
        ]

    def infer(self, piece: Piece, fail: bool) -> dict[str, Kind]:
        return COLUMNS

    def read(self, piece: Piece, kinds: Mapping[str, Kind]) -> Iterator[Batch]:
        labels = {name: label for label, name in enumerate(piece.classes)}
        yield from to_batches((_read_image(piece.file, name, labels) for name in piece.names), piece.classes)


def _classes(folder: str, names: list[str], nested: bool) -> tuple[str, ...]:
    """Returns the names of the classes in order, after a check that the folders are laid out as they must be."""
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
    # Where images are read and nowhere else: preflight imports this module too.
    from components.example_gen.image_codec import find_fault

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
