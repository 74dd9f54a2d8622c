"""TensorProto to NumPy and back, as TensorFlow Serving reads and writes them.

Requests may carry values in typed fields or in `tensor_content`; responses carry typed fields alone, for clients that
read nothing else.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto

from serving.errors import Code, ServingError

Array = np.ndarray[Any, Any]

# The field that holds the values of each type; halves are held as their 16 bits in an int.
FIELDS = {
    tf.float32: "float_val",
    tf.float64: "double_val",
    tf.float16: "half_val",
    tf.bfloat16: "half_val",
    tf.int64: "int64_val",
    tf.int32: "int_val",
    tf.int16: "int_val",
    tf.int8: "int_val",
    tf.uint8: "int_val",
    tf.uint16: "int_val",
    tf.uint32: "uint32_val",
    tf.uint64: "uint64_val",
    tf.bool: "bool_val",
    tf.string: "string_val",
    tf.complex64: "scomplex_val",
    tf.complex128: "dcomplex_val",
}
# What a string takes in TensorFlow beside its text; TensorFlow says 0 of it.
STRING_BYTES = 24
HALVES = {tf.float16, tf.bfloat16}
PARTS = {tf.complex64: np.float32, tf.complex128: np.float64}
DTYPES = {dtype.as_datatype_enum: dtype for dtype in FIELDS}


def to_array(name: str, proto: TensorProto, max_bytes: int) -> Array:
    """Reads a tensor of a request.

    Too few values in a typed field stand for the last one repeated, none for zeros: so TensorFlow has it.

    Args:
        name: What the request calls the tensor.
        proto: The tensor.
        max_bytes: How much memory it may take: a few bytes can stand for a tensor of any size.

    Returns:
        An array of the tensor's type and shape; strings as `bytes` objects.

    Raises:
        ServingError: INVALID_ARGUMENT, shape, type and values do not fit; RESOURCE_EXHAUSTED, it is too large.
    """
    dtype = DTYPES.get(proto.dtype)
    shape = [dimension.size for dimension in proto.tensor_shape.dim]
    if dtype is None or proto.tensor_shape.unknown_rank or any(size < 0 for size in shape):
        raise ServingError(Code.INVALID_ARGUMENT, f"tensor parsing error: {name}")
    elements = math.prod(shape)
    size = elements * (dtype.size or STRING_BYTES)
    if size > max_bytes:
        raise ServingError(
            Code.RESOURCE_EXHAUSTED,
            f"tensor {name} of shape {shape} takes {size} bytes, expected at most {max_bytes}",
        )
    try:
        values = _content(proto, dtype, elements) if proto.tensor_content else _typed(proto, dtype, elements)
        return values.reshape(shape)
    except (ValueError, OverflowError) as error:
        raise ServingError(Code.INVALID_ARGUMENT, f"tensor parsing error: {name}") from error


def write(array: Array, proto: TensorProto) -> None:
    """Writes a tensor of a response into an empty `proto`: every value, in the typed field of the array's type.

    Raises:
        ServingError: UNIMPLEMENTED, a protocol buffer has no field for the type.
    """
    dtype = tf.as_dtype(array.dtype)
    if dtype not in FIELDS:
        raise ServingError(Code.UNIMPLEMENTED, f"tensors of type {dtype.name} cannot be sent")
    proto.dtype = dtype.as_datatype_enum
    proto.tensor_shape.SetInParent()
    for size in array.shape:
        proto.tensor_shape.dim.add(size=size)
    flat = array.ravel()
    if dtype in HALVES:
        flat = flat.view(np.uint16)
    elif dtype in PARTS:
        flat = flat.view(PARTS[dtype])
    getattr(proto, FIELDS[dtype]).extend(flat.tolist())


def _typed(proto: TensorProto, dtype: tf.DType, elements: int) -> Array:
    field = getattr(proto, FIELDS[dtype])
    if dtype == tf.string:
        values = np.empty(len(field), object)
        values[:] = field
    elif dtype in HALVES:
        values = np.array(field, np.int32).astype(np.uint16).view(dtype.as_numpy_dtype)
    elif dtype in PARTS:
        values = np.array(field, PARTS[dtype]).view(dtype.as_numpy_dtype)
    elif FIELDS[dtype] == "int_val":
        # Numbers too large for a smaller type wrap around, as in TensorFlow.
        values = np.array(field, np.int32).astype(dtype.as_numpy_dtype)
    else:
        values = np.array(field, dtype.as_numpy_dtype)
    if len(values) >= elements:
        return values[:elements]
    padded = np.zeros(elements, values.dtype)
    if dtype == tf.string:
        padded[:] = b""
    padded[: len(values)] = values
    if len(values):
        padded[len(values) :] = values[-1]
    return padded


def _content(proto: TensorProto, dtype: tf.DType, elements: int) -> Array:
    if dtype == tf.string:
        return _strings(proto.tensor_content, elements)
    values = np.frombuffer(proto.tensor_content, dtype.as_numpy_dtype)
    if len(values) != elements:
        raise ValueError(f"{len(values)} values, expected {elements}")
    return values


def _strings(content: bytes, elements: int) -> Array:
    """The strings whose lengths stand at the beginning of `content`, as varints, and whose bytes follow."""
    lengths, position = [], 0
    for _ in range(elements):
        length, position = _varint(content, position)
        lengths.append(length)
    if position + sum(lengths) != len(content):
        raise ValueError(f"{len(content)} bytes, expected {position + sum(lengths)}")
    values = np.empty(elements, object)
    for index, length in enumerate(lengths):
        values[index] = content[position : position + length]
        position += length
    return values


def _varint(content: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(content):
            raise ValueError("the content ends within a length")
        byte = content[position]
        value |= (byte & 0x7F) << shift
        position += 1
        shift += 7
        if byte < 0x80:
            return value, position
