"""Converts JSON requests to arrays and tf.Examples as TensorFlow Serving 2.16.1 does (util/json_tensor.cc)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from tensorflow.core.example.example_pb2 import Example
from tensorflow.core.example.feature_pb2 import Feature
from tensorflow_serving.apis.classification_pb2 import ClassificationResult
from tensorflow_serving.apis.input_pb2 import Input
from tensorflow_serving.apis.regression_pb2 import RegressionResult

from serving.errors import Code, ServingError, invalid
from serving.rest import json_output
from serving.rest.json_values import (
    Array,
    Document,
    dense_array,
    is_b64,
    kind,
    parse,
    show,
    text_bytes,
    to_array,
    type_name_of,
)

if TYPE_CHECKING:
    from serving.models.servable import TensorSpec


__all__ = ["Document", "parse", "predict_inputs", "signature_name"]


def signature_name(document: Document) -> str:
    """The name of the signature that a request asks for; empty for the default one.

    Raises:
        ServingError: INVALID_ARGUMENT, the name is not a string, or has half of a surrogate pair.
    """
    name = document.get("signature_name", "")
    if not isinstance(name, str):
        raise invalid(
            f"JSON Value: {show(document)} not formatted correctly. 'signature_name' key must be a string value."
        )
    text_bytes(name)
    return name


def predict_inputs(document: Document, specs: Mapping[str, TensorSpec]) -> tuple[dict[str, Array], bool]:
    """Reads the inputs of a predict request.

    Args:
        document: The request: `instances` holds rows, `inputs` whole tensors.
        specs: The signature's inputs.

    Returns:
        An array for each input, of the signature's type and the request's shape; and whether they came as rows.

    Raises:
        ServingError: INVALID_ARGUMENT, values do not fit; UNIMPLEMENTED, JSON cannot represent the input's type.
    """
    if not specs:
        raise invalid(f"Failed to get input map for signature: {signature_name(document) or 'DEFAULT'}")
    rows = document.get("instances")
    if "instances" in document and "inputs" in document:
        raise invalid(
            f"JSON Value: {show(document)} Not formatted correctly expecting only one of 'inputs' or 'instances' "
            "keys to exist "
        )
    if "inputs" in document:
        return _from_columns(document["inputs"], specs), False
    if "instances" not in document:
        raise invalid("Missing 'inputs' or 'instances' key")
    if not isinstance(rows, list):
        raise invalid(f"JSON Value: {show(document)} Expecting 'instances' to be an list/array")
    if not rows:
        raise invalid(f"JSON Value: {show(document)} No values in 'instances' array")
    return _from_rows(rows, specs), True


def _from_columns(value: Any, specs: Mapping[str, TensorSpec]) -> dict[str, Array]:
    if not isinstance(value, dict) or is_b64(value):
        if len(specs) > 1:
            raise invalid(
                "inputs is a plain value/list, but expecting an object as multiple input tensors required as per "
                "tensorinfo_map"
            )
        name, spec = next(iter(specs.items()))
        return {name: to_array(value, spec)}
    for name in specs:
        if name not in value:
            raise invalid(f"Missing named input: {name} in 'inputs' object.")
    return {name: to_array(value[name], spec) for name, spec in specs.items()}


def _from_rows(rows: list[Any], specs: Mapping[str, TensorSpec]) -> dict[str, Array]:
    if not isinstance(rows[0], dict) and len(specs) > 1:
        raise invalid(
            "instances is a plain list, but expecting list of objects as multiple input tensors required as per "
            "tensorinfo_map"
        )
    if isinstance(rows[0], dict) and not is_b64(rows[0]):
        return _from_objects(rows, specs)
    name, spec = next(iter(specs.items()))
    for index, row in enumerate(rows) if dict in set(map(type, rows)) else ():
        if isinstance(row, dict) and not is_b64(row):
            raise invalid(f"Expecting value/list but got object at item {index} of input list")
    return {name: _column(rows, spec, "of 'instances' list.")}


def _from_objects(rows: list[Any], specs: Mapping[str, TensorSpec]) -> dict[str, Array]:
    names = specs.keys()
    for index, row in enumerate(rows):
        if not isinstance(row, dict) or is_b64(row):
            raise invalid(f"Expecting object but got list at item {index} of input list")
        if row.keys() == names:
            continue
        where = f"Failed to process element: {index}"
        for key in row.keys() - names:
            raise invalid(
                f"{where} key: {key} of 'instances' list. Error: {Code.INVALID_ARGUMENT.name}: "
                f"JSON object: does not have named input: {key}"
            )
        raise invalid(
            f"{where} of 'instances' list. JSON object: {show(row)} keys must be equal to: {','.join(sorted(names))}"
        )
    return {
        name: _column([row[name] for row in rows], spec, f"key: {name} of 'instances' list.")
        for name, spec in specs.items()
    }


def _column(rows: list[Any], spec: TensorSpec, where: str) -> Array:
    array = dense_array(rows, type_name_of(spec))
    if array is not None:
        return array
    first: Array | None = None
    for index, row in enumerate(rows):
        try:
            value = to_array(row, spec)
            first = value if first is None else first
            if value.size != first.size:
                raise invalid(f"Expecting tensor size: {first.size} but got: {value.size}")
            if value.shape != first.shape:
                raise invalid(f"Expecting shape {_shape(first)} but got: {_shape(value)}")
        except ServingError as error:
            message = f"Failed to process element: {index} {where} Error: {error.code.name}: {error.message}"
            raise invalid(message) from error
    raise invalid(f"JSON Value: {show(rows)} is not a tensor of type: {type_name_of(spec)}")


def _shape(array: Array) -> str:
    return "[" + ",".join(map(str, array.shape)) + "]"


INT64_MAX = 2**63 - 1


def to_input(document: Document) -> Input:
    """The examples of a request, with its context if it has one.

    Args:
        document: `examples` is a list of objects, feature name to value or list of values; `context` is one object.

    Raises:
        ServingError: INVALID_ARGUMENT, the document does not have this form.
    """
    examples_input = Input()
    target = examples_input.example_list.examples
    if "context" in document:
        _fill(document["context"], examples_input.example_list_with_context.context)
        examples_input.example_list_with_context.SetInParent()
        target = examples_input.example_list_with_context.examples
    if "examples" not in document:
        raise invalid(
            f"JSON Value: {show(document)} When method is classify, key 'examples' is expected and was not found"
        )
    examples = document["examples"]
    if not isinstance(examples, list):
        raise invalid(f"JSON Value: {show(document)} Expecting 'examples' value to be an list/array")
    if not examples:
        raise invalid(f"JSON Value: {show(document)} 'examples' value is an empty array")
    for example in examples:
        _fill(example, target.add())
    return examples_input


def classification_json(result: ClassificationResult) -> bytes:
    """Classes and scores as JSON: for each example a list of [label, score]."""
    if not result.classifications:
        raise invalid("Cannot convert empty ClassificationResults to JSON")
    rows = []
    for classes in result.classifications:
        scores = json_output.decimals(np.array([entry.score for entry in classes.classes], np.float32))
        labels = json_output.tokens("", np.array([entry.label.encode() for entry in classes.classes], object))
        pairs = (f"[{label}, {score}]" for label, score in zip(labels, scores, strict=True))
        rows.append(f"[{', '.join(pairs)}]")
    return json_output.results(rows)


def regression_json(result: RegressionResult) -> bytes:
    """Values as JSON: one number per example."""
    if not result.regressions:
        raise invalid("Cannot convert empty RegressionResults to JSON")
    return json_output.results(
        json_output.decimals(np.array([entry.value for entry in result.regressions], np.float32))
    )


def _fill(value: Any, example: Example) -> None:
    if not isinstance(value, dict):
        raise invalid(f"Example must be JSON object but got JSON {kind(value)}")
    for name, content in value.items():
        text_bytes(name)
        feature = example.features.feature[name]
        for element in content if isinstance(content, list) else [content]:
            _add(element, name, feature)


def _add(value: Any, name: str, feature: Feature) -> None:
    if value is None or isinstance(value, list) or (isinstance(value, dict) and not is_b64(value)):
        raise invalid(f"Feature: {name} has element with unexpected JSON type: {kind(value)}")
    current_kind = feature.WhichOneof("kind")
    expected_kind = (
        "bytes_list" if isinstance(value, (str, dict)) else "float_list" if type(value) is float else "int64_list"
    )
    if current_kind not in {None, expected_kind}:
        raise invalid(f"Unexpected element type in feature: {name} expecting type: {str(current_kind).split('_')[0]}")
    if expected_kind == "bytes_list":
        feature.bytes_list.value.append(text_bytes(value))
    elif expected_kind == "float_list":
        with np.errstate(over="ignore"):
            feature.float_list.value.append(float(np.float32(value)))
    elif value > INT64_MAX:
        raise invalid(f"Feature: {name} has uint64_t element. Only int64_t is supported.")
    else:
        feature.int64_list.value.append(int(value))
