"""The nodes of the run as a graph, with states and times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from metadata.pages.charts import Graph, Node
from metadata.pages.rendering import seconds
from metadata.records import QUIET_NODES, STATE_WORDS, NodeRun
from metadata.report.source import Source, Surroundings

WAITING = "waiting"


@dataclass(frozen=True)
class Row:
    """A node of the run.

    Attributes:
        node: Its id.
        state: Its state in a word.
        started: Milliseconds since 1970; None where it did not begin.
        seconds: How long it took; None where it did not run, or runs.
        origin: The run whose results it took; empty where it ran itself.
    """

    node: str
    state: str
    started: int | None
    seconds: float | None
    origin: str


@dataclass(frozen=True)
class Nodes:
    """The graph and the same as a table.

    Attributes:
        run_id: The run's id.
        chart: The graph.
        rows: In the order of the data flow.
    """

    run_id: str
    chart: Graph
    rows: list[Row]


def read(source: Source, surroundings: Surroundings) -> Nodes:
    """Reads them; nodes that do no work of their own are left out."""
    origins = _origins(source)
    shown = _without_quiet(surroundings.graph)
    # What the recipe's pipeline no longer has comes last.
    names = [*shown, *(node.node for node in source.run.nodes if node.node not in {*shown, *QUIET_NODES})]
    rows = [_row(name, source.nodes.get(name), origins.get(name, "")) for name in names]
    chart = Graph(
        title="Nodes of the run",
        nodes=[
            Node(row.node, row.node, _detail(row), row.state, href=_href(row, source.run.id, surroundings))
            for row in rows
        ],
        edges=[(upstream, node) for node, found in shown.items() for upstream in found],
    )
    return Nodes(source.run.id, chart, rows)


def _row(name: str, record: NodeRun | None, origin: str) -> Row:
    if record is None:
        return Row(name, WAITING, None, None, "")
    took = record.ended is not None and record.state != "CACHED"
    return Row(name, STATE_WORDS[record.state], record.started, record.seconds if took else None, origin)


def _detail(row: Row) -> str:
    return f"from {row.origin}" if row.origin else seconds(row.seconds) or row.state


def _href(row: Row, run_id: str, surroundings: Surroundings) -> str:
    return "" if row.started is None else surroundings.links.node(run_id, row.node)


def _origins(source: Source) -> dict[str, str]:
    """The runs that made what cached nodes put out, by node."""
    cached = {
        artifacts[0].id: node.node
        for node in source.run.nodes
        if node.state == "CACHED"
        for artifacts in source.outputs.get(node.node, {}).values()
    }
    producers = source.store.producers(cached) if cached else {}
    made = source.store.node_runs_by_id(producers.values())
    return {
        cached[artifact]: made[execution][1].run or "" for artifact, execution in producers.items() if execution in made
    }


def _without_quiet(graph: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    """The graph without quiet nodes; whoever takes from one takes from those that it takes from."""

    def upstream(node: str) -> list[str]:
        return [name for found in graph[node] for name in (upstream(found) if found in QUIET_NODES else [found])]

    return {node: list(dict.fromkeys(upstream(node))) for node in graph if node not in QUIET_NODES}
