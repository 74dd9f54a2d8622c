"""A run that is recorded in PostgreSQL."""

from __future__ import annotations

import json
from pathlib import Path

import postgres
from copied_project import Project


def test_a_run_is_recorded_and_reused(project: Project, server_environment: Path, tmp_path: Path) -> None:
    environment = str(server_environment)
    to = ("--to", "StatisticsGen", "--env", environment)
    states = []
    for _ in range(2):
        finished = project.millrace("run", "taxi", *to)
        assert finished.code == 0, finished.errors
        assert finished.errors == ""
        status = json.loads(project.millrace("status", "--json", "--env", environment).output)
        states.append({node["node"]: node["state"] for node in status["nodes"]})
    nodes = ("ExampleGen", "StatisticsGen")
    assert states == [dict.fromkeys(nodes, "done"), dict.fromkeys(nodes, "cached")]
    [first] = json.loads(project.millrace("artifacts", "ExampleStatistics", "--json", "--env", environment).output)
    assert first["node"] == "StatisticsGen"
    assert (Path(first["uri"]) / "Split-train" / "FeatureStats.pb").exists()
    why = project.millrace("why", "StatisticsGen", "--env", environment).output
    assert why.startswith("StatisticsGen was cached: its inputs, settings, code and packages are those of run taxi-")
    # No file that a run leaves has the password.
    files = [path for path in tmp_path.rglob("*") if path.is_file() and "project" not in path.parts]
    assert any(path.name == "request.json" for path in files)
    assert not [path for path in files if postgres.PASSWORD.encode() in path.read_bytes()]
