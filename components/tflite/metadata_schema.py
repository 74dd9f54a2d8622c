"""The numbers of TensorFlow Lite Metadata's schema, and the writing of flatbuffer tables by number.

Source: https://github.com/tensorflow/tflite-support/blob/master/tensorflow_lite_support/metadata/metadata_schema.fbs,
schema version 1.1.0. A field's number is its position in its table, a union taking two: its type and its value. The
package `tflite-support` has generated classes for it, but needs a system library for USB devices to be imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import flatbuffers

FILE_IDENTIFIER = b"M001"


class ModelMetadata(IntEnum):
    """Fields of the root table."""

    NAME = 0
    DESCRIPTION = 1
    SUBGRAPH_METADATA = 3
    MIN_PARSER_VERSION = 7


class SubGraphMetadata(IntEnum):
    """Fields; the tensors stand in the order of `SubGraph.inputs` and `SubGraph.outputs`."""

    NAME = 0
    INPUT_TENSOR_METADATA = 2
    OUTPUT_TENSOR_METADATA = 3


class TensorMetadata(IntEnum):
    """Fields."""

    NAME = 0
    DESCRIPTION = 1
    CONTENT = 3
    PROCESS_UNITS = 4
    STATS = 5
    ASSOCIATED_FILES = 6


class Content(IntEnum):
    """Fields; the properties are a union."""

    PROPERTIES_TYPE = 0
    PROPERTIES = 1


class ContentProperties(IntEnum):
    """Members of the union."""

    FEATURE = 1
    IMAGE = 2


class ImageProperties(IntEnum):
    """Fields."""

    COLOR_SPACE = 0
    DEFAULT_SIZE = 1


class ImageSize(IntEnum):
    """Fields."""

    WIDTH = 0
    HEIGHT = 1


class ColorSpace(IntEnum):
    """Values of ColorSpaceType."""

    RGB = 1
    GRAYSCALE = 2


class ProcessUnit(IntEnum):
    """Fields; the options are a union."""

    OPTIONS_TYPE = 0
    OPTIONS = 1


class ProcessUnitOptions(IntEnum):
    """Members of the union."""

    NORMALIZATION = 1


class NormalizationOptions(IntEnum):
    """Fields: `(x - mean) / std`, a value a channel or one for all."""

    MEAN = 0
    STD = 1


class Stats(IntEnum):
    """Fields; a value a channel or one for all."""

    MAX = 0
    MIN = 1


class AssociatedFile(IntEnum):
    """Fields."""

    NAME = 0
    DESCRIPTION = 1
    TYPE = 2


class AssociatedFileType(IntEnum):
    """Values."""

    TENSOR_AXIS_LABELS = 2
    TENSOR_VALUE_LABELS = 3


@dataclass(frozen=True)
class Byte:
    """An enum's or a union's one-byte value."""

    value: int


@dataclass(frozen=True)
class Unsigned:
    """A 32-bit unsigned integer."""

    value: int


Table = Mapping[int, "Field"]
Field = str | Byte | Unsigned | Table | Sequence[float] | Sequence[Table]


def serialize(root: Table) -> bytes:
    """A metadata flatbuffer with this root table."""
    builder = flatbuffers.Builder(1024)
    builder.Finish(_table(builder, root), file_identifier=FILE_IDENTIFIER)
    return bytes(builder.Output())


def _table(builder: flatbuffers.Builder, table: Table) -> int:
    # What a table refers to has to be written before it.
    offsets = {
        slot: _reference(builder, field) for slot, field in table.items() if not isinstance(field, (Byte, Unsigned))
    }
    builder.StartObject(max(table, default=-1) + 1)
    for slot, field in table.items():
        if isinstance(field, Byte):
            builder.PrependUint8Slot(slot, field.value, 0)
        elif isinstance(field, Unsigned):
            builder.PrependUint32Slot(slot, field.value, 0)
        else:
            builder.PrependUOffsetTRelativeSlot(slot, offsets[slot], 0)
    return int(builder.EndObject())


def _reference(builder: flatbuffers.Builder, field: str | Table | Sequence[float] | Sequence[Table]) -> int:
    if isinstance(field, str):
        return int(builder.CreateString(field))
    if isinstance(field, Mapping):
        return _table(builder, field)
    return _vector(builder, field)


def _vector(builder: flatbuffers.Builder, values: Sequence[float] | Sequence[Table]) -> int:
    offsets = [_table(builder, value) for value in values if isinstance(value, Mapping)]
    builder.StartVector(4, len(values), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    for value in reversed(values):
        if not isinstance(value, Mapping):
            builder.PrependFloat32(value)
    return int(builder.EndVector())
