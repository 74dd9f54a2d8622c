"""When a request is sent again: only where the server could not take it, with back-off and jitter, within a deadline.

Every request of these clients only reads, so sending one twice does no harm.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import tenacity

from serving.client.answers import ClientError

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
