"""`millrace schema accept` and `millrace schema reject`: what becomes of the proposals."""

from __future__ import annotations

import click

from components.errors import MillraceError
from pipeline.commands.line import (
    ENVIRONMENT_OPTION,
    environment_words,
    reports_errors,
    run_line,
    set_words,
    shell_line,
)
from pipeline.commands.schema.arguments import (
    FEATURES,
    FILES_OPTION,
    RECIPE,
    RUN_OPTION,
    SEEN_OPTION,
    offer_of,
    propose_line,
    request_of,
)
from pipeline.recipe import project_relative
from pipeline.schema_changes import files, rejections
from pipeline.schema_changes.offer import Offer


@click.command()
@RECIPE
@FEATURES
@click.option("--all", "everything", is_flag=True, help="All that is proposed.")
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
    """Change RECIPE's schema as it is proposed for FEATURE..., and nothing else in the file."""
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
    files.replace(offered.path, offered.before, offered.text_with(chosen))
    click.echo("\n".join(offered.diff(chosen)))
    left = [proposal for proposal in offered.proposals if proposal not in chosen or proposal.reasons]
    names = ", ".join(proposal.feature for proposal in chosen)
    click.echo(f"\n{project_relative(offered.path)}: {names or 'written'}. Review it, and commit it.")
    if left:
        click.echo(f"Still open: {', '.join(proposal.feature for proposal in left)}.")
    request = request_of(offered.run, environment_name)
    if request and not overrides:
        again = run_line(request)
    else:
        again = shell_line("run", recipe_name, *set_words(overrides), *environment_words(environment_name))
    click.echo(f"Go on:  {again}")


@click.command()
@RECIPE
@FEATURES
@click.option("--reason", required=True, help="Why not; kept with it.")
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
    """Remember that what is proposed for FEATURE... is not wanted; the same is not proposed again."""
    if not features:
        line = propose_line(recipe_name, environment_name)
        raise MillraceError("received no feature, expected FEATURE...", f"See what is proposed:  {line}")
    offered = offer_of(recipe_name, run_id, environment_name, overrides)
    _check_seen(offered, seen, recipe_name, environment_name)
    chosen = offered.chosen(features)
    for proposal in chosen:
        if not proposal.changes:
            raise MillraceError(f"{proposal.feature} has no proposal to reject: {'; '.join(proposal.reasons)}.")
    path = offered.path.with_name(rejections.FILE)
    rejections.add(path, {proposal.feature: proposal.keys for proposal in chosen}, reason, offered.run)
    click.echo(f"{project_relative(path)}: {', '.join(p.feature for p in chosen)}. The data gate still stops on them.")


def _check_seen(offered: Offer, seen: str | None, recipe_name: str, environment_name: str) -> None:
    if seen not in (None, offered.digest):
        raise MillraceError(
            f"{project_relative(offered.path)} changed since it was shown: received --seen {seen}, it is "
            f"{offered.digest} now; nothing was written.",
            f"Look again:  {propose_line(recipe_name, environment_name)}",
        )
