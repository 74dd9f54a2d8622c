"""From a file to a pushed model by `millrace new` and `millrace run`: `python -m benchmarks.own_data`.

Each data set is a CSV in a user's own folder. The model is compared, on the rows that it was judged on, with two that
scikit-learn trains on the same training rows, gradient-boosted trees and a linear model, and with LightGBM's.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console

from benchmarks import children, command, extra_packages, millrace
from benchmarks.own_data_sets import LABEL, SETS, DataSet
from components.example_gen.settings import DataSettings
from contracts.yaml_settings import load_with_origins
from metadata.store import Store
from pipeline.commands.new.baseline import as_numbers
from pipeline.commands.new.columns import look_at
from pipeline.commands.new.table import read
from pipeline.commands.new.task import as_text, task_of
from pipeline.plan.recipe import RecipeSettings
from pipeline.run import run_summary

YARDSTICKS = ("trees", "lightgbm", "linear")

MARGINS = {"AUC": 0.005, "SparseCategoricalAccuracy": 0.005, "RootMeanSquaredError": 0.01}
"""How far behind the best yardstick the model may be: in the metric's unit, RMSE as a fraction."""


@click.command(context_settings=command.HELP)
@click.argument("names", nargs=-1, type=click.Choice(sorted(SETS)))
@command.JSON_OPTION
@command.KEEP_OPTION
def main(names: tuple[str, ...], json_path: Path | None, keep: bool) -> None:
    """Make models of the data sets NAMES (all of them by default); show seconds and quality.

    Exit codes: 0, or 1 if a command failed. A model that misses its bars is shown, not refused.
    """
    console = Console()
    results = []
    table = command.new_table(
        "", "Metric", "Seconds", "Processor", "Ours", "Trees", "LightGBM", "Linear", "Behind the best", ""
    )
    with command.temporary_folder(console, keep) as folder:
        for name in names or tuple(SETS):
            console.print(f"{name} …", style="dim")
            result = measure(SETS[name], folder)
            results.append(result)
            table.add_row(*map(str, _cells(result)))
            nodes = ", ".join(f"{node} {seconds:.1f} s" for node, seconds in result["nodes"].items())
            console.print(nodes, style="dim")
    console.print(table)
    ahead = sum(_behind(result) < 0 for result in results)
    console.print(f"Ahead of all on {ahead} of {len(results)} sets")
    command.write_json(json_path, results)


def measure(dataset: DataSet, folder: Path) -> dict[str, Any]:
    """Makes one model, and the yardsticks beside it."""
    project = folder / dataset.name
    project.mkdir()
    dataset.write(project / "data.csv")
    new = [*millrace.CLI, "new", dataset.name, "data.csv", "--label", LABEL, "--yes"]
    timed = [
        children.run_child("new", new, project / "logs", project=project),
        children.run_child(
            "run", [*millrace.CLI, "run", dataset.name], project / "logs", (0, millrace.EXIT_NOT_GOOD_ENOUGH), project
        ),
    ]
    store = Store.open_sqlite(project / "artifacts" / "metadata.sqlite")
    if store is None:
        raise children.ChildError(f"the run in {project} left no metadata store.")
    nodes = store.node_runs(dataset.name, store.run_ids(dataset.name)[0])
    summary = run_summary.read_run_summary(store, nodes).evaluation
    if summary is None:
        raise children.ChildError(f"the run in {project} left no evaluation.")
    metric = summary.metrics[0]
    return {
        "name": dataset.name,
        "metric": metric.name,
        "seconds": sum(child.seconds for child in timed),
        "limit_seconds": dataset.limit_seconds,
        "cpu_seconds": sum(child.cpu_seconds for child in timed),
        "nodes": {node: record.seconds for node, record in nodes.items()},
        "ours": metric.value,
        **yardsticks(project, dataset.name),
        "blessed": summary.blessed,
    }


def yardsticks(project: Path, name: str) -> dict[str, float]:
    """The metric of scikit-learn's boosted trees, its linear model and LightGBM on a recipe's evaluation rows."""
    from sklearn import metrics

    settings, _ = load_with_origins(RecipeSettings, project / "recipes" / name / "recipe.yaml", ())
    data: DataSettings = settings.data
    table = read(data, project)
    found = [look_at(column, cells) for column, cells in table.columns.items()]
    task = task_of(next(column for column in found if column.name == LABEL), table.columns[LABEL])
    used = [column for column in found if column.name != LABEL and column.use != "left out"]
    encoded = np.concatenate([as_numbers(column, table.columns[column.name]) for column in used], axis=1)
    labels = table.columns[LABEL]
    inside = table.in_training
    values = {}
    wanted = np.array([task.classes.index(as_text(label)) if task.classes else float(label) for label in labels])
    for kind, model in _models(bool(task.classes), project / "packages").items():
        model.fit(encoded[inside], wanted[inside])
        if not task.classes:
            predicted = model.predict(encoded[~inside])
            values[kind] = float(metrics.mean_squared_error(wanted[~inside], predicted) ** 0.5)
            continue
        scores = model.predict_proba(encoded[~inside])
        right = (scores.argmax(axis=1) == wanted[~inside]).mean()
        values[kind] = float(metrics.roc_auc_score(wanted[~inside], scores[:, 1]) if task.is_binary else right)
    return values


def _models(of_classes: bool, packages: Path) -> dict[str, Any]:
    """The yardsticks, each with its own defaults."""
    from sklearn import ensemble, linear_model

    sys.path.insert(0, str(extra_packages.install(packages, "lightgbm==4.6.0")))
    try:
        lightgbm = import_module("lightgbm")
    finally:
        sys.path.pop(0)
    options = {"random_state": 0, "verbosity": -1}
    if of_classes:
        return {
            "trees": ensemble.HistGradientBoostingClassifier(random_state=0),
            "lightgbm": lightgbm.LGBMClassifier(**options),
            "linear": linear_model.LogisticRegression(max_iter=2000),
        }
    return {
        "trees": ensemble.HistGradientBoostingRegressor(random_state=0),
        "lightgbm": lightgbm.LGBMRegressor(**options),
        "linear": linear_model.RidgeCV(np.logspace(-2, 4, 13)),
    }


def _behind(result: dict[str, Any]) -> float:
    """How far the model is behind the best yardstick; negative if it is ahead."""
    amount = result["metric"] == "RootMeanSquaredError"
    best = float((min if amount else max)(result[side] for side in YARDSTICKS))
    return float(result["ours"]) / best - 1 if amount else best - float(result["ours"])


def _cells(result: dict[str, Any]) -> list[str]:
    behind = _behind(result)
    met = behind <= MARGINS[result["metric"]] and result["seconds"] <= result["limit_seconds"]
    figures = [f"{result[side]:.4f}" for side in ("ours", *YARDSTICKS)]
    seconds = [f"{result['seconds']:.0f} s", f"{result['cpu_seconds']:.0f} s"]
    return [result["name"], result["metric"], *seconds, *figures, f"{behind:+.4f}", "met" if met else "missed"]


if __name__ == "__main__":
    main()
