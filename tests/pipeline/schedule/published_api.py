"""Checks requests and responses against Kubeflow Pipelines' published OpenAPI.

`kfp_api_single_file.swagger.json` is the file of that name in kubeflow/pipelines, backend/api/v2beta1/swagger/, of
version 2.17.0, unchanged (Apache License 2.0).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema

DOCUMENT = json.loads((Path(__file__).parent / "kfp_api_single_file.swagger.json").read_text())


def _strict(schema: Any) -> Any:
    """The schema, but refusing fields that it does not name, as the API itself does."""
    if isinstance(schema, list):
        return [_strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {key: _strict(value) for key, value in schema.items()}
    if isinstance(strict.get("properties"), dict) and "type" in strict:
        strict.setdefault("additionalProperties", False)
    # A reference has no siblings in this version of JSON Schema.
    return {"$ref": strict["$ref"]} if isinstance(strict.get("$ref"), str) else strict


DEFINITIONS = {name: _strict(schema) for name, schema in DOCUMENT["definitions"].items()}


def operation(method: str, path: str) -> dict[str, Any] | None:
    """The document's entry for a request; None if it has none."""
    for pattern, methods in DOCUMENT["paths"].items():
        regex = re.sub(r"\\\{[^{}]*\\\}", r"[^/:]+", re.escape(pattern))
        if re.fullmatch(regex, path) and method.lower() in methods:
            return dict(methods[method.lower()])
    return None


def _check(value: Any, schema: Mapping[str, Any]) -> list[str]:
    whole = {"definitions": DEFINITIONS, "allOf": [_strict(dict(schema))]}
    checker = jsonschema.Draft4Validator(whole, format_checker=jsonschema.FormatChecker(["date-time"]))
    return [f"{list(error.absolute_path)}: {error.message}" for error in checker.iter_errors(value)]


def faults_of_request(
    method: str, path: str, query: Mapping[str, str], body: Any | None, form: Mapping[str, Any]
) -> list[str]:
    """What is wrong with a request, one sentence each."""
    documented = operation(method, path)
    if documented is None:
        return [f"{method} {path} is not in the document"]
    parameters = {(parameter["in"], parameter["name"]): parameter for parameter in documented.get("parameters", [])}
    faults = [f"{path}: no query parameter {name}" for name in query if ("query", name) not in parameters]
    for name, value in query.items():
        kind = parameters.get(("query", name), {}).get("type")
        if kind == "integer" and not re.fullmatch(r"-?\d+", value):
            faults.append(f"{path}: {name} is {value!r}, expected an integer")
    faults += [f"{path}: no form field {name}" for name in form if ("formData", name) not in parameters]
    for (place, name), parameter in parameters.items():
        values = {"query": query, "formData": form}.get(place, {name: True})
        if parameter.get("required") and name not in values:
            faults.append(f"{path}: {name} is required")
        if place == "body":
            faults += [f"{path}: {fault}" for fault in _check(body, parameter["schema"])]
    if body is not None and not any(place == "body" for place, _ in parameters):
        faults.append(f"{path}: takes no body")
    return faults


def faults_of_response(method: str, path: str, response: Any) -> list[str]:
    """What is wrong with a response of status 200."""
    documented = operation(method, path)
    return (
        _check(response, documented["responses"]["200"].get("schema", {}))
        if documented
        else [f"{path} is not in the document"]
    )
