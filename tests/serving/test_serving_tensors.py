"""Tensors in requests and responses, compared with TensorFlow's own reading and writing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework.tensor_pb2 import TensorProto

from serving import messages
from serving.errors import Code, ServingError

LIMIT = 10_000
NUMBERS = [
    tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16,
    tf.uint32, tf.uint64, tf.bool, tf.complex64, tf.complex128,
]  # fmt: skip


def values_of(dtype: Any) -> Any:
    low = 0 if dtype.is_unsigned or dtype == tf.bool else -3
    return np.array([[low, 1, 0], [1, 0, 1]]).astype(dtype.as_numpy_dtype)


def proto(dtype: Any, *shape: int, **fields: Any) -> TensorProto:
    tensor = TensorProto(dtype=dtype.as_datatype_enum, **fields)
    for size in shape:
        tensor.tensor_shape.dim.add(size=size)
    return tensor


@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda dtype: dtype.name)
def test_what_is_written_in_typed_fields_is_what_tensorflow_reads(dtype: Any) -> None:
    values, tensor = values_of(dtype), TensorProto()
    messages.write_tensor(values, tensor)
    assert tensor.tensor_content == b""
    np.testing.assert_array_equal(tf.make_ndarray(tensor), values)
    array = messages.read_tensor("x", tensor, LIMIT)
    np.testing.assert_array_equal(array, values)
    assert array.dtype == values.dtype


@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda dtype: dtype.name)
def test_what_tensorflow_writes_as_content_is_read(dtype: Any) -> None:
    values = values_of(dtype)
    tensor = proto(dtype, 2, 3, tensor_content=values.tobytes())
    np.testing.assert_array_equal(messages.read_tensor("x", tensor, LIMIT), values)


def test_strings_are_bytes() -> None:
    tensor = TensorProto()
    messages.write_tensor(np.array([[b"a\x00", b""]], object), tensor)
    assert list(tensor.string_val) == [b"a\x00", b""]
    assert messages.read_tensor("x", tensor, LIMIT).tolist() == [[b"a\x00", b""]]


def test_strings_as_content_have_their_lengths_before_them() -> None:
    long = b"l" * 300
    content = b"\x02\x00\xac\x02" + b"ab" + long
    array = messages.read_tensor("x", proto(tf.string, 3, tensor_content=content), LIMIT)
    assert array.tolist() == [b"ab", b"", long]


def test_a_scalar_and_an_empty_tensor_keep_their_shapes() -> None:
    assert messages.read_tensor("x", proto(tf.int64, int64_val=[7]), LIMIT) == np.int64(7)
    assert messages.read_tensor("x", proto(tf.float32, 0, 4), LIMIT).shape == (0, 4)
    tensor = TensorProto()
    messages.write_tensor(np.zeros((0, 4), np.float32), tensor)
    assert [dimension.size for dimension in tensor.tensor_shape.dim] == [0, 4]


def test_missing_values_are_the_last_one_again_or_zeros() -> None:
    assert messages.read_tensor("x", proto(tf.float32, 3, float_val=[1.0, 2.0]), LIMIT).tolist() == [1.0, 2.0, 2.0]
    assert messages.read_tensor("x", proto(tf.float32, 2), LIMIT).tolist() == [0.0, 0.0]
    assert messages.read_tensor("x", proto(tf.string, 2), LIMIT).tolist() == [b"", b""]
    assert messages.read_tensor("x", proto(tf.float32, 1, float_val=[1.0, 2.0]), LIMIT).tolist() == [1.0]


def test_numbers_wrap_around_as_in_tensorflow() -> None:
    assert messages.read_tensor("x", proto(tf.int8, 1, int_val=[1000]), LIMIT).tolist() == [-24]
    assert np.isnan(messages.read_tensor("x", proto(tf.float16, 1, half_val=[-1]), LIMIT)).all()


@pytest.mark.parametrize(
    "broken",
    [
        proto(tf.float32, 2, tensor_content=b"123"),
        proto(tf.float32, 2, tensor_content=b"1234"),
        proto(tf.float32, -1, float_val=[1.0]),
        proto(tf.string, 2, tensor_content=b"\x01"),
        proto(tf.string, 2, tensor_content=b"\x01\x05ab"),
        proto(tf.string, 1, tensor_content=b"\xff"),
        proto(tf.variant, 1),
        TensorProto(dtype=0),
        TensorProto(dtype=1, tensor_shape={"unknown_rank": True}),
    ],
    ids=str,
)
def test_what_does_not_fit_together_is_refused(broken: TensorProto) -> None:
    with pytest.raises(ServingError, match=r"^tensor parsing error: x$") as caught:
        messages.read_tensor("x", broken, LIMIT)
    assert caught.value.code is Code.INVALID_ARGUMENT


def test_a_tensor_above_the_limit_is_refused_before_memory_is_taken() -> None:
    text = "tensor x of shape .2048, 1048576. takes 8589934592 bytes, expected at most 10000"
    with pytest.raises(ServingError, match=text) as caught:
        messages.read_tensor("x", proto(tf.float32, 1 << 11, 1 << 20), LIMIT)
    assert caught.value.code is Code.RESOURCE_EXHAUSTED
    with pytest.raises(ServingError, match="takes 25769803776 bytes, expected at most 10000"):
        messages.read_tensor("x", proto(tf.string, 1 << 30), LIMIT)


def test_a_type_without_a_field_is_refused() -> None:
    with pytest.raises(ServingError, match="tensors of type qint8 cannot be sent"):
        messages.write_tensor(np.zeros(1, tf.qint8.as_numpy_dtype), TensorProto())
