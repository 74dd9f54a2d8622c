"""The REST port, over loopback with plain HTTP."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rest_scene import MODEL, PAGE, PREDICT, Rest, started

TOKEN = "s3cret"  # noqa: S105 - a test's


@pytest.fixture(scope="module")
def guarded(base_path: Path) -> Iterator[Rest]:
    yield from started(base_path, TOKEN, rest_api_enable_cors_support=True)


def test_predict_by_rows(rest: Rest) -> None:
    reply = rest.post(PREDICT, {"instances": [1, 2.5]})
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    assert reply.json == {"predictions": [{"negative": -1.0, "y": 2.5}, {"negative": -2.5, "y": 3.25}]}


def test_predict_by_columns_by_name_version_and_case(rest: Rest) -> None:
    for path in (PREDICT, f"{MODEL}/versions/1:predict", "/V1/Models/arithm%65tic:predict?query"):
        reply = rest.post(path, {"inputs": [4]})
        assert (reply.status, reply.json) == (200, {"outputs": {"negative": [-4.0], "y": [4.0]}})
    reply = rest.post(PREDICT, {"signature_name": "upper", "instances": [{"b64": "YQ=="}, "é"]})
    assert reply.json == {"predictions": ["A", "é"]}


def test_classify_and_regress(rest: Rest) -> None:
    examples = [{"x": 0.25}, {"x": [1.0]}]
    reply = rest.post(f"{MODEL}:classify", {"signature_name": "classify", "examples": examples})
    assert reply.json == {"results": [[["small", 0.75], ["large", 0.25]], [["small", 0.0], ["large", 1.0]]]}
    reply = rest.post(f"{MODEL}:regress", {"signature_name": "regress", "context": {"x": 2.0}, "examples": [{}, {}]})
    assert reply.json == {"results": [3.0, 3.0]}


REFUSED = [
    (PREDICT, b"{", 400, "JSON Parse error: "),
    ("/v1/models/other:predict", b"{", 400, "JSON Parse error: "),
    ("/v1/models/other:predict", {"inputs": 1}, 404, "Servable not found for request: Latest(other)"),
    (f"{MODEL}/versions/7:predict", {"inputs": 1}, 404, "Servable not found for request: Specific(arithmetic, 7)"),
    (f"{MODEL}/labels/no:predict", {"inputs": 1}, 400, "Unrecognized servable version label: no"),
    (f"{MODEL}/versions/{2**63}:predict", {"inputs": 1}, 400, f"Failed to convert version: {2**63} to numeric."),
    (PREDICT, {"inputs": 1, "signature_name": "no"}, 400, 'Serving signature name: "no" not found in signature def'),
    (PREDICT, {"inputs": ["a"]}, 400, 'JSON Value: "a" Type: String is not of expected type: float'),
    (f"{MODEL}:PREDICT", {"inputs": 1}, 400, f"Malformed request: POST {MODEL}:PREDICT"),
    (f"{MODEL}:other", {"inputs": 1}, 400, f"Malformed request: POST {MODEL}:other"),
    (f"{MODEL}:classify", {"examples": [{"x": 1.0}]}, 400, "No classification inputs found in SignatureDef"),
    (f"{MODEL}:regress", {"examples": [{}], "signature_name": "classify"}, 400, "Expected one output Tensor."),
    (f"{MODEL}:regress", {"examples": []}, 400, "'examples' value is an empty array"),
    (f"{MODEL}:regress", {"examples": 1}, 400, "Expecting 'examples' value to be an list/array"),
    (f"{MODEL}:regress", {}, 400, "When method is classify, key 'examples' is expected and was not found"),
    (f"{MODEL}:regress", {"examples": [1]}, 400, "Example must be JSON object but got JSON Number"),
    (f"{MODEL}:regress", {"examples": [{"x": [[1]]}]}, 400, "has element with unexpected JSON type: Array"),
    (f"{MODEL}:regress", {"examples": [{"x": [1, 2.0]}]}, 400, "Unexpected element type in feature: x expecting type"),
    (f"{MODEL}:regress", {"examples": [{"x": 2}], "signature_name": "regress"}, 400, "Data types don't match"),
    (f"{MODEL}:regress", {"examples": [{"x": 2**63}]}, 400, "Feature: x has uint64_t element. Only int64_t is support"),
]


@pytest.mark.parametrize(("path", "body", "status", "text"), REFUSED)
def test_refused(rest: Rest, path: str, body: Any, status: int, text: str) -> None:
    reply = rest.post(path, body)
    assert (reply.status, text in reply.error, "Traceback" in reply.error) == (status, True, False), reply.body


def test_status(rest: Rest) -> None:
    expected = [{"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}]
    for path in (MODEL, f"{MODEL}/versions/1"):
        assert rest.get(path).json == {"model_version_status": expected}
    reply = rest.get(f"{MODEL}/versions/2")
    assert (reply.status, reply.error) == (404, "Could not find version 2 of model arithmetic")
    assert (rest.get("/v1/models").status, rest.get("/v1/models").error) == (400, "Missing model name in request.")


def test_metadata(rest: Rest) -> None:
    reply = rest.get(f"{MODEL}/metadata").json
    assert reply["model_spec"] == {"name": "arithmetic", "signature_name": "", "version": "1"}
    signature = reply["metadata"]["signature_def"]["signature_def"]["serving_default"]
    assert signature["defaults"] == {}
    assert signature["inputs"]["x"]["dtype"] == "DT_FLOAT"
    assert signature["inputs"]["x"]["tensor_shape"] == {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False}


def test_other_paths_and_methods(rest: Rest) -> None:
    reply = rest.get("/")
    assert (reply.status, reply.headers["content-type"].partition(";")[0]) == (404, "text/html")
    assert b"<H1>Not Found</H1>" in reply.body
    reply = rest.ask("DELETE", MODEL)
    assert (reply.status, reply.error) == (400, f"Malformed request: DELETE {MODEL}")
    assert [rest.get(path).status for path in ("/livez", "/readyz")] == [200, 200]


def test_options(rest: Rest, guarded: Rest) -> None:
    reply = rest.ask("OPTIONS", PREDICT)
    assert (reply.status, reply.body) == (400, b"")
    reply = rest.ask("OPTIONS", PREDICT, headers={"Origin": "https://a.example"})
    assert (reply.status, "access-control-allow-origin" in reply.headers) == (200, False)
    reply = guarded.get(MODEL)
    assert reply.headers["access-control-allow-origin"] == "*"
    assert reply.headers["access-control-allow-methods"] == "POST, GET"
    assert reply.headers["access-control-allow-headers"] == "Content-Type, Authorization"
    reply = guarded.ask("OPTIONS", PREDICT, headers={"Origin": "https://a.example"})
    assert (reply.status, reply.headers["access-control-allow-origin"]) == (200, "*")


def test_cors_headers(base_path: Path) -> None:
    for rest in started(base_path, rest_api_enable_cors_support=True):
        headers = rest.get(MODEL).headers
        assert {key: value for key, value in headers.items() if key.startswith("access-control")} == {
            "access-control-allow-origin": "*",
            "access-control-allow-methods": "POST, GET",
            "access-control-allow-headers": "Content-Type",
        }


def test_token(guarded: Rest) -> None:
    for path in (MODEL, PAGE):
        assert guarded.get(path).status == 401
        assert guarded.get(path, Authorization=f"Bearer {TOKEN}").status == 200
    assert guarded.get("/livez").status == 200


def test_compressed(rest: Rest) -> None:
    body = gzip.compress(b'{"inputs": [4]}')
    assert rest.post(PREDICT, body, Content_Encoding="gzip").json["outputs"]["y"] == [4.0]
    for broken in (b"no", body[:-9], body * 2):
        reply = rest.post(PREDICT, broken, Content_Encoding="gzip")
        assert (reply.status, reply.error.startswith("The body is not gzip: ")) == (400, True)


def test_request_ids_and_metrics(rest: Rest) -> None:
    reply = rest.post(PREDICT, {"inputs": [1]}, X_Request_Id="mine")
    assert reply.headers["x-request-id"] == "mine"
    assert rest.metrics.request_count.value(("arithmetic", "OK")) > 0
    assert rest.metrics.request_latency.count(("arithmetic", "predict", "REST")) > 0
    assert rest.metrics.in_flight.value(("REST",)) == 0
    assert ":tensorflow:serving:request_count{" in rest.get(PAGE).body.decode()
