"""TensorFlow Lite Metadata: what goes in and comes out, written into the model as Netron and the Task Library read it.

The description is a flatbuffer of its own in one of the model's buffers; the labels are a file in a zip archive that is
appended to the model, which TF Lite itself does not look at.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.tools import flatbuffer_utils

from components.errors import ExportError
from components.tflite import metadata_schema as fields
from components.tflite.metadata_schema import Byte, Table, Unsigned
from components.tflite.saved_model import SIGNATURE

METADATA_NAME = "TFLITE_METADATA"
"""The entry of the model's metadata under which TF Lite's tools look for the description."""

LABELS_NAME = "labels.txt"
PARSER_VERSION = "1.0.0"
"""The first version of the schema with every field that is written here."""

IMAGE_RANK = 4
COLOR_SPACES = {1: fields.ColorSpace.GRAYSCALE, 3: fields.ColorSpace.RGB}
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Description:
    """What the metadata say.

    Attributes:
        name: The model's name.
        text: One sentence about it.
        ranges: The smallest and the largest value of each input by name.
        scores: The output whose last axis is the classes.
        labels: The class names in the order of their ids; may be empty.
    """

    name: str
    text: str
    ranges: Mapping[str, tuple[float, float]]
    scores: str
    labels: Sequence[str] = ()


def write(model: bytes, description: Description) -> bytes:
    """The model with its metadata, and with the labels appended where there are any.

    Raises:
        ExportError: There are more or fewer labels than classes.
    """
    parsed = flatbuffer_utils.convert_bytearray_to_object(model)
    buffer = schema.BufferT()
    buffer.data = np.frombuffer(fields.serialize(_model(parsed, description)), np.uint8)
    parsed.buffers.append(buffer)
    entry = schema.MetadataT()
    entry.name, entry.buffer = METADATA_NAME, len(parsed.buffers) - 1
    parsed.metadata = [*(parsed.metadata or []), entry]
    written = bytes(flatbuffer_utils.convert_object_to_bytearray(parsed))
    return _with_file(written, LABELS_NAME, "\n".join(description.labels)) if description.labels else written


def _with_file(model: bytes, name: str, text: str) -> bytes:
    stream = io.BytesIO(model)
    with zipfile.ZipFile(stream, "a") as archive:
        # A fixed date, so that the same model gives the same bytes.
        archive.writestr(zipfile.ZipInfo(name, ZIP_EPOCH), text)
    return stream.getvalue()


def _model(parsed: schema.ModelT, description: Description) -> Table:
    [signature] = [s for s in parsed.signatureDefs if s.signatureKey.decode() == SIGNATURE]
    graph = parsed.subgraphs[signature.subgraphIndex]
    inputs = {tensor.tensorIndex: tensor.name.decode() for tensor in signature.inputs}
    outputs = {tensor.tensorIndex: tensor.name.decode() for tensor in signature.outputs}
    described: Table = {
        fields.SubGraphMetadata.NAME: SIGNATURE,
        fields.SubGraphMetadata.INPUT_TENSOR_METADATA: [
            _input(inputs[index], graph.tensors[index], description) for index in graph.inputs
        ],
        fields.SubGraphMetadata.OUTPUT_TENSOR_METADATA: [
            _output(outputs[index], graph.tensors[index], description) for index in graph.outputs
        ],
    }
    return {
        fields.ModelMetadata.NAME: description.name,
        fields.ModelMetadata.DESCRIPTION: description.text,
        fields.ModelMetadata.SUBGRAPH_METADATA: [described],
        fields.ModelMetadata.MIN_PARSER_VERSION: PARSER_VERSION,
    }


def _input(name: str, tensor: schema.TensorT, description: Description) -> Table:
    smallest, largest = description.ranges[name]
    shape = [int(size) for size in tensor.shape]
    table: dict[int, fields.Field] = {
        fields.TensorMetadata.NAME: name,
        fields.TensorMetadata.STATS: {fields.Stats.MAX: [largest], fields.Stats.MIN: [smallest]},
    }
    if len(shape) != IMAGE_RANK or shape[-1] not in COLOR_SPACES:
        return table | {
            fields.TensorMetadata.DESCRIPTION: "A transformed feature.",
            fields.TensorMetadata.CONTENT: _content(fields.ContentProperties.FEATURE, {}),
        }
    return table | {
        fields.TensorMetadata.DESCRIPTION: "An image; scaling is a part of the model.",
        fields.TensorMetadata.CONTENT: _content(fields.ContentProperties.IMAGE, _image(shape)),
        fields.TensorMetadata.PROCESS_UNITS: [_unchanged()],
    }


def _output(name: str, tensor: schema.TensorT, description: Description) -> Table:
    table: dict[int, fields.Field] = {
        fields.TensorMetadata.NAME: name,
        fields.TensorMetadata.CONTENT: _content(fields.ContentProperties.FEATURE, {}),
    }
    if not description.labels:
        return table
    if name == description.scores:
        _check_labels(name, int(tensor.shape[-1]), description.labels)
        files = _labels(fields.AssociatedFileType.TENSOR_AXIS_LABELS)
    elif tensor.type in (schema.TensorType.INT32, schema.TensorType.INT64):
        files = _labels(fields.AssociatedFileType.TENSOR_VALUE_LABELS)
    else:
        return table
    return table | {fields.TensorMetadata.ASSOCIATED_FILES: [files]}


def _check_labels(name: str, classes: int, labels: Sequence[str]) -> None:
    if classes != len(labels):
        raise ExportError(
            f"the SavedModel names {len(labels)} classes ({', '.join(labels[:3])}, …), and its output {name!r} has "
            f"{classes}.",
            "Make the class names in assets.extra/labels.txt as many as the model's classes.",
        )


def _content(kind: fields.ContentProperties, properties: Table) -> Table:
    return {fields.Content.PROPERTIES_TYPE: Byte(kind), fields.Content.PROPERTIES: properties}


def _image(shape: Sequence[int]) -> Table:
    _batch, height, width, channels = shape
    size: Table = {fields.ImageSize.WIDTH: Unsigned(width), fields.ImageSize.HEIGHT: Unsigned(height)}
    return {
        fields.ImageProperties.COLOR_SPACE: Byte(COLOR_SPACES[channels]),
        fields.ImageProperties.DEFAULT_SIZE: size,
    }


def _unchanged() -> Table:
    """Normalization that changes nothing: the pixels go in as they are."""
    options: Table = {fields.NormalizationOptions.MEAN: [0.0], fields.NormalizationOptions.STD: [1.0]}
    return {
        fields.ProcessUnit.OPTIONS_TYPE: Byte(fields.ProcessUnitOptions.NORMALIZATION),
        fields.ProcessUnit.OPTIONS: options,
    }


def _labels(kind: fields.AssociatedFileType) -> Table:
    return {
        fields.AssociatedFile.NAME: LABELS_NAME,
        fields.AssociatedFile.DESCRIPTION: "The class names, one a line, in the order of their ids.",
        fields.AssociatedFile.TYPE: Byte(kind),
    }
