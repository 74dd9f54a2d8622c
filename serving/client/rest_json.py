"""The JSON of TensorFlow Serving's REST API, from a client's side."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson

from serving.client import arrays
from serving.client.answers import DTYPES, Array, ClientError, Metadata, Signature, TensorSpec, VersionStatus
from serving.errors import Code

B64 = "b64"
HALVES = {"float16", "bfloat16"}


def predict_body(signature: str, inputs: Mapping[str, Array]) -> bytes:
    """The body of a predict request, by columns."""
    columns = ",".join(f"{json.dumps(name)}:{_column(name, array)}" for name, array in inputs.items())
    return f'{{"signature_name":{json.dumps(signature)},"inputs":{{{columns}}}}}'.encode()


def examples_body(signature: str, examples: list[dict[str, list[Any]]]) -> bytes:
    """The body of a classify or regress request; an empty signature is the default one."""
    body: dict[str, Any] = {"signature_name": signature} if signature else {}
    rows = [{name: [to_json(value) for value in values] for name, values in row.items()} for row in examples]
    return json.dumps(body | {"examples": rows}).encode()


def parse(body: bytes) -> Any:
    """Reads JSON; bare NaN, Infinity and -Infinity are numbers.

    Raises:
        ClientError: INTERNAL, it is not JSON.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        try:
            return json.loads(body)
        except ValueError as error:
            raise ClientError(Code.INTERNAL, f"received an answer that is not JSON: {error}") from error


def outputs(document: Any, signature: Signature) -> dict[str, Array]:
    """The arrays of an answer by columns: one output comes without its name."""
    values = document["outputs"]
    if len(signature.outputs) == 1:
        values = {next(iter(signature.outputs)): values}
    return {name: arrays.to_output(_plain(value), signature.outputs.get(name)) for name, value in values.items()}


def metadata(document: Any) -> Metadata:
    """The signatures of a metadata answer."""
    spec = document["model_spec"]
    definitions = document["metadata"]["signature_def"]["signature_def"]
    found = {
        name: Signature(
            name, definition["method_name"], _tensors(definition["inputs"]), _tensors(definition["outputs"])
        )
        for name, definition in sorted(definitions.items())
        if not name.startswith("__saved_model")
    }
    return Metadata(spec["name"], int(spec["version"]), found)


def statuses(document: Any) -> list[VersionStatus]:
    """The versions of a status answer."""
    return [
        VersionStatus(
            int(entry["version"]),
            entry["state"],
            Code[entry["status"]["error_code"]],
            entry["status"]["error_message"],
        )
        for entry in document["model_version_status"]
    ]


def _column(name: str, array: Array) -> str:
    kind = array.dtype.kind
    if kind == "O":
        return json.dumps(to_json(array.tolist()))
    if kind == "c":
        raise ClientError(Code.UNIMPLEMENTED, f"input {name!r} is {array.dtype.name}, for which JSON has no form")
    if array.dtype.name in HALVES:
        array = array.astype(np.float32)
    if not array.ndim or (kind == "f" and not np.isfinite(array).all()):
        # orjson takes no scalars of NumPy, and writes null for what is no number.
        return json.dumps(array.tolist())
    return orjson.dumps(np.ascontiguousarray(array), option=orjson.OPT_SERIALIZE_NUMPY).decode()


def to_json(value: Any) -> Any:
    """A value as JSON has it: bytes as text where they are UTF-8, else as base64."""
    if isinstance(value, dict):
        return {name: to_json(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [to_json(entry) for entry in value]
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {B64: base64.b64encode(value).decode()}
    return value


def _plain(value: Any) -> Any:
    """Values with base64 as the bytes that it stands for."""
    if isinstance(value, list):
        # Numbers, the most of all, are not walked one by one.
        return [_plain(entry) for entry in value] if value and isinstance(value[0], (list, dict, str)) else value
    return base64.b64decode(value[B64]) if isinstance(value, dict) else value


def _tensors(infos: Mapping[str, Any]) -> dict[str, TensorSpec]:
    return {name: _tensor(info) for name, info in sorted(infos.items())}


def _tensor(info: Mapping[str, Any]) -> TensorSpec:
    shape = None
    if not info["tensor_shape"]["unknown_rank"]:
        sizes = (int(dimension["size"]) for dimension in info["tensor_shape"]["dim"])
        shape = tuple(None if size < 0 else size for size in sizes)
    return TensorSpec(DTYPES.get(info["dtype"], info["dtype"]), shape)
