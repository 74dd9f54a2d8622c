"""Links to the things that a page names: to the dashboard's pages, or none in a report."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode


class Links:
    """Links in a report, which stands alone: all are empty."""

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


def _part(text: str) -> str:
    return quote(text, safe="")


class Urls(Links):
    """The dashboard's addresses, which stay valid when it is restarted."""

    def run(self, run_id: str) -> str:
        return f"/runs/{_part(run_id)}"

    def node(self, run_id: str, node: str) -> str:
        return f"{self.run(run_id)}/nodes/{_part(node)}"

    def artifact(self, artifact_id: int) -> str:
        return f"/artifacts/{artifact_id}"

    def lineage(self, artifact_id: int) -> str:
        return f"/artifacts/{artifact_id}/lineage"

    def difference(self, before: str, after: str) -> str:
        return f"/diff/{_part(before)}/{_part(after)}"

    def log(self, run_id: str, node: str) -> str:
        """The whole log of a node of a run, as text."""
        return f"{self.node(run_id, node)}/log"

    def report(self, run_id: str) -> str:
        """The report of a run, one file to keep or to send."""
        return f"/reports/{_part(run_id)}"

    def file(self, artifact_id: int, path: str) -> str:
        """A file of an artifact."""
        return f"/artifacts/{artifact_id}/files/{quote(path)}"

    def runs(self, **query: str | int | None) -> str:
        """A page of the list of runs."""
        return with_query("/", query)

    def artifacts(self, **query: str | int | None) -> str:
        """A page of the list of artifacts."""
        return with_query("/artifacts", query)

    def models(self, **query: str | int | None) -> str:
        """A page of the list of models."""
        return with_query("/models", query)

    def compare(self, **query: str | int | None) -> str:
        """The comparison of a recipe's runs."""
        return with_query("/compare", query)

    def tensorboard(self, run_id: str) -> str:
        """The page of a run's curves in TensorBoard."""
        return f"{self.run(run_id)}/tensorboard"


def with_query(path: str, query: Mapping[str, str | int | None]) -> str:
    """An address with a query, leaving out empty parameters."""
    parameters = {key: value for key, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(parameters)}" if parameters else path


URLS = Urls()
