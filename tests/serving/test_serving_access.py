"""Tokens, request ids and the access log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from serving import access
from serving.errors import Code, ServingError


@pytest.fixture(autouse=True)
def own_level() -> Iterator[None]:
    yield
    access.log_answered(False)


def test_a_token_is_a_files_text(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("  secret \n")
    assert access.read_token(path) == "secret"
    path.write_text("\n")
    with pytest.raises(ServingError, match=r"token, which is empty|expected a token in it"):
        access.read_token(path)
    with pytest.raises(ServingError, match=r"expected a text file: .*No such file"):
        access.read_token(tmp_path / "none")


def test_only_the_right_token_is_let_in() -> None:
    access.authorize(None, None)
    access.authorize("Bearer secret", "secret")
    for header in (None, "secret", "Bearer", "Basic secret", "Bearer secre", "Bearer secret2", "Bearer sécret"):
        with pytest.raises(ServingError) as caught:
            access.authorize(header, "secret")
        assert caught.value.code is Code.UNAUTHENTICATED


def test_a_clients_id_is_kept_where_it_cannot_forge_a_line() -> None:
    assert access.request_id("a-1.b_2") == "a-1.b_2"
    made = {access.request_id(given) for given in (None, "", "two words", "a\nb", "x" * 65)}
    assert len(made) == 5
    assert all(len(identity) == 32 for identity in made)


def test_answered_requests_are_logged_on_demand_and_refused_ones_always(caplog: pytest.LogCaptureFixture) -> None:
    refusal = ServingError(Code.NOT_FOUND, "none\nof that name")
    for wanted in (False, True):
        access.log_answered(wanted)
        access.log_request("1", "GRPC", "Predict", "taxi", 1.234, None)
        access.log_request("2", "REST", "Predict", "n" * 1000, 5, refusal)
    answered = ("serving.access", logging.INFO, "1 GRPC Predict 'taxi' 1.23 ms OK")
    refused = (
        "serving.access",
        logging.WARNING,
        f"2 REST Predict '{'n' * 200}' 5.00 ms NOT_FOUND 'none\\nof that name'",
    )
    assert caplog.record_tuples == [refused, answered, refused]
