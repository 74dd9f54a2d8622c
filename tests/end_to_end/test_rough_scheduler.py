"""Two runs at once in one store, their processes killed, the store away: what they make is what is made in peace."""

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
    """Waits until a node of the first run is seen running."""
    deadline = time.monotonic() + TIME_LIMIT_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        run = None
        # While its tables are being made, too.
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
    there, here = opened(server_environment), project.store
    assert here is not None
    [local] = here.run_ids("taxi")
    ran = {node for node in nodes.NODES if node != nodes.TFLITE_NODE}
    for run in ("one", "two"):
        records = there.node_runs("taxi", run)
        assert set(records) == ran, story
        assert {record.state for record in records.values()} <= {"COMPLETE", "CACHED"}, story
        assert digests(there, run) == digests(here, local), story
        assert transformed(there, run) == transformed(here, local), story
    assert metrics(there, "one") == pytest.approx(metrics(here, local), abs=1e-6), story
    # Nothing of what was killed is left: every folder is that of an execution that ended well.
    root = server_environment.parent / "pipeline" / "taxi"
    for node in ran - {"BaselineModel"}:
        made = {record.id: record.state for record in there.history("taxi", node)}
        left = {int(path.name) for path in root.glob(f"{node}/*/*") if path.name.isdigit()}
        assert left == {number for number, state in made.items() if state == "COMPLETE"}, (node, story)
