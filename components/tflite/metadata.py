"""TensorFlow Lite Metadata: a description of inputs and outputs in the model, as Netron and the Task Library read it.

The description is a flatbuffer of its own in one of the model's buffers; the labels are a file in a zip archive that is
appended to the model, which TF Lite itself does not look at. No package that we could install has classes for it:
docs/adr/0029-tflite-metadata.md.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import flatbuffers
import numpy as np
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.tools import flatbuffer_utils

from components.tflite.saved_model import SIGNATURE
from contracts.errors import ExportError

METADATA_NAME = "TFLITE_METADATA"
"""The entry of the model's metadata under which TF Lite's tools look for the description."""

FILE_IDENTIFIER = b"M001"
LABELS_NAME = "labels.txt"
PARSER_VERSION = "1.0.0"
"""The first version of the schema that has every field written here."""

IMAGE_RANK = 4
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)

Table = Mapping[str, Any]
"""A table of the schema: field -> text, a number of an enum or a union, an unsigned integer, a table, or a list."""

FIELDS = {
    "name": 0,  # in all tables that have one
    "description": 1,  # likewise
    "subgraph_metadata": 3,  # ModelMetadata
    "min_parser_version": 7,
    "input_tensor_metadata": 2,  # SubGraphMetadata: in the order of SubGraph.inputs and SubGraph.outputs
    "output_tensor_metadata": 3,
    "content": 3,  # TensorMetadata
    "process_units": 4,
    "stats": 5,
    "associated_files": 6,
    "content_properties_type": 0,  # Content
    "content_properties": 1,
    "color_space": 0,  # ImageProperties
    "default_size": 1,
    "width": 0,  # ImageSize
    "height": 1,
    "options_type": 0,  # ProcessUnit
    "options": 1,
    "mean": 0,  # NormalizationOptions: (x - mean) / std, a value a channel or one for all
    "std": 1,
    "max": 0,  # Stats, likewise
    "min": 1,
    "type": 2,  # AssociatedFile
}
"""The numbers of the schema's fields: a field's position in its table; a union takes two, its type and its value.

