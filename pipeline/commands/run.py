"""`millrace run`: runs a recipe's pipeline and reports how it ended."""

from __future__ import annotations

import sys

import click
from rich.console import Console

from contracts.errors import AnomalyError, NodeError
from pipeline.commands.options import (
    ENVIRONMENT_OPTION,
    EXIT_INTERRUPTED,
    EXIT_NOT_GOOD_ENOUGH,
    RECIPE_ARGUMENT,
    SET_OPTION,
    reports_errors,
)
from pipeline.plan import nodes
from pipeline.plan.table import EVALUATOR_NODE, TRAINER_NODE
from pipeline.run import local, progress, reports, run_summary
from pipeline.run.command_lines import display_path, environment_words, program, run_line, set_words, shell_line
from pipeline.run.context import RunContext
from pipeline.run.folder import Request


@click.command()
@RECIPE_ARGUMENT
@SET_OPTION
@click.option("--from", "from_node", metavar="NODE", help="Begin here; take earlier results from the last run.")
@click.option("--to", "to_node", metavar="NODE", help="End here.")
@click.option("--force", is_flag=True, help="Run nodes even if nothing that they depend on changed.")
@ENVIRONMENT_OPTION
@reports_errors
def run(
    recipe_name: str,
    overrides: tuple[str, ...],
    from_node: str | None,
    to_node: str | None,
    force: bool,
    environment_name: str,
) -> None:
    """Run a recipe's pipeline; what is up to date is not run again.

    \b
    Exit codes: 0 pushed or up to date, 1 error, 2 wrong settings,
    3 the model was refused, or its evaluation could not tell
    whether it is good enough, 75 try again (another run of the recipe
    is going on), 130 interrupted.
    """
    context = RunContext.create(
        recipe_name, overrides, environment_name, from_node=from_node, to_node=to_node, force=force
    )
    console = Console()
    title = f"{recipe_name}: {context.recipe.settings.description}"
    view = progress.View(console, title, nodes.names(context.recipe))
    try:
        finished = local.run(context, view)
    except KeyboardInterrupt:
        if line := reports.write_after_run(context.workplace, context.run_id, context.recipe):
            click.echo(line)
        click.echo(f"Stopped. Nothing half done is left; go on with: {run_line(context.request)}")
        sys.exit(EXIT_INTERRUPTED)
    except NodeError as error:
        report = reports.write_after_run(context.workplace, context.run_id, context.recipe)
        fix = "\n".join([*filter(None, [report]), _after_failure(context.request, error.kind)])
        raise NodeError(error.what, fix, error.kind) from error
    except AnomalyError as error:
        raise _with_proposals(error, context) from error
    _show_end(console, context, finished)


def _with_proposals(error: AnomalyError, context: RunContext) -> AnomalyError:
    """Adds the command that compares the data with the schema, if there is an earlier run to compare with."""
    store = context.workplace.open_store()
    # Always given, because that run's settings may have named other files.
    overrides = context.request.overrides or (f"data.path={context.recipe.settings.data.path}",)
    has_runs = store is not None and store.run_ids(context.recipe.name)
    see = [_see_changes(context.request, *set_words(overrides))] if has_runs else []
    return AnomalyError(error.what, "\n".join([error.fix or "", *see]))


def _show_end(console: Console, context: RunContext, finished: local.Run) -> None:
    """Prints the run's summary, where to read more, and the next commands."""
    report = _report_line(context, finished)
    if not finished.new:
        console.print(f"Up to date: nothing changed since run {finished.id}.", highlight=False)
    store = context.workplace.open_store()
    summary = run_summary.read_run_summary(store, finished.nodes) if store else run_summary.RunSummary(None, None)
    run_summary.show_run_summary(console, summary)
    if summary.let_pass:
        console.print(_see_changes(context.request), highlight=False, soft_wrap=True)
    if finished.new:
        logs = display_path(context.workplace.run_folder(finished.id).path)
        console.print(f"Logs       {logs}", highlight=False, soft_wrap=True)
    console.print(report, highlight=False, markup=False, soft_wrap=True)
    where = environment_words(context.workplace.name)
    if not summary.good_enough:
        node, answer = _question(summary)
        command = shell_line("why", node, "--recipe", context.recipe.name, *where)
        click.echo(f"Next       {command}: {answer}")
        sys.exit(EXIT_NOT_GOOD_ENOUGH)
    for heading, command in _next_commands(context.recipe.name, where, summary):
        console.print(f"{heading:<10} {command}", highlight=False, soft_wrap=True)


def _question(summary: run_summary.RunSummary) -> tuple[str, str]:
    """The node to ask about after a model was not pushed, and what its answer says."""
    if summary.evaluation and summary.evaluation.undecided:
        return EVALUATOR_NODE, "what these rows cannot tell, and how many would"
    return TRAINER_NODE, "what changed since the last good model"


def _report_line(context: RunContext, finished: local.Run) -> str:
    """Where the run's report is; it is written now for a new run, and for an earlier one that was killed before it."""
    folder = context.workplace.run_folder(finished.id)
    path = folder.report_path
    missing = finished.new or (folder.path.exists() and not path.exists())
    line = reports.write_after_run(context.workplace, finished.id, context.recipe) if missing else None
    if line is not None:
        return line
    make_it = shell_line("report", finished.id, *environment_words(context.workplace.name))
    return f"Report     {display_path(path) if path.exists() else make_it}"


def _next_commands(recipe_name: str, where: list[str], summary: run_summary.RunSummary) -> list[tuple[str, str]]:
    if summary.restorable:
        return [("Serve it", shell_line("rollback", recipe_name, "--to", str(summary.restorable), *where))]
    if not summary.pushed_to:
        return []
    inspect = f"{program('saved_model_cli')} show --dir {display_path(summary.pushed_to)} --all"
    return [("Inspect", inspect), ("Serve", shell_line("serve", recipe_name, *where))]


def _after_failure(request: Request, kind: str | None) -> str:
    """The next commands after a node failed; after anomalies, the data may be right and the schema out of date."""
    go_on = f"Go on:  {run_line(request)}"
    return f"{_see_changes(request)}\n{go_on}" if kind == AnomalyError.__name__ else go_on


def _see_changes(request: Request, *words: str) -> str:
    propose = shell_line("schema", "propose", request.recipe, *words, *environment_words(request.environment))
    return f"See what would have to change:  {propose}"
