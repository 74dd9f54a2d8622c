"""`millrace rollback`: serve an older version again."""

from __future__ import annotations

import click
from rich.console import Console

from components.errors import PushError
from components.pusher import versions
from pipeline import environment as environments
from pipeline import history, outcome, recipe, stores
from pipeline import rollback as rollbacks
from pipeline.commands.line import (
    ENVIRONMENT_OPTION,
    RECIPE_ARGUMENT,
    environment_words,
    reports_errors,
    shell_line,
)

WIDEST = 200


@click.command()
@RECIPE_ARGUMENT
@click.option("--to", "version", type=int, metavar="VERSION", help="Which one; else the one before the served one.")
@click.option("--list", "listed", is_flag=True, help="Show the versions and change nothing.")
@ENVIRONMENT_OPTION
@reports_errors
def rollback(recipe_name: str, version: int | None, listed: bool, environment_name: str) -> None:
    """Serve an older version again, as a new one: running servers swap to it without a failed request."""
    recipe.check_name(recipe_name)
    environment = environments.load(environment_name)
    console = Console()
    if listed:
        existing = versions.find(environment.serving_root / recipe_name)
        if not existing:
            raise PushError(f"{environment.serving_root / recipe_name} holds no version.")
        shown = history.entries(recipe_name, existing, stores.opened(environment))
        # A terminal that is too narrow breaks the lines; no number is cut.
        console.width = max(console.width, WIDEST)
        console.print(history.table(recipe_name, shown))
        return
    done = rollbacks.roll_back(recipe_name, environment, version)
    lines = {
        "Restored": f"version {done.restored}, instead of version {done.served_before}",
        "Pushed to": outcome.shown(done.path),
        "Undo": shell_line(
            "rollback", recipe_name, "--to", str(done.served_before), *environment_words(environment_name)
        ),
    }
    for heading, text in lines.items():
        console.print(f"{heading:<10} {text}", highlight=False, soft_wrap=True)
    if not done.recorded:
        console.print("Not recorded: there is no metadata store.", style="yellow")