Source: tensorflow_lite_support/metadata/metadata_schema.fbs of https://github.com/tensorflow/tflite-support, version
1.1.0. No name used here has different numbers in two tables.
"""


class ContentProperties(IntEnum):
    """Members of the union."""

    FEATURE = 1
    IMAGE = 2


class ColorSpace(IntEnum):
    """Values of ColorSpaceType."""

    RGB = 1
    GRAYSCALE = 2


class ProcessUnitOptions(IntEnum):
    """Members of the union."""

    NORMALIZATION = 1


class AssociatedFileType(IntEnum):
    """Values."""

    TENSOR_AXIS_LABELS = 2
    TENSOR_VALUE_LABELS = 3


COLOR_SPACES = {1: ColorSpace.GRAYSCALE, 3: ColorSpace.RGB}


@dataclass(frozen=True)
class Description:
    """The content of the metadata.

    Attributes:
        name: The model's name.
        text: One sentence about the model.
        ranges: Input -> its smallest and largest value.
        scores: The output whose last axis is the classes.
        labels: The class names in the order of their ids; may be empty.
    """

    name: str
    text: str
    ranges: Mapping[str, tuple[float, float]]
    scores: str
    labels: Sequence[str] = ()


def add_metadata(model: bytes, description: Description) -> bytes:
    """Returns the model with its metadata and, if there are any, with the labels appended.

    Raises:
        ExportError: There are more or fewer labels than classes.
    """
    parsed = flatbuffer_utils.convert_bytearray_to_object(model)
    buffer = schema.BufferT()
    buffer.data = np.frombuffer(_serialize(_model(parsed, description)), np.uint8)
    parsed.buffers.append(buffer)
    entry = schema.MetadataT()
    entry.name, entry.buffer = METADATA_NAME, len(parsed.buffers) - 1
    parsed.metadata = [*(parsed.metadata or []), entry]
    described = bytes(flatbuffer_utils.convert_object_to_bytearray(parsed))
    return _with_file(described, LABELS_NAME, "\n".join(description.labels)) if description.labels else described


def _with_file(model: bytes, name: str, text: str) -> bytes:
    stream = io.BytesIO(model)
    with zipfile.ZipFile(stream, "a") as archive:
        # With a fixed date, the same model gives the same bytes.
        archive.writestr(zipfile.ZipInfo(name, ZIP_EPOCH), text)
    return stream.getvalue()


def _model(parsed: schema.ModelT, description: Description) -> Table:
    [signature] = [s for s in parsed.signatureDefs if s.signatureKey.decode() == SIGNATURE]
    graph = parsed.subgraphs[signature.subgraphIndex]
    inputs = {tensor.tensorIndex: tensor.name.decode() for tensor in signature.inputs}
    outputs = {tensor.tensorIndex: tensor.name.decode() for tensor in signature.outputs}
    subgraph = {
        "name": SIGNATURE,
        "input_tensor_metadata": [_input(inputs[i], graph.tensors[i], description) for i in graph.inputs],
        "output_tensor_metadata": [_output(outputs[i], graph.tensors[i], description) for i in graph.outputs],
    }
    return {
        "name": description.name,
        "description": description.text,
        "subgraph_metadata": [subgraph],
        "min_parser_version": PARSER_VERSION,
    }


def _input(name: str, tensor: schema.TensorT, description: Description) -> Table:
    smallest, largest = description.ranges[name]
    table = {"name": name, "stats": {"max": [largest], "min": [smallest]}}
    shape = [int(size) for size in tensor.shape]
    if len(shape) != IMAGE_RANK or shape[-1] not in COLOR_SPACES:
        return table | {"description": "A transformed feature.", "content": _content(ContentProperties.FEATURE, {})}
    _batch, height, width, channels = shape
    image = {"color_space": COLOR_SPACES[channels], "default_size": {"width": width, "height": height}}
    # The identity normalization: the pixels go in as they are.
    unchanged = {"options_type": ProcessUnitOptions.NORMALIZATION, "options": {"mean": [0.0], "std": [1.0]}}
    return table | {
        "description": "An image; scaling is a part of the model.",
        "content": _content(ContentProperties.IMAGE, image),
        "process_units": [unchanged],
    }


def _output(name: str, tensor: schema.TensorT, description: Description) -> Table:
    table = {"name": name, "content": _content(ContentProperties.FEATURE, {})}
    if not description.labels:
        return table
    if name == description.scores:
        _check_labels(name, int(tensor.shape[-1]), description.labels)
        kind = AssociatedFileType.TENSOR_AXIS_LABELS
    elif tensor.type in (schema.TensorType.INT32, schema.TensorType.INT64):
        kind = AssociatedFileType.TENSOR_VALUE_LABELS
    else:
        return table
    text = "The class names, one a line, in the order of their ids."
    return table | {"associated_files": [{"name": LABELS_NAME, "description": text, "type": kind}]}


def _check_labels(name: str, classes: int, labels: Sequence[str]) -> None:
    if classes != len(labels):
        raise ExportError(
            f"the SavedModel names {len(labels)} classes ({', '.join(labels[:3])}, …), and its output {name!r} has "
            f"{classes}.",
            "Give assets.extra/labels.txt as many class names as the model has classes.",
        )


def _content(kind: ContentProperties, properties: Table) -> Table:
    return {"content_properties_type": kind, "content_properties": properties}


def _serialize(root: Table) -> bytes:
    """A flatbuffer with this root table."""
    builder = flatbuffers.Builder(1024)
    builder.Finish(_table(builder, root), file_identifier=FILE_IDENTIFIER)
    return bytes(builder.Output())


def _table(builder: flatbuffers.Builder, table: Table) -> int:
    # Whatever a table refers to has to be written before it.
    offsets = {name: _reference(builder, value) for name, value in table.items() if not isinstance(value, int)}
    builder.StartObject(max((FIELDS[name] for name in table), default=-1) + 1)
    for name, value in table.items():
        if isinstance(value, IntEnum):
            builder.PrependUint8Slot(FIELDS[name], value, 0)
        elif isinstance(value, int):
            builder.PrependUint32Slot(FIELDS[name], value, 0)
        else:
            builder.PrependUOffsetTRelativeSlot(FIELDS[name], offsets[name], 0)
    return int(builder.EndObject())


def _reference(builder: flatbuffers.Builder, value: str | Table | Sequence[float] | Sequence[Table]) -> int:
    if isinstance(value, str):
        return int(builder.CreateString(value))
    if isinstance(value, Mapping):
        return _table(builder, value)
    offsets = [_table(builder, item) for item in value if isinstance(item, Mapping)]
    builder.StartVector(4, len(value), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    for item in reversed(value):
        if not isinstance(item, Mapping):
            builder.PrependFloat32(item)
    return int(builder.EndVector())
