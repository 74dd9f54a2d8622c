"""What the commands that speak to a cluster share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from components.errors import ClusterError
from pipeline import environment as environments
from pipeline import recipe
from pipeline.kubeflow import tasks
from pipeline.kubeflow.settings import KubeflowSettings
from pipeline.recipe import Recipe

if TYPE_CHECKING:
    from pipeline.kubeflow.client import Client, Version

DEFAULT_ENVIRONMENT = "kubeflow"
ENVIRONMENT_OPTION = click.option(
    "--env",
    "environment_name",
    default=DEFAULT_ENVIRONMENT,
    show_default=True,
    help="A name under environments/, or a file there.",
)
SPAN_OPTION = click.option(
    "--span", type=click.IntRange(min=0), help="The span of the data to read; the newest unless given."
)


def settings_of(environment_name: str) -> KubeflowSettings:
    """The `kubeflow` section of an environment, checked.

    Raises:
        SettingsError: There is none, or the environment cannot be shared by pods.
    """
    return tasks.check(environments.load(environment_name), environment_name)


def client_of(environment_name: str) -> Client:
    """The client of an environment's cluster.

    Raises:
        SettingsError: The environment has no cluster, or its token's variable is not set.
    """
    from pipeline.kubeflow.client import Client

    return Client(settings_of(environment_name))


def spec_text(chosen: Recipe, environment_name: str, overrides: tuple[str, ...]) -> str:
    """The two documents of a recipe."""
    # The SDK takes 1.7 s to import.
    from pipeline.kubeflow import spec

    return spec.text(chosen, environments.load(environment_name), environment_name, overrides)


def uploaded(
    recipe_name: str, overrides: tuple[str, ...], environment_name: str, client: Client
) -> tuple[Recipe, Version]:
    """Compiles a recipe, checks it against the cluster, and uploads it where it is new.

    Raises:
        SettingsError: The recipe, the environment, or what they need of the cluster is wrong.
        ClusterError: Kubeflow Pipelines cannot be reached or refuses.
    """
    chosen = recipe.load(recipe_name, overrides)
    text = spec_text(chosen, environment_name, overrides)
    client.reach()
    for note in _looked_at(chosen, environment_name):
        click.echo(note, err=True)
    version = client.upload(chosen.name, chosen.settings.description, text)
    word = "Uploaded" if version.new else "Is there"
    click.echo(f"{word:<10} version {version.name} of the pipeline {chosen.name}")
    return chosen, version


def _looked_at(chosen: Recipe, environment_name: str) -> list[str]:
    """Checks what the tasks need of the cluster, as far as Kubernetes' API can be reached from here."""
    from pipeline.kubeflow.cluster import Cluster

    environment = environments.load(environment_name)
    settings = tasks.check(environment, environment_name)
    wanted = tasks.asking(chosen, tasks.of(chosen, environment, environment_name), settings)
    try:
        return Cluster().check(settings, wanted)
    except ClusterError as error:
        return [f"Not looked at: what the tasks need of the cluster; {error.what}"]


def parameters(run: str, span: int | None, overrides: tuple[str, ...]) -> dict[str, Any]:
    """The pipeline's parameters."""
    return {
        tasks.RUN_PARAMETER: run,
        tasks.SPAN_PARAMETER: "" if span is None else str(span),
        tasks.SET_PARAMETER: list(overrides),
    }


def where(environment_name: str) -> list[str]:
    """The words that name an environment on a command line of this group; none for its default."""
    return [] if environment_name == DEFAULT_ENVIRONMENT else ["--env", environment_name]
