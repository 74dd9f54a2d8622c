"""Arrays in the messages of TensorFlow Serving's APIs: tensors, classifications, regressions.

Rules and messages are those of TensorFlow Serving 2.16.1 (servables/tensorflow/classifier.cc, regressor.cc). Requests
may carry values in typed fields or in `tensor_content`; responses carry only typed fields, since some clients read no
others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow.core.framework.types_pb2 import DataType
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef
from tensorflow_serving.apis.classification_pb2 import ClassificationResult
from tensorflow_serving.apis.input_pb2 import Input
from tensorflow_serving.apis.regression_pb2 import RegressionResult

from serving.errors import Code, ServingError, invalid

Array = np.ndarray[Any, Any]

# The field that holds the values of each type; a half-precision value is the 16 bits in an int.
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
# The bytes that a string takes in TensorFlow besides its text; TensorFlow gives its size as 0.
STRING_BYTES = 24
HALVES = {tf.float16, tf.bfloat16}
PARTS = {tf.complex64: np.float32, tf.complex128: np.float64}
DTYPES = {dtype.as_datatype_enum: dtype for dtype in FIELDS}


def read_tensor(name: str, proto: TensorProto, max_bytes: int) -> Array:
    """Reads a tensor of a request.

    As in TensorFlow, a typed field with too few values repeats the last one, and one with none means zeros.

    Args:
        name: What the request calls the tensor.
        proto: The tensor.
        max_bytes: How much memory it may take; a few bytes can describe a tensor of any size.

    Returns:
        An array of the tensor's type and shape; strings as `bytes` objects.

    Raises:
        ServingError: INVALID_ARGUMENT, shape, type and values do not match; RESOURCE_EXHAUSTED, it is too large.
    """
    dtype = DTYPES.get(proto.dtype)
    shape = [dimension.size for dimension in proto.tensor_shape.dim]
    if dtype is None or proto.tensor_shape.unknown_rank or any(size < 0 for size in shape):
        raise invalid(f"tensor parsing error: {name}")
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
        raise invalid(f"tensor parsing error: {name}") from error


def write_tensor(array: Array, proto: TensorProto) -> None:
    """Writes a response's tensor into an empty `proto`: every value, in the typed field of the array's type.

    Raises:
        ServingError: UNIMPLEMENTED, protocol buffers have no field for the type.
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
    """The strings in `content`, which begins with their lengths as varints; their bytes follow."""
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


INPUTS = "inputs"
CLASSES, SCORES = "classes", "scores"
OUTPUTS = "outputs"

Outputs = Mapping[str, np.ndarray[Any, Any]]


def serialized_examples(examples_input: Input) -> list[bytes]:
    """The serialized tf.Examples of an Input, each with the context's features before its own.

    Concatenated serialized messages parse as one message with the fields of all.
    """
    context = examples_input.example_list_with_context.context.SerializeToString()
    examples = examples_input.example_list_with_context.examples or examples_input.example_list.examples
    return [context + example.SerializeToString() for example in examples]


def check_classification(signature: SignatureDef) -> list[str]:
    """Checks that a signature can classify.

    Returns:
        The names of the outputs to compute.

    Raises:
        ServingError: INVALID_ARGUMENT, its inputs or outputs are not those of a classifier.
    """
    _check_one_input(signature, "classification")
    if len(signature.outputs) not in {1, 2}:
        raise invalid(f"Expected one or two output Tensors, found {len(signature.outputs)}")
    outputs = [name for name in (CLASSES, SCORES) if name in signature.outputs]
    if not outputs:
        raise invalid(
            f'Expected classification signature outputs to contain at least one of "{CLASSES}" or "{SCORES}". '
            f"Signature was: {signature}"
        )
    return outputs


def check_regression(signature: SignatureDef) -> list[str]:
    """Checks that a signature can regress; returns and raises like `check_classification`."""
    _check_one_input(signature, "regression")
    if len(signature.outputs) != 1:
        raise invalid("Expected one output Tensor.")
    if OUTPUTS not in signature.outputs:
        raise invalid(f"No regression outputs found in SignatureDef: {signature}")
    return [OUTPUTS]


def make_classification(outputs: Outputs, examples: int) -> ClassificationResult:
    """Builds the result from a classifier's outputs.

    Args:
        outputs: `classes`, strings, or `scores`, float32, or both; each of shape [examples, classes].
        examples: The number of examples in the request.

    Raises:
        ServingError: INVALID_ARGUMENT, the outputs have another type or shape.
    """
    classes, scores = outputs.get(CLASSES), outputs.get(SCORES)
    for name, values, dtype in ((CLASSES, classes, "DT_STRING"), (SCORES, scores, "DT_FLOAT")):
        if values is not None:
            _check_matrix(name, values, dtype, examples)
    if classes is not None and scores is not None and classes.shape[1] != scores.shape[1]:
        raise invalid(
            f"Tensors class and score should match in dim_size(1). Got {classes.shape[1]} vs. {scores.shape[1]}"
        )
    labels = None if classes is None else classes.tolist()
    numbers = None if scores is None else scores.tolist()
    width = next(values.shape[1] for values in (classes, scores) if values is not None)
    result = ClassificationResult()
    for row in range(examples):
        entry = result.classifications.add()
        for column in range(width):
            added = entry.classes.add()
            if labels is not None:
                added.label = labels[row][column]
            if numbers is not None:
                added.score = numbers[row][column]
    return result


def make_regression(outputs: Outputs, examples: int) -> RegressionResult:
    """Builds the result from a regressor's output.

    Args:
        outputs: `outputs`, float32 of shape [examples] or [examples, 1].
        examples: The number of examples in the request.

    Raises:
        ServingError: INVALID_ARGUMENT, the output has another type or shape.
    """
    values = outputs[OUTPUTS]
    if not (values.ndim == 1 or (values.ndim == 2 and values.shape[1] == 1)):
        raise invalid(
            f"Expected output Tensor shape to be either [batch_size] or [batch_size, 1] but got {_shape(values)}"
        )
    if len(values) != examples:
        raise invalid(f"Input batch size did not match output batch size: {examples} vs. {len(values)}")
    if values.dtype != np.float32:
        raise invalid(f"Expected output Tensor of DT_FLOAT.  Got: {_type(values)}")
    result = RegressionResult()
    for value in values.ravel().tolist():
        result.regressions.add(value=value)
    return result


def _check_one_input(signature: SignatureDef, method: str) -> None:
    if len(signature.inputs) != 1:
        raise invalid("Expected one input Tensor.")
    if INPUTS not in signature.inputs:
        raise invalid(f"No {method} inputs found in SignatureDef: {signature}")


def _check_matrix(name: str, values: np.ndarray[Any, Any], dtype: str, examples: int) -> None:
    if values.ndim != 2:
        raise invalid(f"Expected Tensor shape: [batch_size num_classes] but got {_shape(values)}")
    if _type(values) != dtype:
        raise invalid(f"Expected {name} Tensor of {dtype}. Got: {_type(values)}")
    if len(values) != examples:
        raise invalid(f"Expected {name} output batch size of {examples}. Got: {len(values)}")


def _shape(values: np.ndarray[Any, Any]) -> str:
    return f"[{','.join(map(str, values.shape))}]"


def _type(values: np.ndarray[Any, Any]) -> str:
    return str(DataType.Name(tf.as_dtype(values.dtype).as_datatype_enum))
