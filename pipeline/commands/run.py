"""`millrace run`: runs a recipe's pipeline and tells how it ended."""

from __future__ import annotations

import sys

import click
from rich.console import Console

from components.errors import AnomalyError, NodeError
from pipeline import environment as environments
from pipeline import local, nodes, outcome, progress, recipe, reports, stores, worker
from pipeline.commands.line import (
    ENVIRONMENT_OPTION,
    EXIT_INTERRUPTED,
    EXIT_NOT_GOOD_ENOUGH,
    RECIPE_ARGUMENT,
    SET_OPTION,
    environment_words,
    program,
    reports_errors,
    run_line,
    set_words,
    shell_line,
)


@click.command()
@RECIPE_ARGUMENT
@SET_OPTION
@click.option("--from", "from_node", metavar="NODE", help="Begin here; take what comes before from the last run.")
@click.option("--to", "to_node", metavar="NODE", help="End here.")
@click.option("--force", is_flag=True, help="Run nodes although nothing that they depend on changed.")
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
    3 the model was not good enough, 130 interrupted.
    """
    chosen = recipe.load(recipe_name, overrides)
    environment = environments.load(environment_name)
    inputs = chosen.find_inputs()
    request = worker.Request(
        recipe=recipe_name,
        overrides=overrides,
        environment=environment_name,
        run_id=local.new_run_id(chosen),
        span=inputs.span,
        from_node=nodes.find(from_node) if from_node else None,
        to_node=nodes.find(to_node) if to_node else None,
        force=force,
    )
    nodes.check_order(request.from_node, request.to_node)
    nodes.check_present(chosen, request.from_node, request.to_node)
    console = Console()
    view = progress.View(console, f"{recipe_name}: {chosen.settings.description}", nodes.of(chosen))
    try:
        finished = local.run(chosen, environment, request, inputs, view)
    except KeyboardInterrupt:
        if line := reports.leave(environment, environment_name, request.run_id, chosen):
            click.echo(line)
        click.echo(f"Stopped. Nothing half done is left; go on with: {run_line(request)}")
        sys.exit(EXIT_INTERRUPTED)
    except NodeError as error:
        line = reports.leave(environment, environment_name, request.run_id, chosen)
        fix = "\n".join([*filter(None, [line]), _after_failure(request, error.kind)])
        raise NodeError(error.what, fix, error.kind) from error
    except AnomalyError as error:
        raise _with_proposals(error, request, environment, chosen) from error
    line = reports.leave(environment, environment_name, finished.id, chosen) if finished.new else None
    _show_end(console, request, environment, finished, line or _earlier_report(environment, request, finished))


def _with_proposals(
    error: AnomalyError, request: worker.Request, environment: environments.Environment, chosen: recipe.Recipe
) -> AnomalyError:
    """What was known before anything ran; what to compare with is an earlier run, where there is one."""
    store = stores.opened(environment)
    # Told in full, for the settings of that run may have named other files.
    sets = set_words(request.overrides or (f"data.path={chosen.settings.data.path}",))
    see = [_see_changes(request, *sets)] if store and store.run_ids(request.recipe) else []
    return AnomalyError(error.what, "\n".join([error.fix or "", *see]))


def _earlier_report(environment: environments.Environment, request: worker.Request, finished: local.Run) -> str:
    """Where the report of an earlier run is; how to make it, where that run left none."""
    path = reports.path_of(environment, finished.id)
    make_it = shell_line("report", finished.id, *environment_words(request.environment))
    return f"Report     {outcome.shown(path) if path.exists() else make_it}"


def _show_end(
    console: Console,
    request: worker.Request,
    environment: environments.Environment,
    finished: local.Run,
    report: str,
) -> None:
    if not finished.new:
        console.print(f"Up to date: nothing changed since run {finished.id}.", highlight=False)
    store = stores.opened(environment)
    result = outcome.read(store, finished.nodes) if store else outcome.Result(None, None)
    outcome.show(console, result)
    if result.let_pass:
        console.print(_see_changes(request), highlight=False, soft_wrap=True)
    if finished.new:
        console.print(
            f"Logs       {outcome.shown(environment.log_root / finished.id)}", highlight=False, soft_wrap=True
        )
    console.print(report, highlight=False, markup=False, soft_wrap=True)
    if not result.good_enough:
        command = shell_line("why", "Trainer", "--recipe", request.recipe, *environment_words(request.environment))
        click.echo(f"Next       {command}: what changed since the last good model")
        sys.exit(EXIT_NOT_GOOD_ENOUGH)
    for heading, command in _next_commands(request.recipe, request.environment, result):
        console.print(f"{heading:<10} {command}", highlight=False, soft_wrap=True)


def _next_commands(recipe_name: str, environment_name: str, result: outcome.Result) -> list[tuple[str, str]]:
    where = environment_words(environment_name)
    if result.restorable:
        return [("Serve it", shell_line("rollback", recipe_name, "--to", str(result.restorable), *where))]
    if not result.pushed_to:
        return []
    inspect = f"{program('saved_model_cli')} show --dir {outcome.shown(result.pushed_to)} --all"
    return [("Inspect", inspect), ("Serve", shell_line("serve", recipe_name, *where))]


def _after_failure(request: worker.Request, kind: str | None) -> str:
    """The commands that go on after a node failed; what stopped on anomalies may be right, and the schema behind."""
    go_on = f"Go on:  {run_line(request)}"
    return f"{_see_changes(request)}\n{go_on}" if kind == AnomalyError.__name__ else go_on


def _see_changes(request: worker.Request, *words: str) -> str:
    propose = shell_line("schema", "propose", request.recipe, *words, *environment_words(request.environment))
    return f"See what would have to change:  {propose}"
