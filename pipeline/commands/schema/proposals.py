"""`millrace schema propose`, `accept` and `reject`: schema changes that the data call for, and decisions on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from contracts.errors import MillraceError
from metadata.connection import BUSY
from metadata.queries import Queries
from metadata.records import RunRecord
from pipeline.commands import lookup
from pipeline.commands.options import ENVIRONMENT_OPTION, reports_errors
from pipeline.plan import project
from pipeline.plan import recipe as recipes
from pipeline.run.command_lines import (
    DEFAULT_ENVIRONMENT,
    DEFAULT_RECIPE,
    environment_words,
    run_line,
    set_words,
    shell_line,
)
from pipeline.run.workplace import Workplace
from pipeline.schema import changes, offer, reviewed_files
from pipeline.schema.changes import Proposal
from pipeline.schema.offer import Offer


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
        # A message would appear in the middle of the line being typed; the command itself prints it.
        return []
    names = [proposal.feature for proposal in offered.proposals if proposal.changes]
    return [feature for feature in names if feature.startswith(incomplete) and feature not in chosen]


RECIPE = click.argument("recipe_name", metavar="[RECIPE]", default=DEFAULT_RECIPE, shell_complete=complete_recipes)
FEATURES = click.argument("features", metavar="[FEATURE]...", nargs=-1, shell_complete=complete_features)
RUN_OPTION = click.option(
    "--run",
    "run_id",
    metavar="RUN",
    shell_complete=lookup.complete_runs,
    help="The run whose data to use; default: the latest.",
)
FILES_OPTION = click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="Where the current files are, e.g. data.path=trips.csv; default: as in that run.",
)
SEEN_OPTION = click.option(
    "--seen", metavar="DIGEST", help="Refuse if the schema is no longer the one that was shown under this digest."
)


def offer_of(recipe_name: str, run_id: str | None, environment_name: str, overrides: tuple[str, ...] = ()) -> Offer:
    """Compares the data of a run with a recipe's schema; by default with the run's own overrides.

    Raises:
        MillraceError: There is no such recipe or run, or the run left no data to compare.
    """
    recipes.check_name(recipe_name)
    workplace = Workplace.load(environment_name)
    store = lookup.open_store(workplace)
    run = run_of(store, recipe_name, run_id, environment_name)
    request = workplace.run_folder(run.id).read_request()
    chosen = recipes.load(recipe_name, overrides or (request.overrides if request else ()))
    is_latest = run.id in store.run_ids(chosen.name)[:1]
    return offer.make_offer(store, chosen, run, look_at_files=is_latest)


def run_of(store: Queries, recipe_name: str, run_id: str | None, environment_name: str) -> RunRecord:
    """The recipe's run with that id; its latest for None.

    Raises:
        MillraceError: There is none.
    """
    if run_id is not None:
        run = lookup.find_run(store, run_id)
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


def propose_line(recipe_name: str, environment_name: str) -> str:
    """The command that shows what is proposed."""
    return shell_line("schema", "propose", recipe_name, *environment_words(environment_name))


@click.command()
@RECIPE
@RUN_OPTION
@FILES_OPTION
@lookup.JSON_OPTION
@ENVIRONMENT_OPTION
@reports_errors
def propose(
    recipe_name: str, run_id: str | None, overrides: tuple[str, ...], as_json: bool, environment_name: str
) -> None:
    """Show the changes to RECIPE's schema that the latest run's data call for; nothing is changed."""
    offered = offer_of(recipe_name, run_id, environment_name, overrides)
    acceptable = [proposal for proposal in offered.proposals if proposal.changes]
    if as_json:
        lookup.print_json(_values(offered, acceptable))
        return
    shown = project.relative_path(offered.path)
    if offered.before is None:
        click.echo(f"{recipe_name} has no curated schema yet: accepting writes {shown}, inferred by {offered.run}.")
    if not offered.proposals:
        click.echo(f"The data of {offered.run} ask for no {'other ' if offered.rejected else ''}change of the schema.")
    _show_proposals(offered.proposals)
    if offered.rejected:
        file = project.relative_path(offered.path.with_name(reviewed_files.REJECTED_FILE))
        click.echo(f"Rejected before, see {file}: {', '.join(offered.rejected)}")
    if acceptable:
        click.echo()
        click.echo("\n".join(offered.diff(acceptable)))
    if acceptable or offered.before is None:
        exactly = [*set_words(overrides), *environment_words(environment_name)]
        _show_next(recipe_name, offered, acceptable, exactly)


def _show_proposals(proposals: Sequence[Proposal]) -> None:
    width = max((len(proposal.feature) for proposal in proposals), default=0)
    for proposal in proposals:
        name = proposal.feature
        for line in _lines(proposal):
            click.echo(f"{name:<{width}}  {line}")
            name = ""


def _lines(proposal: Proposal) -> list[str]:
    texts = [f"{change.text}{_counted(change)}" for change in proposal.changes if change.text]
    return [*texts, *(f"by hand: {reason}" for reason in proposal.reasons), *(f"note: {n}" for n in proposal.notes)]


def _counted(change: changes.Change) -> str:
    omitted = change.count is None or change.setting in {changes.NEW, changes.VALUE}
    return "" if omitted else f", in {change.count}"


def _show_next(recipe_name: str, offered: Offer, acceptable: Sequence[Proposal], words: Sequence[str]) -> None:
    exactly = ["--run", offered.run, "--seen", offered.digest, *words]
    click.echo(f"\nAccept:  {shell_line('schema', 'accept', recipe_name, '--all', *exactly)}")
    if acceptable:
        some = ["schema", "reject", recipe_name, acceptable[0].feature, "--reason", "…", *exactly]
        click.echo(f"Reject:  {shell_line(*some)}")


def _values(offered: Offer, acceptable: Sequence[Proposal]) -> dict[str, Any]:
    return {
        "run": offered.run,
        "schema": project.relative_path(offered.path),
        "curated": offered.before is not None,
        "seen": offered.digest,
        "rejected": list(offered.rejected),
        "proposals": [_proposal_values(proposal) for proposal in offered.proposals],
        "diff": offered.diff(acceptable) if acceptable or offered.before is None else [],
    }


def _proposal_values(proposal: Proposal) -> dict[str, Any]:
    return {
        "feature": proposal.feature,
        "changes": [
            {
                "setting": change.setting,
                "values": list(change.values),
                "text": change.text,
                "rows": change.count.rows if change.count else None,
                "exact": change.count.exact if change.count else None,
            }
            for change in proposal.changes
        ],
        "by_hand": list(proposal.reasons),
        "notes": list(proposal.notes),
    }


@click.command()
@RECIPE
@FEATURES
@click.option("--all", "everything", is_flag=True, help="Everything that is proposed.")
@RUN_OPTION
@SEEN_OPTION
@FILES_OPTION
@ENVIRONMENT_OPTION
@reports_errors
def accept(
    recipe_name: str,
    features: tuple[str, ...],
    everything: bool,
    run_id: str | None,
    seen: str | None,
    overrides: tuple[str, ...],
    environment_name: str,
) -> None:
    """Change RECIPE's schema as proposed for FEATURE..., and nothing else in the file."""
    if everything == bool(features):
        raise MillraceError(
            f"received {'both features and --all' if everything else 'no feature'}, expected FEATURE... or --all.",
            f"See what is proposed:  {propose_line(recipe_name, environment_name)}",
        )
    offered = offer_of(recipe_name, run_id, environment_name, overrides)
    _check_seen(offered, seen, recipe_name, environment_name)
    acceptable = [proposal for proposal in offered.proposals if proposal.changes]
    chosen = acceptable if everything else offered.chosen(features)
    for proposal in chosen:
        if not proposal.changes:
            raise MillraceError(f"{proposal.feature} cannot be accepted: {'; '.join(proposal.reasons)}.")
    if not chosen and offered.before is not None:
        click.echo(f"The data of {offered.run} ask for no change that can be accepted.")
        return
    reviewed_files.replace_file(offered.path, offered.before, offered.text_with(chosen))
    click.echo("\n".join(offered.diff(chosen)))
    left = [proposal for proposal in offered.proposals if proposal not in chosen or proposal.reasons]
    names = ", ".join(proposal.feature for proposal in chosen)
    click.echo(f"\n{project.relative_path(offered.path)}: {names or 'written'}. Review it, and commit it.")
    if left:
        click.echo(f"Still open: {', '.join(proposal.feature for proposal in left)}.")
    request = Workplace.load(environment_name).run_folder(offered.run).read_request()
    if request and not overrides:
        again = run_line(request)
    else:
        again = shell_line("run", recipe_name, *set_words(overrides), *environment_words(environment_name))
    click.echo(f"Go on:  {again}")


