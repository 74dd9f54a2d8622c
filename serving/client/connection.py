"""A client's credentials, deadline and retries; the same for REST and gRPC.

All requests of these clients only read, so sending one twice does no harm.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import tenacity

from serving.client.results import ClientError
from serving.errors import Code

Result = TypeVar("Result")


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how fast requests are retried.

    Attributes:
        attempts: The most times that a request is sent; 1 for no retries.
        first_wait: Upper bound of the wait before the second attempt, in seconds. It doubles with each further one; the
            wait is drawn from 0 to that bound, so that clients that failed together do not return together.
        longest_wait: The largest upper bound, in seconds. It does not limit the wait that a server asks for.
        sleep: Waits for a number of seconds.
    """

    attempts: int = 5
    first_wait: float = 0.1
    longest_wait: float = 5.0
    sleep: Callable[[float], None] = time.sleep

    def call(self, attempt: Callable[[], Result], timeout: float) -> Result:
        """Sends a request until it is answered, refused for good, or out of attempts or time.

        Args:
            attempt: Sends the request once.
            timeout: Seconds for all attempts and the waits between them. A wait that would outlast them does not begin.

        Raises:
            ClientError: The error of the last attempt.
        """
        backoff = tenacity.wait_random_exponential(multiplier=self.first_wait, max=self.longest_wait)

        def wait(state: tenacity.RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            retry_after = error.retry_after if isinstance(error, ClientError) else None
            return backoff(state) if retry_after is None else retry_after

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, ClientError) and error.retryable),
            stop=tenacity.stop_any(tenacity.stop_after_attempt(self.attempts), tenacity.stop_before_delay(timeout)),
            wait=wait,
            sleep=self.sleep,
            reraise=True,
        )
        return retrying(attempt)


DEFAULT_RETRIES = RetryPolicy()


@dataclasses.dataclass(frozen=True)
class Connection:
    """The settings of both clients besides the address.

    Attributes:
        token: Sent as `Authorization: Bearer …` with every request; None for none.
        ca: The authority that must have signed the server's certificate, PEM; None for those that the machine trusts.
        certificate: The client's own certificate, PEM, for servers that ask for one; with `key`.
        key: Its private key, PEM.
        timeout: Seconds for a whole call, including retries, unless the call says otherwise.
        retries: When and how often a request is sent again.
    """

    token: str | None = None
    ca: Path | str | None = None
    certificate: Path | str | None = None
    key: Path | str | None = None
    timeout: float = 30.0
    retries: RetryPolicy = DEFAULT_RETRIES

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise ClientError(Code.INVALID_ARGUMENT, "received one of certificate and key, expected both or none")
        if self.timeout <= 0:
            raise ClientError(Code.INVALID_ARGUMENT, f"received timeout={self.timeout:g}, expected more than 0 seconds")
