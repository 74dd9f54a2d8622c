"""The recipe's own node: draws some images of each class for the report. See docs/recipe-nodes.md."""

import base64
import json
from collections import defaultdict
from html import escape
from pathlib import Path

import tensorflow as tf
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.types.standard_artifacts import Examples

from components.artifacts import split_files
from components.plots import Plot

SIDE = 36
"""The width and height of an image in pixels."""

CELL = SIDE + 4

LABELS_WIDTH = 120
LOOKED_THROUGH = 2_000
"""How many rows to search for images: a class that does not appear in them has none."""


@component
def SampleImages(  # noqa: N802 (TFX names a component as the node is named)
    examples: InputArtifact[Examples], plot: OutputArtifact[Plot], per_class: Parameter[int] = 8
) -> None:
    """Draws the first images of each class in the `train` split, one row per class."""
    names = json.loads(examples.get_string_custom_property("class_names") or "[]")
    images = _first_images(split_files(examples, "train"), per_class)
    rows = [
        _row(index, names[label] if label < len(names) else str(label), images[label])
        for index, label in enumerate(sorted(images))
    ]
    width, height = LABELS_WIDTH + per_class * CELL, len(rows) * CELL
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">{"".join(rows)}</svg>'
    Path(plot.uri, "images_of_each_class.svg").write_text(svg, encoding="utf-8")


def _first_images(files: list[str], per_class: int) -> dict[int, list[bytes]]:
    """The first images of each class as PNG, by class id."""
    images: dict[int, list[bytes]] = defaultdict(list)
    records = tf.data.TFRecordDataset(files, compression_type="GZIP").take(LOOKED_THROUGH).batch(LOOKED_THROUGH)
    for record in records.get_single_element().numpy():
        row = tf.train.Example.FromString(record).features.feature
        label = row["label"].int64_list.value[0]
        if len(images[label]) < per_class:
            images[label].append(_thumbnail(row["image"].bytes_list.value[0]))
    return images


def _thumbnail(encoded: bytes) -> bytes:
    """An image as a small PNG."""
    pixels = tf.image.resize(tf.io.decode_image(encoded, expand_animations=False), [SIDE, SIDE], "nearest")
    return bytes(tf.io.encode_png(tf.cast(pixels, tf.uint8)).numpy())


def _row(index: int, name: str, images: list[bytes]) -> str:
    middle = index * CELL + CELL // 2
    text = f'<text x="4" y="{middle}" font-family="sans-serif" font-size="14" fill="gray">{escape(name)}</text>'
    drawn = "".join(
        f'<image x="{LABELS_WIDTH + column * CELL}" y="{index * CELL}" width="{SIDE}" height="{SIDE}" '
        f'href="data:image/png;base64,{base64.b64encode(image).decode("ascii")}"/>'
        for column, image in enumerate(images)
    )
    return text + drawn
