"""A run whose nodes are processes of their own, in PostgreSQL, against the local run in SQLite."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_metadata as mlmd
import postgres
import pytest
from copied_project import TIME_LIMIT_SECONDS, Project

from metadata import connection
from metadata.queries import Queries
from metadata.records import NodeRun
from pipeline.commands.node import EXIT_TRY_AGAIN

RUN = "by-node"


@pytest.fixture
def store(postgres_server: postgres.Server, postgres_password: None) -> mlmd.proto.ConnectionConfig:
    """An empty PostgreSQL database."""
    made = postgres_server.new_database()
    return connection.postgresql(made.host, made.port, made.database, made.user, postgres.PASSWORD)


@pytest.fixture
def environment(store: mlmd.proto.ConnectionConfig, tmp_path: Path) -> str:
    """An environment file with that store."""
    server = store.postgresql
    where = {"host": server.host.strip("'"), "port": int(server.port), "database": server.dbname.strip("'")}
    access = {"user": postgres.OWNER, "password_env": postgres.PASSWORD_ENV}
    roots = {f"{name}_root": str(tmp_path / name) for name in ("pipeline", "serving", "log")}
    path = tmp_path / "server.yaml"
    path.write_text(json.dumps({"metadata_store": {"postgresql": where | access}} | roots))
    return str(path)


def end(*processes: subprocess.Popen[str]) -> list[int]:
    for process in processes:
        process.communicate(timeout=TIME_LIMIT_SECONDS)
    return [process.returncode for process in processes]


def described(queries: Queries, nodes: Mapping[str, NodeRun]) -> dict[str, dict[str, Any]]:
    """What nodes took and put out: types, properties and the digests of all files, by node and name."""
    found: dict[str, dict[str, Any]] = {}
    for node, record in nodes.items():
        made = {"in": queries.inputs(record.id), "out": queries.outputs(record.id)}
        found[node] = {
            f"{way} {name}": [(a.type, a.state, a.properties, digests(Path(a.uri))) for a in artifacts]
            for way, by_name in made.items()
            for name, artifacts in by_name.items()
        } | {"state": record.state, "properties": record.properties}
    return found


def digests(folder: Path) -> dict[str, str]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_nodes_alone_leave_what_the_local_run_leaves(
    project: Project, environment: str, store: mlmd.proto.ConnectionConfig
) -> None:
    def start(node: str) -> subprocess.Popen[str]:
        return project.start("node", "run", "taxi", node, "--run", RUN, "--env", environment)

    # Two at once, in a database without tables; what is told to try again does, as a scheduler would have it.
    codes = dict(zip(("ExampleGen", "SchemaGen"), end(start("ExampleGen"), start("SchemaGen")), strict=True))
    assert [0 if code == EXIT_TRY_AGAIN else code for code in codes.values()] == [0, 0]
    assert [end(start(node)) for node, code in codes.items() if code == EXIT_TRY_AGAIN] in ([], [[0]], [[0], [0]])
    early = start("ExampleValidator")
    assert "have not succeeded in run by-node: StatisticsGen (not begun)." in early.communicate()[1]
    assert early.returncode == 2
    assert end(start("StatisticsGen")) == [0]
    assert project.millrace("run", "taxi", "--to", "ExampleValidator").code == 0

    queries = Queries(store)
    run = queries.run(RUN)
    assert run is not None
    local = project.node_runs(project.run_ids()[0])
    assert project.store is not None
    alone = {record.node: record for record in run.nodes}
    assert set(local) == {*alone, "ExampleValidator"}
    assert described(queries, alone) == described(project.store, {node: local[node] for node in alone})
