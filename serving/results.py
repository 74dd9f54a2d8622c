"""What classify and regress signatures look like, and their outputs as results.

Rules and texts of TensorFlow Serving 2.16.1 (servables/tensorflow/classifier.cc, regressor.cc).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.types_pb2 import DataType
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef
from tensorflow_serving.apis.classification_pb2 import ClassificationResult
from tensorflow_serving.apis.regression_pb2 import RegressionResult

from serving.errors import Code, ServingError

INPUTS = "inputs"
CLASSES, SCORES = "classes", "scores"
OUTPUTS = "outputs"

Outputs = Mapping[str, np.ndarray[Any, Any]]


def check_classification(signature: SignatureDef) -> list[str]:
    """Checks that a signature can classify.

    Returns:
        Which outputs to compute.

    Raises:
        ServingError: INVALID_ARGUMENT, its inputs or outputs are not those of a classifier.
    """
    _check_one_input(signature, "classification")
    if len(signature.outputs) not in {1, 2}:
        _refuse(f"Expected one or two output Tensors, found {len(signature.outputs)}")
    outputs = [name for name in (CLASSES, SCORES) if name in signature.outputs]
    if not outputs:
        _refuse(
            f'Expected classification signature outputs to contain at least one of "{CLASSES}" or "{SCORES}". '
            f"Signature was: {signature}"
        )
    return outputs


def check_regression(signature: SignatureDef) -> list[str]:
    """Checks that a signature can regress; returns and raises like `check_classification`."""
    _check_one_input(signature, "regression")
    if len(signature.outputs) != 1:
        _refuse("Expected one output Tensor.")
    if OUTPUTS not in signature.outputs:
        _refuse(f"No regression outputs found in SignatureDef: {signature}")
    return [OUTPUTS]


def classification(outputs: Outputs, examples: int) -> ClassificationResult:
    """Makes a result of the outputs of a classifier.

    Args:
        outputs: `classes`, strings, or `scores`, float32, or both; each of shape [examples, classes].
        examples: How many examples were asked about.

    Raises:
        ServingError: INVALID_ARGUMENT, the outputs are of another type or shape.
    """
    classes, scores = outputs.get(CLASSES), outputs.get(SCORES)
    for name, values, dtype in ((CLASSES, classes, "DT_STRING"), (SCORES, scores, "DT_FLOAT")):
        if values is not None:
            _check_matrix(name, values, dtype, examples)
    if classes is not None and scores is not None and classes.shape[1] != scores.shape[1]:
        _refuse(f"Tensors class and score should match in dim_size(1). Got {classes.shape[1]} vs. {scores.shape[1]}")
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


def regression(outputs: Outputs, examples: int) -> RegressionResult:
    """Makes a result of the output of a regressor.

    Args:
        outputs: `outputs`, float32 of shape [examples] or [examples, 1].
        examples: How many examples were asked about.

    Raises:
        ServingError: INVALID_ARGUMENT, the output is of another type or shape.
    """
    values = outputs[OUTPUTS]
    if not (values.ndim == 1 or (values.ndim == 2 and values.shape[1] == 1)):
        _refuse(f"Expected output Tensor shape to be either [batch_size] or [batch_size, 1] but got {_shape(values)}")
    if len(values) != examples:
        _refuse(f"Input batch size did not match output batch size: {examples} vs. {len(values)}")
    if values.dtype != np.float32:
        _refuse(f"Expected output Tensor of DT_FLOAT.  Got: {_type(values)}")
    result = RegressionResult()
    for value in values.ravel().tolist():
        result.regressions.add(value=value)
    return result


def _check_one_input(signature: SignatureDef, method: str) -> None:
    if len(signature.inputs) != 1:
        _refuse("Expected one input Tensor.")
    if INPUTS not in signature.inputs:
        _refuse(f"No {method} inputs found in SignatureDef: {signature}")


def _check_matrix(name: str, values: np.ndarray[Any, Any], dtype: str, examples: int) -> None:
    if values.ndim != 2:
        _refuse(f"Expected Tensor shape: [batch_size num_classes] but got {_shape(values)}")
    if _type(values) != dtype:
        _refuse(f"Expected {name} Tensor of {dtype}. Got: {_type(values)}")
    if len(values) != examples:
        _refuse(f"Expected {name} output batch size of {examples}. Got: {len(values)}")


def _shape(values: np.ndarray[Any, Any]) -> str:
    return f"[{','.join(map(str, values.shape))}]"


def _type(values: np.ndarray[Any, Any]) -> str:
    return str(DataType.Name(tf.as_dtype(values.dtype).as_datatype_enum))


def _refuse(message: str) -> NoReturn:
    raise ServingError(Code.INVALID_ARGUMENT, message)
