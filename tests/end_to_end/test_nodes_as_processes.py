"""A run whose nodes are separate processes, with PostgreSQL, against the local run with SQLite."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from copied_project import TIME_LIMIT_SECONDS, Project
from results import digests_of, opened

from metadata.queries import Queries
from metadata.records import NodeRun
from pipeline.commands.node import EXIT_TRY_AGAIN

RUN = "by-node"


def end(*processes: subprocess.Popen[str]) -> list[int]:
    for process in processes:
        process.communicate(timeout=TIME_LIMIT_SECONDS)
    return [process.returncode for process in processes]


def described(queries: Queries, nodes: Mapping[str, NodeRun]) -> dict[str, dict[str, Any]]:
    """The inputs and outputs of nodes: types, properties and the digests of all files, by node and name."""
    by_node: dict[str, dict[str, Any]] = {}
    for node, record in nodes.items():
        by_direction = {"in": queries.inputs(record.id), "out": queries.outputs(record.id)}
        by_node[node] = {
            f"{way} {name}": [(a.type, a.state, a.properties, digests_of(Path(a.uri))) for a in artifacts]
            for way, by_name in by_direction.items()
            for name, artifacts in by_name.items()
        } | {"state": record.state, "properties": record.properties}
    return by_node


def test_nodes_alone_leave_what_the_local_run_leaves(project: Project, server_environment: Path) -> None:
    def start(node: str) -> subprocess.Popen[str]:
        return project.start("node", "run", "taxi", node, "--run", RUN, "--env", str(server_environment))

    # Two at once, in a database without tables; one that exits with "try again" is restarted, as by a scheduler.
    codes = dict(zip(("ExampleGen", "SchemaGen"), end(start("ExampleGen"), start("SchemaGen")), strict=True))
    assert [0 if code == EXIT_TRY_AGAIN else code for code in codes.values()] == [0, 0]
    assert [end(start(node)) for node, code in codes.items() if code == EXIT_TRY_AGAIN] in ([], [[0]], [[0], [0]])
    early = start("ExampleValidator")
    assert "have not succeeded in run by-node: StatisticsGen (not begun)." in early.communicate()[1]
    assert early.returncode == 2
    assert end(start("StatisticsGen")) == [0]
    assert project.millrace("run", "taxi", "--to", "ExampleValidator").code == 0

    queries = opened(server_environment)
    run = queries.run(RUN)
    assert run is not None
    local = project.node_runs(project.run_ids()[0])
    assert project.store is not None
    alone = {record.node: record for record in run.nodes}
    assert set(local) == {*alone, "ExampleValidator"}
    assert described(queries, alone) == described(project.store, {node: local[node] for node in alone})
