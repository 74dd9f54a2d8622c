"""A copy of the project in a folder of its own, used as a user would: through its commands."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metadata.store import NodeRun, Store

SOURCE = Path(__file__).resolve().parents[2]
COPIED = ("components", "contracts", "environments", "metadata", "pipeline", "recipes", "schemas", "serving", "ui")
TIME_LIMIT_SECONDS = 600


@dataclass(frozen=True)
class Finished:
    """The result of a command."""

    code: int
    output: str
    errors: str


class Project:
    """A copied project.

    Args:
        folder: Where it is; a folder that exists already is taken as it is.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if folder.exists():
            return
        ignore = shutil.ignore_patterns("__pycache__")
        for name in COPIED:
            shutil.copytree(SOURCE / name, folder / name, ignore=ignore)
        shutil.copy(SOURCE / "setup.py", folder)

    def millrace(self, *arguments: str) -> Finished:
        """Runs a command to its end."""
        process = self.start(*arguments)
        output, errors = process.communicate(timeout=TIME_LIMIT_SECONDS)
        return Finished(process.returncode, output, errors)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Starts a command."""
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "pipeline.cli", *arguments],
            cwd=self.folder,
            env={**os.environ, "COLUMNS": "120"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def stop_in(self, node: str, stop_signal: signal.Signals, *arguments: str) -> Finished:
        """Starts a run and sends it a signal as soon as a node is running."""
        before = set(self.run_ids())
        process = self.start("run", *arguments)
        deadline = time.monotonic() + TIME_LIMIT_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            newest = self.run_ids()[:1]
            if newest and newest[0] not in before and self.states(newest[0]).get(node) == "RUNNING":
                process.send_signal(stop_signal)
                break
            time.sleep(0.05)
        output, errors = process.communicate(timeout=TIME_LIMIT_SECONDS)
        return Finished(process.returncode, output, errors)

    def outputs(self) -> dict[str, Path]:
        """Output -> its folder, of all nodes of the newest run that have one."""
        assert self.store is not None
        by_node = [self.store.outputs(record.id) for record in self.node_runs(self.run_ids()[0]).values()]
        return {name: Path(artifacts[0].uri) for named in by_node for name, artifacts in named.items()}

    @property
    def store(self) -> Store | None:
        """The project's metadata store."""
        return Store.open_sqlite(self.folder / "artifacts" / "metadata.sqlite")

    def run_ids(self) -> list[str]:
        """The taxi recipe's runs, newest first."""
        try:
            return self.store.run_ids("taxi") if self.store else []
        except Exception as error:
            # The worker has created the file, but not yet its tables.
            if "schema" in str(error) or "table" in str(error):
                return []
            raise

    def node_runs(self, run_id: str) -> dict[str, NodeRun]:
        """The node runs of a run."""
        assert self.store is not None
        return self.store.node_runs("taxi", run_id)

    def states(self, run_id: str) -> dict[str, str]:
        """ML Metadata's state of each node of a run."""
        return {node: record.state for node, record in self.node_runs(run_id).items()}

    def ran(self) -> set[str]:
        """The nodes of the newest run that were not cached."""
        return {node for node, state in self.states(self.run_ids()[0]).items() if state != "CACHED"} - {"BaselineModel"}

    def pushed_versions(self) -> list[str]:
        """The pushed versions of the taxi model, oldest first."""
        folder = self.folder / "artifacts" / "serving" / "taxi"
        return sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []

    def edit(self, path: str, old: str, new: str) -> None:
        """Replaces a text that must be in a file."""
        file = self.folder / path
        text = file.read_text(encoding="utf-8")
        assert old in text, f"{old!r} is not in {path}"
        file.write_text(text.replace(old, new, 1), encoding="utf-8")

    def evaluation(self) -> dict[str, float]:
        """The metrics of the newest run that has an evaluation."""
        assert self.store is not None
        record = self.node_runs(self.run_ids()[0])["Evaluator"]
        folder = self.store.outputs(record.id)["evaluation"][0].uri
        summary = json.loads(Path(folder, "summary.json").read_text(encoding="utf-8"))
        return {metric["name"]: metric["value"] for metric in summary["metrics"]}

    def insights(self, recipe: str) -> dict[str, Any]:
        """The model insights of the newest evaluation of a recipe."""
        folders = (self.folder / "artifacts" / "pipelines" / recipe / "Evaluator" / "evaluation").iterdir()
        newest = max(folders, key=lambda folder: int(folder.name))
        document: dict[str, Any] = json.loads((newest / "insights.json").read_text(encoding="utf-8"))
        return document
