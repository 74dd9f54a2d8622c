"""Two runs at once in one store, with killed processes and an absent store, give the results of an undisturbed run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import postgres
import pytest
from copied_project import TIME_LIMIT_SECONDS, Project
from results import digests, metrics, opened, transformed

from metadata.connection import BUSY
from pipeline.plan import nodes
from pipeline.run.workplace import LOST, Workplace

SCHEDULER = Path(__file__).with_name("rough_scheduler.py")
SECONDS_AWAY = 3
KILLED = -9


def wait_for(node: str, environment: Path, process: subprocess.Popen[str]) -> None:
    """Waits until a node of the first run is running."""
    deadline = time.monotonic() + TIME_LIMIT_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        run = None
        # Also while its tables are being created.
        with suppress(*BUSY, *LOST):
            store = Workplace.load(str(environment)).open_store()
            run = store.run("one") if store else None
        if run and node in {record.node for record in run.nodes if record.state == "RUNNING"}:
            return
        time.sleep(0.1)
    raise AssertionError(f"{node} never ran: {process.communicate()}")


def test_what_rough_treatment_leaves_is_what_a_local_run_makes(
    project: Project, server_environment: Path, postgres_server: postgres.Server
) -> None:
    seed = int.from_bytes(os.urandom(2), "big")
    scheduler = subprocess.Popen(
        [sys.executable, "-W", "ignore", SCHEDULER, str(server_environment), str(seed)],
        cwd=project.folder,
        env={**os.environ, "PYTHONPATH": str(project.folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for("StatisticsGen", server_environment, scheduler)
    postgres_server.stop()
    time.sleep(SECONDS_AWAY)
    postgres_server.start()
    output, errors = scheduler.communicate(timeout=TIME_LIMIT_SECONDS)
    assert scheduler.returncode == 0, f"seed {seed}: {errors}"
    ended: dict[str, list[int]] = json.loads(output)
    story = f"seed {seed}: {ended}"
    assert len([code for codes in ended.values() for code in codes if code == KILLED]) >= 10, story
    assert {codes[-1] for codes in ended.values()} == {0}, story

    assert project.millrace("run", "taxi", "--set", "trainer.train_steps=100").code == 3
    on_server, local_store = opened(server_environment), project.store
    assert local_store is not None
    [local] = local_store.run_ids("taxi")
    ran = {node for node in nodes.NODES if node != nodes.TFLITE_NODE}
    for run in ("one", "two"):
        records = on_server.node_runs("taxi", run)
        assert set(records) == ran, story
        assert {record.state for record in records.values()} <= {"COMPLETE", "CACHED"}, story
        assert digests(on_server, run) == digests(local_store, local), story
        assert transformed(on_server, run) == transformed(local_store, local), story
    assert metrics(on_server, "one") == pytest.approx(metrics(local_store, local), abs=1e-6), story
    # Nothing is left of killed processes: every folder belongs to an execution that succeeded.
    root = server_environment.parent / "pipeline" / "taxi"
    for node in ran - {"BaselineModel"}:
        states = {record.id: record.state for record in on_server.history("taxi", node)}
        folders = {int(path.name) for path in root.glob(f"{node}/*/*") if path.name.isdigit()}
        assert folders == {number for number, state in states.items() if state == "COMPLETE"}, (node, story)
