"""Classify and regress over JSON: objects as tf.Examples, results as JSON (TF Serving's util/json_tensor.cc)."""

from __future__ import annotations

from typing import Any

import numpy as np
from tensorflow.core.example.example_pb2 import Example
from tensorflow.core.example.feature_pb2 import Feature
from tensorflow_serving.apis.classification_pb2 import ClassificationResult
from tensorflow_serving.apis.input_pb2 import Input
from tensorflow_serving.apis.regression_pb2 import RegressionResult

from serving import json_output
from serving.json_values import Document, invalid, is_b64, kind, show, text_bytes

INT64_MAX = 2**63 - 1


def to_input(document: Document) -> Input:
    """The examples of a request, with its context where it has one.

    Args:
        document: `examples` is a list of objects, feature name to value or list of values; `context` one object.

    Raises:
        ServingError: INVALID_ARGUMENT, they are not of this form.
    """
    given = Input()
    target = given.example_list.examples
    if "context" in document:
        _fill(document["context"], given.example_list_with_context.context)
        given.example_list_with_context.SetInParent()
        target = given.example_list_with_context.examples
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
    return given


def classification_json(result: ClassificationResult) -> bytes:
    """Classes and scores as JSON: for each example a list of [label, score]."""
    if not result.classifications:
        raise invalid("Cannot convert empty ClassificationResults to JSON")
    rows = []
    for classes in result.classifications:
        scores = json_output.decimals(np.array([one.score for one in classes.classes], np.float32))
        labels = json_output.tokens("", np.array([one.label.encode() for one in classes.classes], object))
        pairs = (f"[{label}, {score}]" for label, score in zip(labels, scores, strict=True))
        rows.append(f"[{', '.join(pairs)}]")
    return json_output.results(rows)


def regression_json(result: RegressionResult) -> bytes:
    """Values as JSON: one number an example."""
    if not result.regressions:
        raise invalid("Cannot convert empty RegressionResults to JSON")
    return json_output.results(json_output.decimals(np.array([one.value for one in result.regressions], np.float32)))


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
    held = feature.WhichOneof("kind")
    wanted = "bytes_list" if isinstance(value, (str, dict)) else "float_list" if type(value) is float else "int64_list"
    if held not in {None, wanted}:
        raise invalid(f"Unexpected element type in feature: {name} expecting type: {str(held).split('_')[0]}")
    if wanted == "bytes_list":
        feature.bytes_list.value.append(text_bytes(value))
    elif wanted == "float_list":
        with np.errstate(over="ignore"):
            feature.float_list.value.append(float(np.float32(value)))
    elif value > INT64_MAX:
        raise invalid(f"Feature: {name} has uint64_t element. Only int64_t is supported.")
    else:
        feature.int64_list.value.append(int(value))
