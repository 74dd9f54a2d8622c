"""Tokens, request ids and the access log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from serving import monitoring, security
from serving.errors import Code, ServingError
from serving.monitoring import Exchange, Metrics


@pytest.fixture(autouse=True)
def own_level() -> Iterator[None]:
    yield
    monitoring.log_answered(False)


def test_a_token_is_a_files_text(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("  secret \n")
    assert security.read_token(path) == "secret"
    path.write_text("\n")
    with pytest.raises(ServingError, match=r"token, which is empty|expected a token in it"):
        security.read_token(path)
    with pytest.raises(ServingError, match=r"expected a text file: .*No such file"):
        security.read_token(tmp_path / "none")


def test_only_the_right_token_is_let_in() -> None:
    security.authorize(None, None)
    security.authorize("Bearer secret", "secret")
    for header in (None, "secret", "Bearer", "Basic secret", "Bearer secre", "Bearer secret2", "Bearer sécret"):
        with pytest.raises(ServingError) as caught:
            security.authorize(header, "secret")
        assert caught.value.code is Code.UNAUTHENTICATED


def test_a_clients_id_is_kept_where_it_cannot_forge_a_line() -> None:
    assert monitoring.request_id("a-1.b_2") == "a-1.b_2"
    ids = {monitoring.request_id(client_id) for client_id in (None, "", "two words", "a\nb", "x" * 65)}
    assert len(ids) == 5
    assert all(len(identity) == 32 for identity in ids)


def test_answered_requests_are_logged_on_demand_and_refused_ones_always(caplog: pytest.LogCaptureFixture) -> None:
    refusal = ServingError(Code.NOT_FOUND, "none\nof that name")
    for enabled in (False, True):
        monitoring.log_answered(enabled)
        monitoring.log_request("1", "GRPC", "Predict", "taxi", 1.234, None)
        monitoring.log_request("2", "REST", "Predict", "n" * 1000, 5, refusal)
    answered = ("serving.access", logging.INFO, "1 GRPC Predict 'taxi' 1.23 ms OK")
    refused = (
        "serving.access",
        logging.WARNING,
        f"2 REST Predict '{'n' * 200}' 5.00 ms NOT_FOUND 'none\\nof that name'",
    )
    assert caplog.record_tuples == [refused, answered, refused]


def test_an_exchange_is_in_flight_then_counted_and_keeps_why_it_was_refused() -> None:
    metrics = Metrics()
    with Exchange(metrics, "REST", "a-1") as answered:
        answered.model, answered.api = "taxi", "predict"
        assert metrics.in_flight.value(("REST",)) == 1
    with Exchange(metrics, "GRPC", None, "Predict") as refused:
        raise ServingError(Code.NOT_FOUND, "none of that name")
    assert (answered.identity, answered.error) == ("a-1", None)
    assert refused.error is not None
    assert refused.error.code is Code.NOT_FOUND
    assert metrics.in_flight.total() == 0
    assert metrics.request_count.value(("taxi", "OK")) == metrics.request_count.value(("", "NOT_FOUND")) == 1
    assert metrics.request_latency.total() == 1


def test_what_else_ends_an_exchange_is_recorded_where_its_meaning_is_known() -> None:
    metrics = Metrics()
    with pytest.raises(KeyError), Exchange(metrics, "REST", None):
        raise KeyError
    assert metrics.request_count.total() == 0
    cancelled = Exchange(metrics, "GRPC", None, "Predict")
    cancelled.error = ServingError(Code.CANCELLED, "the client did not wait for the answer")
    with pytest.raises(KeyError), cancelled:
        raise KeyError
    assert metrics.request_count.value(("", "CANCELLED")) == 1
