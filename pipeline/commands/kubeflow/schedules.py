"""`millrace kubeflow schedule`, `schedules`, `pause`, `resume` and `delete`: runs that come again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import click

from components.errors import MillraceError, SettingsError
from pipeline.commands import found
from pipeline.commands.kubeflow import shared
from pipeline.commands.kubeflow.shared import ENVIRONMENT_OPTION
from pipeline.commands.line import RECIPE_ARGUMENT, SET_OPTION, reports_errors, shell_line
from pipeline.kubeflow import cron

if TYPE_CHECKING:
    from pipeline.kubeflow.client import Client

SCHEDULE_ARGUMENT = click.argument("name", metavar="NAME")


@click.command()
@RECIPE_ARGUMENT
@SET_OPTION
@ENVIRONMENT_OPTION
@click.option("--cron", "cron_line", metavar="LINE", help='When, such as "30 3 * * *"; six fields begin with seconds.')
@click.option("--every", metavar="TIME", help="How often, such as 30m, 6h or 1d.")
@click.option("--name", help="The schedule's name; the recipe's unless given.")
@click.option("--catch-up/--no-catch-up", help="Make up for times that were missed, one run each.", show_default=True)
@click.option(
    "--max-concurrency",
    type=click.IntRange(1, 10),
    default=1,
    show_default=True,
    help="How many of its runs may go on at once; others wait.",
)
@reports_errors
def schedule(
    recipe_name: str,
    overrides: tuple[str, ...],
    environment_name: str,
    cron_line: str | None,
    every: str | None,
    name: str | None,
    catch_up: bool,
    max_concurrency: int,
) -> None:
    """Run a recipe again and again; each run takes the newest span of the data."""
    trigger = _trigger(cron_line, every)
    client = shared.client_of(environment_name)
    name = name or recipe_name
    if any(there.display_name == name for there in client.schedules()):
        remove = shell_line("kubeflow", "delete", name, *shared.where(environment_name))
        raise MillraceError(
            f"a schedule {name!r} is there already, and goes on with the version that it was made with.",
            f"Remove it first ({remove}), or choose another --name.",
        )
    _, version = shared.uploaded(recipe_name, overrides, environment_name, client)
    # No name: each run gets one of its own, by Kubeflow's id.
    given = shared.parameters("", None, overrides)
    policy = {"trigger": trigger, "max_concurrency": str(max_concurrency), "no_catchup": not catch_up}
    made = client.schedule(name, version, given, **policy)
    pages = shared.settings_of(environment_name).pages
    click.echo(f"Scheduled  {name}: {_when(made.trigger or trigger)}")
    click.echo(f"Watch      {pages}/#/recurringrun/details/{made.recurring_run_id}")


def _trigger(cron_line: str | None, every: str | None) -> Any:
    if (cron_line is None) == (every is None):
        raise SettingsError("received both --cron and --every, or neither; expected one of them.")
    import kfp_server_api as api

    if every is not None:
        return api.V2beta1Trigger(
            periodic_schedule=api.V2beta1PeriodicSchedule(interval_second=str(cron.interval(every)))
        )
    line = cron.complete(str(cron_line), datetime.now(timezone.utc).date())
    return api.V2beta1Trigger(cron_schedule=api.V2beta1CronSchedule(cron=line))


def _when(trigger: Any) -> str:
    if trigger.cron_schedule:
        return f"cron {trigger.cron_schedule.cron}, by the clock of the cluster's scheduler, UTC unless set otherwise"
    return f"every {int(trigger.periodic_schedule.interval_second):,} s"


@click.command()
@ENVIRONMENT_OPTION
@reports_errors
def schedules(environment_name: str) -> None:
    """List the schedules."""
    made = found.table("Schedules", ("Name", "State", "When", "Catches up", "At once", "Kubeflow's id"))
    for there in shared.client_of(environment_name).schedules():
        trigger = there.trigger
        when = trigger.cron_schedule.cron if trigger.cron_schedule else _when(trigger)
        state = {"ENABLED": "on", "DISABLED": "paused"}.get(there.status or "", there.status or "")
        catches = "no" if there.no_catchup else "yes"
        made.add_row(there.display_name, state, when, catches, str(there.max_concurrency), there.recurring_run_id)
    found.show(made)


def _schedule_id(client: Client, name: str) -> str:
    """The id of the schedule with that name, or that id.

    Raises:
        MillraceError: There is none, or several.
    """
    listed = client.schedules()
    matching = [there for there in listed if name in (there.display_name, there.recurring_run_id)]
    if len(matching) == 1:
        return str(matching[0].recurring_run_id)
    if matching:
        ids = ", ".join(there.recurring_run_id for there in matching)
        raise MillraceError(f"{len(matching)} schedules are named {name!r}.", f"Name one by its id: {ids}.")
    names = ", ".join(sorted(there.display_name for there in listed))
    raise MillraceError(f"no schedule {name!r}. There are: {names or 'none'}.")


def _ask(name: str, environment_name: str, ask: Callable[[Client, str], None], told: str) -> None:
    """Asks for something about a schedule, by its id, and tells that it is done."""
    client = shared.client_of(environment_name)
    ask(client, _schedule_id(client, name))
    click.echo(f"{told:<10} {name}")


@click.command()
@SCHEDULE_ARGUMENT
@ENVIRONMENT_OPTION
@reports_errors
def pause(name: str, environment_name: str) -> None:
    """Let a schedule start nothing until it is resumed."""
    _ask(name, environment_name, lambda client, number: client.pause(number), "Paused")


@click.command()
@SCHEDULE_ARGUMENT
@ENVIRONMENT_OPTION
@reports_errors
def resume(name: str, environment_name: str) -> None:
    """Let a paused schedule go on."""
    _ask(name, environment_name, lambda client, number: client.resume(number), "Resumed")


@click.command()
@SCHEDULE_ARGUMENT
@ENVIRONMENT_OPTION
@reports_errors
def delete(name: str, environment_name: str) -> None:
    """Remove a schedule; the runs that it started stay."""
    _ask(name, environment_name, lambda client, number: client.delete(number), "Deleted")
