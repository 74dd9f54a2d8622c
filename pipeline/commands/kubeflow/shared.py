"""Options and helpers of the commands that talk to a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click
from typing_extensions import Self

from contracts.errors import ClusterError
from pipeline.plan import environment as environments
from pipeline.plan import recipe
from pipeline.plan.environment import Environment
from pipeline.plan.kubeflow_settings import KubeflowSettings
from pipeline.plan.recipe import Recipe
from pipeline.run.command_lines import shell_line
from pipeline.schedule.kubeflow import tasks

if TYPE_CHECKING:
    from pipeline.schedule.kubeflow.client import Client, Version

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


@dataclass(frozen=True)
class Target:
    """The cluster of an environment.

    Attributes:
        environment: The environment.
        name: Its name or file, as the user gave it.
        settings: Its `kubeflow` section, checked.
    """

    environment: Environment
    name: str
    settings: KubeflowSettings

    @classmethod
    def load(cls, environment_name: str) -> Self:
        """Loads the cluster of the environment with that name, or in that file.

        Raises:
            SettingsError: It has none, or pods cannot share it.
        """
        environment = environments.load(environment_name)
        return cls(environment, environment_name, tasks.check_environment(environment, environment_name))

    @cached_property
    def client(self) -> Client:
        """A client of its Kubeflow Pipelines.

        Raises:
            SettingsError: Its token's variable is not set.
        """
        from pipeline.schedule.kubeflow.client import Client

        return Client(self.settings)

    def tasks(self, chosen: Recipe) -> list[tasks.Task]:
        """The tasks of a recipe on this cluster."""
        return tasks.recipe_tasks(chosen, self.environment, self.name)

    def compile_spec(self, chosen: Recipe, overrides: tuple[str, ...]) -> str:
        """A recipe's pipeline spec and platform spec."""
        # Imported here because the SDK takes 1.7 s to import.
        from pipeline.schedule.kubeflow import spec

        return spec.compile_spec(chosen, self.environment, self.name, overrides)

    def upload(self, recipe_name: str, overrides: tuple[str, ...]) -> tuple[Recipe, Version]:
        """Compiles a recipe, checks it against the cluster, and uploads it if it is new.

        Raises:
            SettingsError: The recipe or the environment is wrong, or the cluster lacks what they need.
            ClusterError: Kubeflow Pipelines cannot be reached or refuses.
        """
        chosen = recipe.load(recipe_name, overrides)
        text = self.compile_spec(chosen, overrides)
        self.client.check_reachable()
        for note in self._unchecked(chosen):
            click.echo(note, err=True)
        version = self.client.upload(chosen.name, chosen.settings.description, text)
        word = "Uploaded" if version.new else "Is there"
        click.echo(f"{word:<10} version {version.name} of the pipeline {chosen.name}")
        return chosen, version

    def _unchecked(self, chosen: Recipe) -> list[str]:
        """Checks that the cluster has what the tasks need, and says what could not be checked from here."""
        from pipeline.schedule.kubeflow.cluster import Cluster

        wanted = tasks.resource_requests(chosen, self.tasks(chosen), self.settings)
        try:
            return Cluster().check(self.settings, wanted)
        except ClusterError as error:
            return [f"Not looked at: what the tasks need of the cluster; {error.what}"]

    def page(self, path: str) -> str:
        """The address of one of Kubeflow's pages."""
        return f"{self.settings.pages}/#/{path}"

    def command(self, *words: str) -> str:
        """Another command of this group, for the same cluster."""
        options = [] if self.name == DEFAULT_ENVIRONMENT else ["--env", self.name]
        return shell_line("kubeflow", *words, *options)


def parameters(run: str, span: int | None, overrides: tuple[str, ...]) -> dict[str, Any]:
    """The values of the pipeline's parameters."""
    return {
        tasks.RUN_PARAMETER: run,
        tasks.SPAN_PARAMETER: "" if span is None else str(span),
        tasks.SET_PARAMETER: list(overrides),
    }
