"""Runs of our own pipeline in a folder of their own, as the benchmarks' children."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from benchmarks import children
from metadata.store import ArtifactRecord, NodeRun, Store
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


def run(
    name: str,
    environment: Path,
    log_folder: Path,
    *overrides: str,
    bars: bool = True,
    recipe: str = RECIPE,
    last_node: str | None = None,
) -> children.Timed:
    """Runs `millrace run`.

    Args:
        name: What to call the run in its log's name and in errors.
        environment: From `write_environment`.
        log_folder: Where its log goes.
        overrides: `key=value` texts for `--set`.
        bars: Whether a model that misses the recipe's bars counts as a failure.
        recipe: Which one.
        last_node: Where to end; None runs the whole pipeline.

    Raises:
        ChildError: The run failed.
    """
    sets = [word for override in overrides for word in ("--set", override)]
    # By module, so that this checkout is timed, wherever the installed `millrace` may point.
    ending = ["--to", last_node] if last_node else []
    command = ["-m", "pipeline.cli", "run", recipe, "--env", str(environment), *ending, *sets]
    return children.run(name, command, log_folder, allowed=(0,) if bars else (0, EXIT_NOT_GOOD_ENOUGH))


def latest_nodes(folder: Path, recipe: str = RECIPE) -> dict[str, NodeRun]:
    """The node runs of the latest run of a recipe in a folder."""
    store = _store(folder)
    return store.node_runs(recipe, store.run_ids(recipe)[0])


def output(folder: Path, recipe: str, node: str, key: str) -> ArtifactRecord:
    """What a node of the latest run of a recipe put out."""
    [found] = _store(folder).outputs(latest_nodes(folder, recipe)[node].id)[key]
    return found


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
