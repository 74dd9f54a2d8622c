"""`millrace deploy`: what serves the pushed models with TensorFlow Serving."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from pipeline import environment as environments
from pipeline import outcome, recipe
from pipeline.commands.line import (
    ENVIRONMENT_OPTION,
    RECIPE_ARGUMENT,
    SET_OPTION,
    environment_words,
    reports_errors,
    shell_line,
)


@click.command()
@RECIPE_ARGUMENT
@SET_OPTION
@ENVIRONMENT_OPTION
@click.option("--output", type=click.Path(path_type=Path), help="A folder; serving/deploy/<recipe> unless given.")
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit 1 with a diff where something differs.")
@reports_errors
def deploy(
    recipe_name: str, overrides: tuple[str, ...], environment_name: str, output: Path | None, only_check: bool
) -> None:
    """Write what serves a recipe's pushed models with TensorFlow Serving: Docker, Kubernetes, KServe."""
    # Its messages come with the server's package, which other commands do not need.
    from pipeline import deployments

    chosen = recipe.load(recipe_name, overrides)
    folder = (output or deployments.default_output(recipe_name)).absolute()
    sets = [part for override in overrides for part in ("--set", override)]
    words = ["deploy", recipe_name, *sets, *environment_words(environment_name)]
    files = deployments.texts(chosen, environments.load(environment_name), folder, shlex.join(["millrace", *words]))
    if only_check:
        deployments.check(files, folder, shell_line(*words, *(["--output", str(output)] if output else [])))
    for path in [] if only_check else deployments.write(files, folder):
        click.echo(outcome.shown(path))
    for sentence in deployments.omissions(chosen):
        click.echo(sentence, err=True)
