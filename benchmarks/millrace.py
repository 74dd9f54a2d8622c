"""Runs of our own pipeline in a folder of their own, as the benchmarks' children."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from benchmarks import children
from metadata.store import NodeRun, Store
from pipeline import outcome

RECIPE = "taxi"
EXIT_NOT_GOOD_ENOUGH = 3


def write_environment(folder: Path) -> Path:
    """Writes an environment whose stores and outputs all lie in `folder`; returns its path."""
    settings = {
        "metadata_store": {"sqlite": str(_metadata_path(folder))},
        "pipeline_root": str(folder / "pipelines"),
        "serving_root": str(folder / "serving"),
        "log_root": str(folder / "logs"),
    }
    folder.mkdir(parents=True)
    path = folder / "environment.yaml"
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return path


def run(name: str, environment: Path, log_folder: Path, *overrides: str, bars: bool = True) -> children.Timed:
    """Runs `millrace run taxi`.

    Args:
        name: What to call the run in its log's name and in errors.
        environment: From `write_environment`.
        log_folder: Where its log goes.
        overrides: `key=value` texts for `--set`.
        bars: Whether a model that misses the recipe's bars counts as a failure.

    Raises:
        ChildError: The run failed.
    """
    sets = [word for override in overrides for word in ("--set", override)]
    # By module, so that this checkout is timed, wherever the installed `millrace` may point.
    command = ["-m", "pipeline.cli", "run", RECIPE, "--env", str(environment), *sets]
    return children.run(name, command, log_folder, allowed=(0,) if bars else (0, EXIT_NOT_GOOD_ENOUGH))


def latest_nodes(folder: Path) -> dict[str, NodeRun]:
    """The node runs of the latest run in a folder."""
    store = _store(folder)
    return store.node_runs(RECIPE, store.run_ids(RECIPE)[0])


def evaluation(folder: Path) -> dict[str, Any]:
    """The Evaluator's summary of the latest run in a folder."""
    found = outcome.read(_store(folder), latest_nodes(folder)).evaluation
    if found is None:
        raise children.ChildError(f"the run in {folder} left no evaluation.")
    return found


def _store(folder: Path) -> Store:
    store = Store.open_sqlite(_metadata_path(folder))
    if store is None:
        raise children.ChildError(f"the run in {folder} left no metadata store.")
    return store


def _metadata_path(folder: Path) -> Path:
    return folder / "metadata.sqlite"
