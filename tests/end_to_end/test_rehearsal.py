"""The Kubeflow spec, rehearsed: its own commands as processes, with PostgreSQL, give what the local run gives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from copied_project import Finished, Project
from results import digests, metrics, opened, transformed

from pipeline.plan import nodes

SETTINGS = ("--set", "trainer.train_steps=100")


def rehearsed(project: Project, environment: Path) -> Finished:
    return project.millrace("kubeflow", "rehearse", "taxi", *SETTINGS, "--run", "r1", "--on", str(environment))


def test_what_is_rehearsed_is_what_a_local_run_makes(
    project: Project, server_environment: Path, tmp_path: Path
) -> None:
    local = project.millrace("run", "taxi", *SETTINGS)
    assert local.code == 3, local.errors
    finished = rehearsed(project, server_environment)
    assert finished.code == 3, finished.errors
    # With too few steps, the bars are missed; the task that reports it has run, since nothing failed.
    lines = {line.split()[0]: line.split()[1] for line in finished.output.splitlines() if line.startswith("  ")}
    assert lines["Pusher"] == lines["NotGoodEnough"] == lines["CloseRun"] == "done"
    assert "failed" not in lines.values()

    on_server, local_store = opened(server_environment), project.store
    assert local_store is not None
    [run] = local_store.run_ids("taxi")
    states = {node: record.state for node, record in on_server.node_runs("taxi", "r1").items()}
    assert states == dict.fromkeys((node for node in nodes.NODES if node != nodes.TFLITE_NODE), "COMPLETE")
    assert digests(on_server, "r1") == digests(local_store, run)
    rows = transformed(on_server, "r1")
    assert len(rows) == 4966
    assert rows == transformed(local_store, run)
    assert metrics(on_server, "r1") == pytest.approx(metrics(local_store, run), abs=1e-6)

    folder = tmp_path / "log" / "r1" / "kubeflow"
    output = json.loads((folder / "pusher" / "output.json").read_text())
    assert output["parameterValues"] == {"outcome": "not good enough"}
    assert "Not pushed: the model did not reach every bar." in (folder / "not-good-enough.log").read_text()
    assert (folder / "close-run" / "report").read_bytes() == (tmp_path / "log" / "r1" / "report.html").read_bytes()
