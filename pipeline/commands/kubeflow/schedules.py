"""`millrace kubeflow schedule`, `schedules`, `pause`, `resume` and `delete`: recurring runs."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import click

from contracts.errors import MillraceError, SettingsError
from pipeline.commands import lookup
from pipeline.commands.kubeflow import shared
from pipeline.commands.kubeflow.shared import ENVIRONMENT_OPTION, Target
from pipeline.commands.options import RECIPE_ARGUMENT, SET_OPTION, reports_errors
from pipeline.schedule.kubeflow import cron

if TYPE_CHECKING:
    from pipeline.schedule.kubeflow.client import Client

SCHEDULE_ARGUMENT = click.argument("name", metavar="NAME")


@click.command()
@RECIPE_ARGUMENT
@SET_OPTION
@ENVIRONMENT_OPTION
@click.option("--cron", "cron_line", metavar="LINE", help='When, such as "30 3 * * *"; six fields begin with seconds.')
@click.option("--every", metavar="TIME", help="How often, such as 30m, 6h or 1d.")
@click.option("--name", help="The schedule's name; the recipe's unless given.")
@click.option("--catch-up/--no-catch-up", help="Start a run for each time that was missed.", show_default=True)
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
    target = Target.load(environment_name)
    client = target.client
    name = name or recipe_name
    if any(existing.display_name == name for existing in client.schedules()):
        remove = target.command("delete", name)
        raise MillraceError(
            f"a schedule {name!r} exists already, and goes on with the version that it was made with.",
            f"Remove it first ({remove}), or choose another --name.",
        )
    _, version = target.upload(recipe_name, overrides)
    # No name: each run gets its own, from Kubeflow's id.
    parameters = shared.parameters("", None, overrides)
    policy = {"trigger": trigger, "max_concurrency": str(max_concurrency), "no_catchup": not catch_up}
    created = client.schedule(name, version, parameters, **policy)
    click.echo(f"Scheduled  {name}: {_when(created.trigger or trigger)}")
    click.echo(f"Watch      {target.page(f'recurringrun/details/{created.recurring_run_id}')}")


def _trigger(cron_line: str | None, every: str | None) -> Any:
    if (cron_line is None) == (every is None):
        raise SettingsError("received both --cron and --every, or neither; expected one of them.")
    import kfp_server_api as api

    if every is not None:
        return api.V2beta1Trigger(
            periodic_schedule=api.V2beta1PeriodicSchedule(interval_second=str(cron.interval_seconds(every)))
        )
    line = cron.complete_line(str(cron_line), datetime.now(timezone.utc).date())
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
    table = lookup.make_table("Schedules", ("Name", "State", "When", "Catches up", "At once", "Kubeflow's id"))
    for listed in Target.load(environment_name).client.schedules():
        trigger = listed.trigger
        when = trigger.cron_schedule.cron if trigger.cron_schedule else _when(trigger)
        state = {"ENABLED": "on", "DISABLED": "paused"}.get(listed.status or "", listed.status or "")
        catches = "no" if listed.no_catchup else "yes"
        table.add_row(listed.display_name, state, when, catches, str(listed.max_concurrency), listed.recurring_run_id)
    lookup.print_wide(table)


def _schedule_id(client: Client, name: str) -> str:
    """The id of the schedule with that name or id.

    Raises:
        MillraceError: There is none, or several.
    """
    listed = client.schedules()
    matching = [schedule for schedule in listed if name in (schedule.display_name, schedule.recurring_run_id)]
    if len(matching) == 1:
        return str(matching[0].recurring_run_id)
    if matching:
        ids = ", ".join(schedule.recurring_run_id for schedule in matching)
        raise MillraceError(f"{len(matching)} schedules are named {name!r}.", f"Name one by its id: {ids}.")
    names = ", ".join(sorted(schedule.display_name for schedule in listed))
    raise MillraceError(f"no schedule {name!r}. There are: {names or 'none'}.")


def _command(verb: str, done: str, description: str) -> click.Command:
    """A command that changes a schedule; `verb` is the name of both the command and the client's method."""

    @click.command(verb, help=description)
    @SCHEDULE_ARGUMENT
    @ENVIRONMENT_OPTION
    @reports_errors
    def change(name: str, environment_name: str) -> None:
        client = Target.load(environment_name).client
        getattr(client, verb)(_schedule_id(client, name))
        click.echo(f"{done:<10} {name}")

    return change


pause = _command("pause", "Paused", "Pause a schedule: it starts nothing until it is resumed.")
resume = _command("resume", "Resumed", "Resume a paused schedule.")
delete = _command("delete", "Deleted", "Delete a schedule; the runs that it started stay.")
