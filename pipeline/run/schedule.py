"""The order in which a run's nodes begin, and what is left of it when one fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from contracts.failure import Failure


class Schedule:
    """Which nodes of a run can begin now.

    When a node fails, those that run beside it are awaited, because their results are kept, and nothing after it in the
    data flow begins. What comes before it does, since it may say why: a gate that refuses the data that broke the node.

    Args:
        waits: The nodes that each waits for, in the order of the data flow.
    """

    def __init__(self, waits: Mapping[str, Sequence[str]]) -> None:
        self._waits = waits
        self._order = list(waits)
        self._waiting = list(waits)
        self._done: set[str] = set()
        self._failures: dict[str, Failure] = {}

    def ready(self) -> list[str]:
        """The nodes that can begin, in the order of the data flow."""
        end = min(map(self._order.index, self._failures), default=len(self._order))
        return [
            node for node in self._waiting if self._order.index(node) < end and self._done.issuperset(self._waits[node])
        ]

    def begin(self, node: str) -> None:
        """A node begins."""
        self._waiting.remove(node)

    def end(self, node: str, failure: Failure | None) -> None:
        """A node has ended."""
        if failure is None:
            self._done.add(node)
        else:
            self._failures[node] = failure

    @property
    def failure(self) -> Failure | None:
        """Why the run failed: of several failures, that of the node which comes first in the data flow."""
        return next((self._failures[node] for node in self._order if node in self._failures), None)
