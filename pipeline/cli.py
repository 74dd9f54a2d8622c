"""The command line: `millrace …`. The Makefile only wraps it."""

from __future__ import annotations

import logging

import click
import yaml

from components.errors import MillraceError
from pipeline import environment as environments
from pipeline import nodes, recipe, stores, why
from pipeline.commands import (
    check,
    deploy,
    diff,
    inspect,
    lineage,
    node,
    predict,
    report,
    rollback,
    run,
    runs,
    schema,
    serve,
)
from pipeline.commands.line import (
    DEFAULT_RECIPE,
    ENVIRONMENT_OPTION,
    RECIPE_ARGUMENT,
    SET_OPTION,
    environment_words,
    reports_errors,
    shell_line,
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="millrace")
def main() -> None:
    """Raw files in, a validated and served model out, every artifact recorded."""
    # ML Metadata logs each error that it raises; what a user needs of it is in ours.
    logging.getLogger("absl").setLevel(logging.CRITICAL)


@main.command("why")
@click.argument("node")
@click.option("--recipe", "recipe_name", default=DEFAULT_RECIPE, show_default=True)
@ENVIRONMENT_OPTION
@reports_errors
def why_command(node: str, recipe_name: str, environment_name: str) -> None:
    """Say in one sentence why NODE ran or was cached."""
    chosen = recipe.load(recipe_name)
    store = stores.opened(environments.load(environment_name))
    if store is None:
        run_it = shell_line("run", recipe_name, *environment_words(environment_name))
        raise MillraceError(f"{recipe_name} has not run yet.", f"Run it with: {run_it}")
    found = nodes.find(node)
    if not store.history(chosen.name, found):
        nodes.check_present(chosen, found)
    click.echo(why.explain(store, chosen.name, found))


@main.command()
@reports_errors
def recipes() -> None:
    """List the recipes."""
    for name in recipe.names():
        click.echo(f"{name:<12} {recipe.load(name).settings.description}")


@main.command()
@RECIPE_ARGUMENT
@SET_OPTION
@reports_errors
def show(recipe_name: str, overrides: tuple[str, ...]) -> None:
    """Print a recipe's resolved settings, defaults included."""
    settings = recipe.load(recipe_name, overrides).settings.model_dump(mode="json")
    click.echo(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True), nl=False)


INSPECT = (
    inspect.inspect,
    runs.runs,
    runs.status,
    runs.artifacts,
    lineage.lineage,
    diff.diff,
    report.report,
    schema.schema,
)

WORK = (run.run, node.node, check.check, serve.serve, predict.predict, rollback.rollback, deploy.deploy)

for command in (*WORK, *INSPECT):
    main.add_command(command)

if __name__ == "__main__":
    main()
