"""`millrace schema propose`: what the data ask of the schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from pipeline.commands import found
from pipeline.commands.line import ENVIRONMENT_OPTION, environment_words, reports_errors, set_words, shell_line
from pipeline.commands.schema.arguments import FILES_OPTION, RECIPE, RUN_OPTION, offer_of
from pipeline.recipe import project_relative
from pipeline.schema_changes import changes, rejections
from pipeline.schema_changes.changes import Proposal
from pipeline.schema_changes.offer import Offer


@click.command()
@RECIPE
@RUN_OPTION
@FILES_OPTION
@found.JSON_OPTION
@ENVIRONMENT_OPTION
@reports_errors
def propose(
    recipe_name: str, run_id: str | None, overrides: tuple[str, ...], as_json: bool, environment_name: str
) -> None:
    """Show what the data of the latest run ask of RECIPE's schema; nothing is changed."""
    offered = offer_of(recipe_name, run_id, environment_name, overrides)
    acceptable = [proposal for proposal in offered.proposals if proposal.changes]
    if as_json:
        found.print_json(_values(offered, acceptable))
        return
    shown = project_relative(offered.path)
    if offered.before is None:
        click.echo(f"{recipe_name} has no curated schema yet: accepting writes {shown}, inferred by {offered.run}.")
    if not offered.proposals:
        click.echo(f"The data of {offered.run} ask for no {'other ' if offered.rejected else ''}change of the schema.")
    _show_proposals(offered.proposals)
    if offered.rejected:
        file = project_relative(offered.path.with_name(rejections.FILE))
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
    said = [f"{change.text}{_counted(change)}" for change in proposal.changes if change.text]
    return [*said, *(f"by hand: {reason}" for reason in proposal.reasons), *(f"note: {n}" for n in proposal.notes)]


def _counted(change: changes.Change) -> str:
    told = change.count is None or change.setting in {changes.NEW, changes.VALUE}
    return "" if told else f", in {change.count}"


def _show_next(recipe_name: str, offered: Offer, acceptable: Sequence[Proposal], words: Sequence[str]) -> None:
    exactly = ["--run", offered.run, "--seen", offered.digest, *words]
    click.echo(f"\nAccept:  {shell_line('schema', 'accept', recipe_name, '--all', *exactly)}")
    if acceptable:
        some = ["schema", "reject", recipe_name, acceptable[0].feature, "--reason", "…", *exactly]
        click.echo(f"Reject:  {shell_line(*some)}")


def _values(offered: Offer, acceptable: Sequence[Proposal]) -> dict[str, Any]:
    return {
        "run": offered.run,
        "schema": project_relative(offered.path),
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
