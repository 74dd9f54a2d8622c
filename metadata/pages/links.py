"""Where the things that a page names can be looked at."""

from __future__ import annotations


class Links:
    """Where things can be looked at; in a report, which stands alone, nowhere: every answer is an empty text."""

    def run(self, run_id: str) -> str:
        """The page of a run."""
        return ""

    def node(self, run_id: str, node: str) -> str:
        """The page of a node of a run."""
        return ""

    def artifact(self, artifact_id: int) -> str:
        """The page of an artifact."""
        return ""

    def lineage(self, artifact_id: int) -> str:
        """The graph of what an artifact was made from and what was made from it."""
        return ""

    def difference(self, before: str, after: str) -> str:
        """What differs between two runs."""
        return ""
