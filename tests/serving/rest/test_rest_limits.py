"""What the REST port refuses because of its size, and what it does if a model is slow or the port is taken."""

from __future__ import annotations

import gzip
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
import server_helpers
from rest_scene import PREDICT, Reply, Rest, started

from serving.dataplane import DataPlane
from serving.errors import Code, ServingError
from serving.models.manager import Manager
from serving.models.signatures import QUICK_BYTES, NotQuickError
from serving.monitoring import Metrics
from serving.rest.api import Response, RestApi
from serving.rest.http_port import RestServer


def test_bodies_are_bounded(rest: Rest) -> None:
    large = b" " * ((1 << 16) + 1)
    assert rest.post(PREDICT, large).status == 413
    reply = rest.post(PREDICT, gzip.compress(large), Content_Encoding="gzip")
    assert (reply.status, "when inflated" in reply.error) == (413, True)


def test_deep_nesting_is_refused(rest: Rest) -> None:
    assert rest.post(PREDICT, b'{"inputs": ' + b"[" * 50_000).status == 400
    assert rest.post(PREDICT, b'{"inputs": [NaN, ' + b"[" * 50_000).status == 400


def test_a_taken_port_is_refused(rest: Rest, base_path: Path) -> None:
    settings = server_helpers.settings(base_path, rest_api_port=rest.port)
    server = RestServer(settings, NoApi(), Metrics(), lambda: True)  # type: ignore[arg-type]
    with pytest.raises(ServingError, match=f"cannot listen on .*:{rest.port}") as caught:
        server.start()
    assert caught.value.code is Code.UNAVAILABLE


class NoApi:
    """Answers nothing."""


class Waiting:
    """An API that answers when it is released."""

    def __init__(self) -> None:
        self.go, self.asked = threading.Event(), threading.Event()

    def answer(self, *_: Any) -> Any:
        self.asked.set()
        assert self.go.wait(30)
        raise ServingError(Code.ABORTED, "told to")


def test_the_queue_is_bounded_and_stopping_waits(base_path: Path) -> None:
    api = Waiting()
    settings = server_helpers.settings(base_path, max_concurrent_requests=1)
    server = RestServer(settings, api, Metrics(), lambda: False)  # type: ignore[arg-type]
    rest = Rest(server.start())
    replies: list[Reply] = []
    first = threading.Thread(target=lambda: replies.append(rest.post(PREDICT, {})))
    first.start()
    assert api.asked.wait(30)
    assert rest.post(PREDICT, {}).status == 503
    assert (rest.get("/livez").status, rest.get("/readyz").status) == (200, 503)
    stopping = threading.Thread(target=server.stop)
    stopping.start()
    api.go.set()
    for thread in (first, stopping):
        thread.join(30)
    assert [reply.error for reply in replies] == ["told to"]


def test_deadline(base_path: Path) -> None:
    settings = server_helpers.settings(base_path)
    manager, metrics = Manager(settings), Metrics()
    manager.start()
    api = RestApi(DataPlane(manager, metrics))
    response = api.answer("POST", PREDICT, b'{"inputs": [1]}', deadline=0)
    manager.stop()
    assert (response.code, response.model, response.api) == (Code.DEADLINE_EXCEEDED, "arithmetic", "predict")


def test_a_model_whose_time_depends_on_values_does_not_hold_up_others(saved_models: Path, tmp_path: Path) -> None:
    shutil.copytree(saved_models / "slow", tmp_path / "slow" / "1")
    serving = started(tmp_path / "slow", model_name="slow", rest_api_timeout_in_ms=3_000)
    rest = next(serving)
    for _ in range(10):
        assert rest.post("/v1/models/slow:predict", {"inputs": 1}).json == {"outputs": 1}
    replies: list[Reply] = []
    asking = threading.Thread(target=lambda: replies.append(rest.post("/v1/models/slow:predict", {"inputs": 2**60})))
    asking.start()
    while not rest.metrics.in_flight.value(("REST",)):
        assert asking.is_alive()
    # The slow request is in flight, and will be for seconds.
    assert (rest.get("/livez").status, replies) == (200, [])
    asking.join()
    assert [reply.status for reply in replies] == [504]
    serving.close()


def test_a_quick_path_goes_to_a_thread_again_when_its_model_is_slow(base_path: Path) -> None:
    threads: list[str] = []

    class Api:
        quick = True

        def answer(self, *_: Any, on_loop: bool = False) -> Response:
            if on_loop and not self.quick:
                raise NotQuickError
            threads.append(threading.current_thread().name)
            return Response(Code.OK, b"{}", quick=self.quick)

    api = Api()
    server = RestServer(server_helpers.settings(base_path), api, Metrics(), lambda: True)  # type: ignore[arg-type]
    rest = Rest(server.start())
    rest.post(PREDICT, {})
    rest.post(PREDICT, {})
    rest.post(PREDICT, b" " * QUICK_BYTES + b"{}")
    api.quick = False
    rest.post(PREDICT, {})
    rest.post(PREDICT, {})
    server.stop()
    assert [name == server._thread.name for name in threads] == [False, True, False, False, False]
