"""Requests and answers held against Kubeflow Pipelines' published OpenAPI.

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
    """A schema that refuses fields it does not name, as the API's own reader does."""
    if isinstance(schema, list):
        return [_strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _strict(value) for key, value in schema.items()}
    if isinstance(made.get("properties"), dict) and "type" in made:
        made.setdefault("additionalProperties", False)
    # A reference stands alone in this version of JSON Schema.
    return {"$ref": made["$ref"]} if isinstance(made.get("$ref"), str) else made


DEFINITIONS = {name: _strict(schema) for name, schema in DOCUMENT["definitions"].items()}


def operation(method: str, path: str) -> dict[str, Any] | None:
    """What the document says of a request; None where it knows none such."""
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
    """What is wrong with a request, a sentence each."""
    found = operation(method, path)
    if found is None:
        return [f"{method} {path} is not in the document"]
    parameters = {(given["in"], given["name"]): given for given in found.get("parameters", [])}
    faults = [f"{path}: no query parameter {name}" for name in query if ("query", name) not in parameters]
    for name, value in query.items():
        kind = parameters.get(("query", name), {}).get("type")
        if kind == "integer" and not re.fullmatch(r"-?\d+", value):
            faults.append(f"{path}: {name} is {value!r}, expected an integer")
    faults += [f"{path}: no form field {name}" for name in form if ("formData", name) not in parameters]
    for (place, name), given in parameters.items():
        there = {"query": query, "formData": form}.get(place, {name: True})
        if given.get("required") and name not in there:
            faults.append(f"{path}: {name} is required")
        if place == "body":
            faults += [f"{path}: {fault}" for fault in _check(body, given["schema"])]
    if body is not None and not any(place == "body" for place, _ in parameters):
        faults.append(f"{path}: takes no body")
    return faults


def faults_of_answer(method: str, path: str, answer: Any) -> list[str]:
    """What is wrong with an answer of status 200."""
    found = operation(method, path)
    return _check(answer, found["responses"]["200"].get("schema", {})) if found else [f"{path} is not in the document"]
