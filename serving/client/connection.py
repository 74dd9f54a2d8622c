"""Where a server is, how a client proves who it is, and when it asks again; the same for REST and gRPC.

Every request of these clients only reads, so sending one twice does no harm.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import tenacity

from serving.client.answers import ClientError
from serving.errors import Code

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how fast.

    Attributes:
        attempts: How often a request is sent at most; 1 for no retries.
        first_wait: Upper bound of the wait before the second attempt, in seconds; it doubles with each further one,
            and the wait is drawn from 0 to that bound, so that clients which failed together do not return together.
        longest_wait: Where the bound stops growing, in seconds. What a server asks to wait for is not bounded by it.
        sleep: Waits for that many seconds.
    """

    attempts: int = 5
    first_wait: float = 0.1
    longest_wait: float = 5.0
    sleep: Callable[[float], None] = time.sleep

    def call(self, attempt: Callable[[], Answer], timeout: float) -> Answer:
        """Sends a request until it is answered, refused for good, or out of attempts or time.

        Args:
            attempt: Sends it once.
            timeout: Seconds for all attempts and the waits between them. No wait begins that would outlast them.

        Raises:
            ClientError: Why the last attempt failed.
        """
        drawn = tenacity.wait_random_exponential(multiplier=self.first_wait, max=self.longest_wait)

        def wait(state: tenacity.RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            asked = error.retry_after if isinstance(error, ClientError) else None
            return drawn(state) if asked is None else asked

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
    """What both clients are told besides the address.

    Attributes:
        token: Sent as `Authorization: Bearer …` with every request; None for none.
        ca: The authority that the server's certificate must come from, PEM; None for those that the machine trusts.
        certificate: The client's own certificate, PEM, for servers that ask for one; with `key`.
        key: Its private key, PEM.
        timeout: Seconds for a whole call, retries included, unless the call says otherwise.
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
