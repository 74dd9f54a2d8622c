"""Times the loop that a user lives in, edit and run again: `python -m benchmarks.edit`.

Each edit is made in a project of its own, and timed from the command to its exit. See README.md beside this file.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median

import click
import yaml
from rich.console import Console

from benchmarks import children, command, millrace
from benchmarks.command import Figure
from pipeline.plan import project

MAX_MODEL_SECONDS = 8.0
MAX_UNCHANGED_SECONDS = 0.5
LAST_NODE = "Evaluator"
STANDBY_MINUTES = 5.0

MODEL = "recipes/taxi/model.py"
FEATURES = "recipes/taxi/features.py"
EDIT = "\nEDITED = {number}\n"
"""A constant, which changes the file's digest and nothing that is computed."""


@click.command(context_settings=command.HELP)
@click.option(
    "--rounds", default=3, show_default=True, type=click.IntRange(min=1), help="How often each edit is timed."
)
@command.JSON_OPTION
@command.KEEP_OPTION
def main(rounds: int, json_path: Path | None, keep: bool) -> None:
    """Time runs after an edit, with a process on standby and without.

    Exit codes: 0 all bars met, 1 a bar missed or a run failed.
    """
    console = Console()
    with command.temporary_folder(console, keep) as folder:
        measured = {name: _measure(folder / name, minutes, rounds, console) for name, minutes in SIDES.items()}
    figures = _figures(measured)
    command.show_figures(console, f"Seconds, medians of {rounds}", figures)
    command.write_json(json_path, {"bars": [figure.to_dict() for figure in figures], "seconds": measured})
    sys.exit(0 if all(figure.met for figure in figures) else 1)


SIDES = {"with standby": STANDBY_MINUTES, "without": 0.0}


def _figures(measured: dict[str, dict[str, list[float]]]) -> list[Figure]:
    stands, alone = ({what: median(seconds) for what, seconds in measured[side].items()} for side in SIDES)
    return [
        Figure("model.py edited, to its evaluated model", stands["model"], at_most=MAX_MODEL_SECONDS, unit=" s"),
        Figure("  the same without standby", alone["model"], unit=" s"),
        Figure("  ratio", stands["model"] / alone["model"]),
        Figure("features.py edited, to its evaluated model", stands["features"], unit=" s"),
        Figure("  the same without standby", alone["features"], unit=" s"),
        Figure("  ratio", stands["features"] / alone["features"]),
        Figure("nothing changed", stands["unchanged"], at_most=MAX_UNCHANGED_SECONDS, unit=" s"),
    ]


def _measure(folder: Path, minutes: float, rounds: int, console: Console) -> dict[str, list[float]]:
    """The seconds of runs after each edit; the first runs of the project are not among them."""
    own = _copied_project(folder / "project")
    environment = millrace.write_environment(folder / "stores")
    settings = yaml.safe_load(environment.read_text(encoding="utf-8"))
    environment.write_text(yaml.safe_dump(settings | {"standby_minutes": minutes}), encoding="utf-8")

    def run(what: str, *options: str) -> float:
        console.print(f"{folder.name}: {what}", style="dim", highlight=False)
        words = [*millrace.CLI, "run", millrace.RECIPE, "--env", str(environment), *options]
        return children.run_child(what.replace(" ", "-"), words, folder / "logs", project=own).seconds

    run("fresh run")
    return {
        "unchanged": [run(f"unchanged {number}") for number in range(rounds)],
        "model": [_edited(run, own / MODEL, "model", number) for number in range(rounds)],
        "features": [_edited(run, own / FEATURES, "features", number) for number in range(rounds)],
    }


def _edited(run: Callable[..., float], file: Path, what: str, number: int) -> float:
    text = file.read_text(encoding="utf-8")
    file.write_text(text + EDIT.format(number=number), encoding="utf-8")
    try:
        return run(f"{what} {number}", "--to", LAST_NODE)
    finally:
        file.write_text(text, encoding="utf-8")


def _copied_project(folder: Path) -> Path:
    """A project with the taxi recipe and its schema, beside which Millrace is where it is."""
    for part in ("recipes/taxi", "schemas/taxi"):
        shutil.copytree(project.ENGINE / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


if __name__ == "__main__":
    main()
