"""Runs of our own pipeline in a folder of their own, as the benchmarks' children."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from benchmarks import children
from components.example_gen.files import resolve
from contracts.evaluation import Summary
from metadata.store import ArtifactRecord, NodeRun, Store
from pipeline.plan import recipe as recipes
from pipeline.plan.project import ENGINE
from pipeline.run import run_summary

RECIPE = "taxi"
EXIT_NOT_GOOD_ENOUGH = 3
CLI = ("-m", "pipeline.cli")
"""Called by module, so that this checkout is measured wherever the installed `millrace` points."""


def write_taxi_rows(path: Path, times: int) -> None:
    """Writes the taxi recipe's CSV with its rows repeated `times` times."""
    [taxi] = resolve(recipes.load(RECIPE).settings.data, ENGINE).files
    header, rows = taxi.read_bytes().split(b"\n", 1)
    with path.open("wb") as file:
        file.write(header + b"\n")
        for _ in range(times):
            file.write(rows)


def write_environment(folder: Path, **sections: Any) -> Path:
    """Writes an environment whose stores and outputs are all in `folder`; returns its path.

    Args:
        folder: Created; must not exist yet.
        sections: Further sections of the environment.
    """
    settings = sections | {
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
    options: Sequence[str] = (),
) -> children.Timed:
    """Runs `millrace run`.

    Args:
        name: The run's name in errors and in the name of its log.
        environment: The path that `write_environment` returned.
        log_folder: The folder of the log.
        overrides: `key=value` texts for `--set`.
        bars: Whether a model that misses the recipe's bars counts as a failure.
        recipe: The recipe's name.
        last_node: The last node to run; None runs the whole pipeline.
        options: Further options of `millrace run`.

    Raises:
        ChildError: The run failed.
    """
    sets = [word for override in overrides for word in ("--set", override)]
    ending = ["--to", last_node] if last_node else []
    command = [*CLI, "run", recipe, "--env", str(environment), *ending, *sets, *options]
    return children.run_child(name, command, log_folder, allowed=(0,) if bars else (0, EXIT_NOT_GOOD_ENOUGH))


def latest_nodes(folder: Path, recipe: str = RECIPE) -> dict[str, NodeRun]:
    """The node runs of the latest run of a recipe in a folder."""
    store = _store(folder)
    return store.node_runs(recipe, store.run_ids(recipe)[0])


def output(folder: Path, recipe: str, node: str, key: str) -> ArtifactRecord:
    """An output artifact of a node in the latest run of a recipe."""
    [artifact] = _store(folder).outputs(latest_nodes(folder, recipe)[node].id)[key]
    return artifact


def evaluation(folder: Path) -> Summary:
    """The Evaluator's summary of the latest run in a folder."""
    summary = run_summary.read_run_summary(_store(folder), latest_nodes(folder)).evaluation
    if summary is None:
        raise children.ChildError(f"the run in {folder} left no evaluation.")
    return summary


def _store(folder: Path) -> Store:
    store = Store.open_sqlite(_metadata_path(folder))
    if store is None:
        raise children.ChildError(f"the run in {folder} left no metadata store.")
    return store


def _metadata_path(folder: Path) -> Path:
    return folder / "metadata.sqlite"
