"""JSON requests as arrays, with the rules and texts of TensorFlow Serving 2.16.1 (util/json_tensor.cc).

parse(body)                       bytes -> the request's JSON object
signature_name(document)          which signature it asks for
predict_inputs(document, inputs)  -> (arrays by name, whether rows were given)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from serving.errors import Code, ServingError
from serving.json_tensors import Array, dense, tensor, type_name_of
from serving.json_values import Document, invalid, is_b64, parse, show, text_bytes

if TYPE_CHECKING:
    from serving.servable import TensorSpec

__all__ = ["Document", "parse", "predict_inputs", "signature_name"]


def signature_name(document: Document) -> str:
    """Which signature a request asks for; empty for the default one.

    Raises:
        ServingError: INVALID_ARGUMENT, its name is not a string, or has half of a surrogate pair.
    """
    name = document.get("signature_name", "")
    if not isinstance(name, str):
        raise invalid(
            f"JSON Value: {show(document)} not formatted correctly. 'signature_name' key must be a string value."
        )
    text_bytes(name)
    return name


def predict_inputs(document: Document, specs: Mapping[str, TensorSpec]) -> tuple[dict[str, Array], bool]:
    """Takes the inputs of a predict request.

    Args:
        document: The request: `instances` holds rows, `inputs` whole tensors.
        specs: The signature's inputs.

    Returns:
        An array for each input, of the signature's type and the request's shape; and whether they came as rows.

    Raises:
        ServingError: INVALID_ARGUMENT, values do not fit; UNIMPLEMENTED, JSON has no form for the input's type.
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
        return {name: tensor(value, spec)}
    for name in specs:
        if name not in value:
            raise invalid(f"Missing named input: {name} in 'inputs' object.")
    return {name: tensor(value[name], spec) for name, spec in specs.items()}


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
    array = dense(rows, type_name_of(spec))
    if array is not None:
        return array
    first: Array | None = None
    for index, row in enumerate(rows):
        try:
            value = tensor(row, spec)
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