@click.command()
@RECIPE
@FEATURES
@click.option("--reason", required=True, help="Why not; stored with the rejection.")
@RUN_OPTION
@SEEN_OPTION
@FILES_OPTION
@ENVIRONMENT_OPTION
@reports_errors
def reject(
    recipe_name: str,
    features: tuple[str, ...],
    reason: str,
    run_id: str | None,
    seen: str | None,
    overrides: tuple[str, ...],
    environment_name: str,
) -> None:
    """Reject what is proposed for FEATURE...; the same change is not proposed again."""
    if not features:
        line = propose_line(recipe_name, environment_name)
        raise MillraceError("received no feature, expected FEATURE...", f"See what is proposed:  {line}")
    offered = offer_of(recipe_name, run_id, environment_name, overrides)
    _check_seen(offered, seen, recipe_name, environment_name)
    chosen = offered.chosen(features)
    for proposal in chosen:
        if not proposal.changes:
            raise MillraceError(f"{proposal.feature} has no proposal to reject: {'; '.join(proposal.reasons)}.")
    path = offered.path.with_name(reviewed_files.REJECTED_FILE)
    reviewed_files.add_rejections(path, {proposal.feature: proposal.keys for proposal in chosen}, reason, offered.run)
    click.echo(
        f"{project.relative_path(path)}: {', '.join(p.feature for p in chosen)}. The data gate still stops on them."
    )


def _check_seen(offered: Offer, seen: str | None, recipe_name: str, environment_name: str) -> None:
    if seen not in (None, offered.digest):
        raise MillraceError(
            f"{project.relative_path(offered.path)} changed since it was shown: received --seen {seen}, it is "
            f"{offered.digest} now; nothing was written.",
            f"Look again:  {propose_line(recipe_name, environment_name)}",
        )
