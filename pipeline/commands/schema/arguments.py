"""What the commands of `millrace schema` share: their arguments, and the offer that they are about."""

from __future__ import annotations

import click

from components.errors import MillraceError
from metadata.connection import BUSY
from metadata.queries import Queries
from metadata.records import RunRecord
from pipeline import environment as environments
from pipeline import recipe as recipes
from pipeline import worker
from pipeline.commands import found
from pipeline.commands.line import DEFAULT_ENVIRONMENT, DEFAULT_RECIPE, environment_words, shell_line
from pipeline.schema_changes import offer
from pipeline.schema_changes.offer import Offer


def complete_recipes(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The recipes' names for the shell."""
    return [name for name in recipes.names() if name.startswith(incomplete)]


def complete_features(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The features for which something is proposed, for the shell."""
    chosen = context.params.get("features") or ()
    name = context.params.get("recipe_name") or DEFAULT_RECIPE
    environment = context.params.get("environment_name") or DEFAULT_ENVIRONMENT
    try:
        offered = offer_of(name, context.params.get("run_id"), environment)
    except (MillraceError, *BUSY):
        # A message would land in the middle of the line that is being typed; the command itself tells it.
        return []
    names = [proposal.feature for proposal in offered.proposals if proposal.changes]
    return [feature for feature in names if feature.startswith(incomplete) and feature not in chosen]


RECIPE = click.argument("recipe_name", metavar="[RECIPE]", default=DEFAULT_RECIPE, shell_complete=complete_recipes)
FEATURES = click.argument("features", metavar="[FEATURE]...", nargs=-1, shell_complete=complete_features)
RUN_OPTION = click.option(
    "--run", "run_id", metavar="RUN", shell_complete=found.complete_runs, help="Look at its data; default: the latest."
)
FILES_OPTION = click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="Where to look for the files of today, e.g. data.path=trips.csv; default: as in that run.",
)
SEEN_OPTION = click.option(
    "--seen", metavar="DIGEST", help="Refuse if the schema is no longer the one that was shown under this digest."
)


def offer_of(recipe_name: str, run_id: str | None, environment_name: str, overrides: tuple[str, ...] = ()) -> Offer:
    """What the data of a run ask of a recipe's schema; without `overrides`, those of the run hold.

    Raises:
        MillraceError: There is no such recipe or run, or the run left nothing to go by.
    """
    recipes.check_name(recipe_name)
    store = found.opened(environment_name)
    run = run_of(store, recipe_name, run_id, environment_name)
    request = request_of(run.id, environment_name)
    chosen = recipes.load(recipe_name, overrides or (request.overrides if request else ()))
    is_latest = run.id in store.run_ids(chosen.name)[:1]
    return offer.make(store, chosen, run, look_at_files=is_latest)


def run_of(store: Queries, recipe_name: str, run_id: str | None, environment_name: str) -> RunRecord:
    """The recipe's run of that id; its latest one for None.

    Raises:
        MillraceError: There is none.
    """
    if run_id is not None:
        run = found.run_of(store, run_id)
        if run.pipeline != recipe_name:
            raise MillraceError(f"{run_id} is a run of {run.pipeline}; received the recipe {recipe_name}.")
        return run
    latest = store.runs(recipe_name, limit=1)
    if not latest:
        raise MillraceError(
            f"{recipe_name} has not run yet: there are no data to look at.",
            f"Run it with: {shell_line('run', recipe_name, '--to', 'DataGate', *environment_words(environment_name))}",
        )
    return latest[0]


def request_of(run_id: str, environment_name: str) -> worker.Request | None:
    """What was asked of a run, its `--set` values included, or None where its log is gone."""
    path = environments.load(environment_name).log_root / run_id / worker.REQUEST_FILE
    return worker.Request.model_validate_json(path.read_text(encoding="utf-8")) if path.exists() else None


def propose_line(recipe_name: str, environment_name: str) -> str:
    """The command that shows what is proposed."""
    return shell_line("schema", "propose", recipe_name, *environment_words(environment_name))
