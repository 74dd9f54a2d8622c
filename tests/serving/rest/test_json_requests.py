"""Conversion of JSON requests to arrays and of arrays to JSON, against TensorFlow Serving's rules and messages."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from serving.errors import Code, ServingError
from serving.models.servable import TensorSpec
from serving.rest import json_output, json_requests

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"]
SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4)


def spec(dtype: Any) -> TensorSpec:
    return TensorSpec("x:0", tf.as_dtype(dtype), None)


def inputs(request: Any, **dtypes: Any) -> dict[str, np.ndarray]:
    body = request if isinstance(request, bytes) else json.dumps(request).encode()
    specs = {name: spec(dtype) for name, dtype in dtypes.items()}
    document = json_requests.parse(body)
    json_requests.signature_name(document)
    return json_requests.predict_inputs(document, specs)[0]


def refusal(request: Any, **dtypes: Any) -> str:
    with pytest.raises(ServingError) as caught:
        inputs(request, **dtypes)
    assert caught.value.code is Code.INVALID_ARGUMENT
    return caught.value.message


def output(**arrays: Any) -> Any:
    return json.loads(json_output.columns(arrays))["outputs"]


def equal(array: np.ndarray, expected: Any, dtype: Any) -> None:
    assert array.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(array, np.array(expected, dtype))


def test_rows() -> None:
    equal(inputs({"instances": [1, 2.5, -3]}, x="float32")["x"], [1, 2.5, -3], np.float32)
    equal(inputs({"instances": [[[1], [2]], [[3], [4]]]}, x="int64")["x"], [[[1], [2]], [[3], [4]]], np.int64)
    arrays = inputs(
        {"instances": [{"a": [1, 2], "b": "u"}, {"b": {"b64": "/w=="}, "a": [3, 4]}]}, a="int32", b="string"
    )
    equal(arrays["a"], [[1, 2], [3, 4]], np.int32)
    assert arrays["b"].tolist() == [b"u", b"\xff"]


def test_columns() -> None:
    equal(inputs({"inputs": 7}, x="float32")["x"], 7, np.float32)
    equal(inputs({"inputs": []}, x="float32")["x"], [], np.float32)
    arrays = inputs({"inputs": {"a": [[True], [False]], "b": 2, "more": 1}}, a="bool", b="uint8")
    equal(arrays["a"], [[True], [False]], bool)
    equal(arrays["b"], 2, np.uint8)


def test_bare_names_of_numbers() -> None:
    array = inputs(b'{"instances": [NaN, Infinity, -Infinity, 18446744073709551616]}', x="float32")["x"]
    equal(array, [np.nan, np.inf, -np.inf, 2.0**64], np.float32)
    equal(inputs(b'{"instances": [1e39]}', x="float32")["x"], [np.inf], np.float32)


REFUSED = [
    ({"instances": []}, "No values in 'instances' array"),
    ({"instances": 1}, "Expecting 'instances' to be an list/array"),
    ({"instances": [1], "inputs": [1]}, "expecting only one of 'inputs' or 'instances' keys to exist"),
    ({}, "Missing 'inputs' or 'instances' key"),
    ({"instances": [1], "signature_name": 3}, "'signature_name' key must be a string value."),
    ({"instances": [True]}, "JSON Value: true Type: True is not of expected type: float"),
    ({"instances": [None]}, "JSON Value: null Type: Null is not of expected type: float"),
    (
        {"instances": [1, "2"]},
        "element: 1 of 'instances' list. Error: INVALID_ARGUMENT: JSON Value: \"2\" Type: String",
    ),
    ({"instances": [{"b64": "YQ=="}]}, "Type: Object is not of expected type: float"),
    ({"instances": [[1, 2], [3]]}, "Expecting tensor size: 2 but got: 1"),
    ({"instances": [[1, 2], [[3], [4]]]}, "Expecting shape [2] but got: [2,1]"),
    ({"instances": [[[1], 2]]}, "JSON Value: 2 found at incorrect level: 2 in the JSON DOM. Expected at level: 2"),
    ({"instances": [[1, [2]]]}, "Encountered list at unexpected level: 1 expected < 1"),
    ({"inputs": [[1, 2], [3]]}, "Encountered list at unexpected size: 1 at level: 1 expected size: 2"),
    (
        {"instances": [{"y": 1}]},
        "key: y of 'instances' list. Error: INVALID_ARGUMENT: JSON object: does not have named",
    ),
    ({"instances": [{"x": 1}, {}]}, "element: 1 of 'instances' list. JSON object: {} keys must be equal to: x"),
    ({"instances": [{"x": 1}, 2]}, "Expecting object but got list at item 1 of input list"),
    ({"instances": [2, {"x": 1}]}, "Expecting value/list but got object at item 1 of input list"),
    ({"inputs": {"y": 1}}, "Missing named input: x in 'inputs' object."),
    ([1], "JSON Value: [1] Is not object"),
    (b"", "JSON Parse error: The document is empty"),
    (b'{"instances": [1', "JSON Parse error: "),
    (b'{"instances": [NaN], "signature_name": "\\ud800"}', "The surrogate pair in string is invalid."),
    (b'{"instances": [nan]}', "JSON Parse error: "),
    (b'{"instances": ["\xff"]}', "JSON Parse error: "),
    (b'{"instances": [NaN, "\xff"]}', "JSON Parse error: "),
    (b'{"instances": ' + b"[" * 100_000, "JSON Parse error: "),
    (b'{"instances": [NaN, ' + b"[" * 100_000, "JSON Parse error: nested deeper than 64 levels"),
    (b'{"instances": [' + b"[" * 500 + b"]" * 501 + b"}", "JSON Value has more than 31 dimensions"),
    (b'{"instances": [1], "signature_name": ' + b"[" * 900 + b"]" * 900 + b"}", "'signature_name' key must be"),
]


@pytest.mark.parametrize(("request_", "text"), REFUSED)
def test_refused(request_: Any, text: str) -> None:
    assert text in refusal(request_, x="float32")


def test_several_inputs_want_objects() -> None:
    assert refusal({"instances": [1]}, a="float32", b="float32").startswith("instances is a plain list, but expecting")
    assert refusal({"inputs": [1]}, a="float32", b="float32").startswith("inputs is a plain value/list, but expecting")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_keep_to_their_type(dtype: str) -> None:
    info = np.iinfo(dtype)
    equal(inputs({"instances": [info.min, info.max]}, x=dtype)["x"], [info.min, info.max], dtype)
    for wrong in (info.min - 1, info.max + 1, 1.0):
        assert f"Type: Number is not of expected type: {dtype}" in refusal({"instances": [wrong]}, x=dtype)


def test_base64() -> None:
    assert inputs({"inputs": [{"b64": "YQ"}]}, x="string")["x"].tolist() == [b"a"]
    assert "Unable to base64 decode" in refusal({"inputs": [{"b64": "*"}]}, x="string")
    for wrong in ({"b64": 1}, {"b64": "YQ==", "more": 1}):
        assert "not formatted correctly for base64 data" in refusal({"inputs": [wrong]}, x="string")


def test_types_that_json_has_no_form_for() -> None:
    with pytest.raises(ServingError, match="Conversion of JSON Value: 1 to type: half") as caught:
        inputs({"inputs": [1]}, x="float16")
    assert caught.value.code is Code.UNIMPLEMENTED
    # TensorFlow Serving calls anything wrong with one of several rows an invalid argument.
    assert refusal({"instances": [1]}, x="float16") == (
        "Failed to process element: 0 of 'instances' list. Error: UNIMPLEMENTED: "
        "Conversion of JSON Value: 1 to type: half"
    )
    with pytest.raises(ServingError, match="Failed to write JSON value for tensor type: half"):
        json_output.columns({"y": np.ones(1, np.float16)})


def test_a_byte_order_mark_is_skipped() -> None:
    equal(inputs(b'\xef\xbb\xbf{"instances": [1]}', x="int8")["x"], [1], np.int8)
    assert refusal(b"\xef\xbb\xbf", x="int8") == "JSON Parse error: The document is empty"


def test_numbers_are_printed_as_tensorflow_serving_prints_them() -> None:
    numbers = [2.1, 1.0, -0.0, 9e6, 3e-5, 1 / 3, 16777216, 123456789, 1e10, np.nan, np.inf, -np.inf]
    assert json_output.decimals(np.array(numbers, np.float32)) == [
        *("2.1", "1.0", "-0.0", "9e+06", "3e-05", "0.333333343", "16777216.0", "123456792.0", "1e+10"),
        *("NaN", "Infinity", "-Infinity"),
    ]
    assert json_output.decimals(np.array([0.1, 1 / 3, 1e15 + 1], np.float64)) == [
        *("0.1", "0.33333333333333331", "1000000000000001.0")
    ]


def test_answers() -> None:
    y, z = np.array([2.5, 3], np.float32), np.array([[1], [2]])
    assert json_output.predictions({"y": y}) == b'{\n    "predictions": [2.5, 3.0\n    ]\n}'
    assert json.loads(json_output.predictions({"y": y, "z": z})) == {
        "predictions": [{"y": 2.5, "z": [1]}, {"y": 3.0, "z": [2]}]
    }
    assert json.loads(json_output.columns({"y": y, "z": z})) == {"outputs": {"y": [2.5, 3.0], "z": [[1], [2]]}}
    assert json.loads(json_output.predictions({"y": y[:0]})) == {"predictions": []}
    assert output(y=np.float32(4)) == 4.0
    assert json.loads(json_output.error('a "quoted"\n')) == {"error": 'a "quoted"\n'}


def test_strings_and_bytes() -> None:
    values = np.array([b"\xc3\xa9", b"\xff"], object)
    assert output(y=values) == ["é", {"b64": "/w=="}]
    assert output(y_bytes=values) == [{"b64": "w6k="}, {"b64": "/w=="}]


def test_rows_must_agree() -> None:
    with pytest.raises(ServingError, match="Tensor name: y has no shape information"):
        json_output.predictions({"y": np.float32(1)})
    with pytest.raises(ServingError, match="Tensor name: z has inconsistent batch size: 1 expecting: 2"):
        json_output.predictions({"y": np.ones(2), "z": np.ones(1)})


def same_after_a_round_trip(array: np.ndarray, dtype: Any) -> None:
    body = b'{"inputs": {"x": ' + json_output.columns({"x": array})[len('{\n    "outputs": ') : -1] + b"}}"
    read_back = inputs(body, x=dtype)["x"]
    # A list without elements has no further dimensions.
    expected = array if array.size else array.reshape(array.shape[: array.shape.index(0) + 1])
    assert read_back.dtype == expected.dtype
    np.testing.assert_array_equal(read_back, expected)


@given(st.sampled_from(["float32", "float64", "bool", *INTEGERS]).flatmap(lambda t: hnp.arrays(np.dtype(t), SHAPES)))
def test_arrays_survive_a_round_trip(array: np.ndarray) -> None:
    same_after_a_round_trip(array, array.dtype.name)


@given(st.lists(st.binary(max_size=5), max_size=5))
def test_bytes_survive_a_round_trip(values: list[bytes]) -> None:
    array = np.empty(len(values), object)
    array[:] = values
    same_after_a_round_trip(array, "string")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["x", "b64", "instances", "inputs"]), inner, max_size=3)
    ),
    max_leaves=10,
)
BODIES = st.binary(max_size=40) | JSON.map(lambda value: json.dumps(value).encode())
REQUESTS = st.dictionaries(st.sampled_from(["instances", "inputs", "signature_name"]), JSON, max_size=2).map(
    lambda value: json.dumps(value).encode()
)


@given(BODIES | REQUESTS, st.sampled_from(["float32", "int8", "uint64", "string", "bool"]))
def test_whatever_is_sent_is_taken_or_refused(body: bytes, dtype: str) -> None:
    try:
        arrays = inputs(body, x=dtype)
    except ServingError as error:
        refused_as = error.code
        assert refused_as is Code.INVALID_ARGUMENT
    else:
        assert arrays["x"].dtype == (object if dtype == "string" else np.dtype(dtype))


@given(st.binary(max_size=20))
def test_any_bytes_can_be_sent(value: bytes) -> None:
    sent = {"instances": [{"b64": base64.b64encode(value).decode()}]}
    assert inputs(sent, x="string")["x"].tolist() == [value]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_few_numbers_are_printed_like_many(dtype: type) -> None:
    bits = np.random.default_rng(0).integers(0, 2**63, 4_000, np.uint64) * np.uint64(2)
    drawn = np.nan_to_num(bits.view(dtype), nan=np.nan)
    numbers = np.concatenate(
        [drawn, np.arange(-20, 20).astype(dtype), np.array([np.finfo(dtype).max, 0.1, -0.0], dtype)]
    )
    numbers = np.concatenate([numbers, np.resize(np.array([1e5, 1e6, np.nan, np.inf, -np.inf], dtype), 100)])
    few = [text for start in range(0, len(numbers), 5) for text in json_output.decimals(numbers[start : start + 5])]
    assert few == json_output.decimals(numbers)
