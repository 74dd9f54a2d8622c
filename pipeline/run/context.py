"""The context of a run: what runs, and where. Created once, where a command or a process begins, and passed down."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from typing_extensions import Self

from components.example_gen.files import InputFiles
from pipeline.plan import beam, fingerprint, nodes
from pipeline.plan import recipe as recipes
from pipeline.plan.beam_settings import BeamSettings
from pipeline.plan.environment import Environment
from pipeline.plan.fingerprint import Fingerprint
from pipeline.plan.recipe import Recipe
from pipeline.run.folder import Request, RunFolder
from pipeline.run.workplace import Workplace


@dataclass(frozen=True)
class RunContext:
    """One run of a recipe.

    Attributes:
        recipe: What runs.
        workplace: Where it runs.
        inputs: The files of its data.
        request: What was requested: the run's id, its span of data, its first and last node.
    """

    recipe: Recipe
    workplace: Workplace
    inputs: InputFiles
    request: Request

    @classmethod
    def create(
        cls,
        recipe_name: str,
        overrides: Sequence[str],
        environment_name: str,
        run_id: str | None = None,
        from_node: str | None = None,
        to_node: str | None = None,
        force: bool = False,
    ) -> Self:
        """Creates the context of a run that a user requests.

        Args:
            recipe_name: The recipe.
            overrides: `--set` texts.
            environment_name: The environment's name or file.
            run_id: The run's id; None for a new one.
            from_node: The first node to run, in any case.
            to_node: The last node to run, in any case.
            force: Whether to run nodes even if their results are cached.

        Raises:
            MillraceError: The recipe, environment, data or nodes do not exist, or do not fit together.
        """
        recipe = recipes.load(recipe_name, overrides)
        workplace = Workplace.load(environment_name)
        inputs = recipe.find_inputs()
        request = Request(
            recipe=recipe_name,
            overrides=tuple(overrides),
            environment=environment_name,
            run_id=run_id or new_run_id(recipe_name),
            span=inputs.span,
            from_node=nodes.find(from_node, recipe.settings.nodes) if from_node else None,
            to_node=nodes.find(to_node, recipe.settings.nodes) if to_node else None,
            force=force,
        )
        nodes.check_present(recipe, request.from_node, request.to_node)
        nodes.check_order(request.from_node, request.to_node, nodes.names(recipe))
        return cls(recipe, workplace, inputs, request)

    @classmethod
    def from_request(cls, request: Request) -> Self:
        """Creates the context of a run that another process requests.

        Raises:
            MillraceError: The recipe, environment or data do not exist (any more).
        """
        recipe = recipes.load(request.recipe, request.overrides)
        return cls(recipe, Workplace.load(request.environment), recipe.find_inputs(), request)

    def patient(self) -> RunContext:
        """The same run, at a workplace that waits for an object store that is down."""
        return replace(self, workplace=self.workplace.patient())

    @property
    def environment(self) -> Environment:
        """Where it runs, as settings."""
        return self.workplace.environment

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.request.run_id

    @property
    def folder(self) -> RunFolder:
        """The run's log folder."""
        return self.workplace.run_folder(self.run_id)

    @cached_property
    def fingerprints(self) -> Mapping[str, Fingerprint]:
        """What each node's result depends on now."""
        return fingerprint.fingerprints(self.recipe, self.environment, self.inputs)

    @cached_property
    def engine(self) -> tuple[BeamSettings, str | None]:
        """Beam's settings with `auto` resolved, and why that engine was chosen; None if the environment chose it."""
        return beam.resolve_engine(self.environment.beam, self.inputs)

    def sweep_leftovers(self) -> None:
        """Cancels what the recipe's latest run left unfinished; the caller holds the recipe's lock."""
        self.workplace.sweep_leftovers(self.recipe.name)


def new_run_id(recipe_name: str) -> str:
    """A run id that sorts by time, such as `taxi-20261121-041502`."""
    return f"{recipe_name}-{time.strftime('%Y%m%d-%H%M%S')}"
