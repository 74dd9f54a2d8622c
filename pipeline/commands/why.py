"""`millrace why`: why a node ran or was cached."""

from __future__ import annotations

import click

from components.errors import MillraceError
from pipeline import environment as environments
from pipeline import nodes, recipe, stores
from pipeline import why as reasons
from pipeline.commands.line import (
    DEFAULT_RECIPE,
    ENVIRONMENT_OPTION,
    environment_words,
    reports_errors,
    shell_line,
)


@click.command()
@click.argument("node")
@click.option("--recipe", "recipe_name", default=DEFAULT_RECIPE, show_default=True)
@ENVIRONMENT_OPTION
@reports_errors
def why(node: str, recipe_name: str, environment_name: str) -> None:
    """Say in one sentence why NODE ran or was cached."""
    chosen = recipe.load(recipe_name)
    store = stores.opened(environments.load(environment_name))
    if store is None:
        run_it = shell_line("run", recipe_name, *environment_words(environment_name))
        raise MillraceError(f"{recipe_name} has not run yet.", f"Run it with: {run_it}")
    found = nodes.find(node)
    if next(store.latest(chosen.name, found), None) is None:
        nodes.check_present(chosen, found)
    click.echo(reasons.explain(store, chosen.name, found))
