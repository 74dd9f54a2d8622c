"""The spec for Kubeflow, rehearsed: its own commands as processes, against PostgreSQL, equal to the local run."""

from __future__ import annotations

import json
from pathlib import Path

import postgres
import pytest
import yaml
from copied_project import Finished, Project
from results import digests, metrics, transformed

from metadata import connection
from metadata.queries import Queries
from pipeline import nodes

SETTINGS = ("--set", "trainer.train_steps=100")


@pytest.fixture
def environment(postgres_server: postgres.Server, postgres_password: None, tmp_path: Path) -> Path:
    """An environment file whose store is an empty PostgreSQL database."""
    store = postgres_server.new_database().model_dump()
    roots = {f"{name}_root": str(tmp_path / name) for name in ("pipeline", "serving", "log")}
    path = tmp_path / "here.yaml"
    path.write_text(yaml.safe_dump({"metadata_store": {"postgresql": store}, **roots}))
    return path


def rehearsed(project: Project, environment: Path) -> Finished:
    return project.millrace("kubeflow", "rehearse", "taxi", *SETTINGS, "--run", "r1", "--on", str(environment))


def test_what_is_rehearsed_is_what_a_local_run_makes(
    project: Project, environment: Path, postgres_server: postgres.Server, tmp_path: Path
) -> None:
    local = project.millrace("run", "taxi", *SETTINGS)
    assert local.code == 3, local.errors
    finished = rehearsed(project, environment)
    assert finished.code == 3, finished.errors
    # Too few steps: the bars are missed, and the task that says so has run, as nothing failed.
    lines = {line.split()[0]: line.split()[1] for line in finished.output.splitlines() if line.startswith("  ")}
    assert lines["Pusher"] == lines["NotGoodEnough"] == lines["CloseRun"] == "done"
    assert "failed" not in lines.values()

    settings = yaml.safe_load(environment.read_text())["metadata_store"]["postgresql"]
    where = (settings["host"], settings["port"], settings["database"], settings["user"], postgres.PASSWORD)
    there, here = Queries.open(connection.postgresql(*where)), project.store
    assert there is not None
    assert here is not None
    [run] = here.run_ids("taxi")
    states = {node: record.state for node, record in there.node_runs("taxi", "r1").items()}
    assert states == dict.fromkeys((node for node in nodes.NODES if node != nodes.TFLITE_NODE), "COMPLETE")
    assert digests(there, "r1") == digests(here, run)
    rows = transformed(there, "r1")
    assert len(rows) == 4966
    assert rows == transformed(here, run)
    assert metrics(there, "r1") == pytest.approx(metrics(here, run), abs=1e-6)

    folder = tmp_path / "log" / "r1" / "kubeflow"
    told = json.loads((folder / "pusher" / "output.json").read_text())
    assert told["parameterValues"] == {"outcome": "not good enough"}
    assert "Not pushed: the model did not reach every bar." in (folder / "not-good-enough.log").read_text()
    assert (folder / "close-run" / "report").read_bytes() == (tmp_path / "log" / "r1" / "report.html").read_bytes()
