"""`millrace serve` and `millrace rollback`: serve a recipe's pushed models, and go back to an older version."""

from __future__ import annotations

import click
from rich.console import Console

from components.pusher import versions
from contracts.errors import MillraceError, PushError
from pipeline.commands.options import ENVIRONMENT_OPTION, RECIPE_ARGUMENT, reports_errors
from pipeline.plan import environment as environments
from pipeline.plan import recipe
from pipeline.run import rollback as rollbacks
from pipeline.run.command_lines import DEFAULT_RECIPE, display_path, environment_words, shell_line
from pipeline.run.workplace import Workplace

REST_PORT = 8501
"""The port that TensorFlow Serving's image opens."""

WIDEST = 200


@click.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    options_metavar="[--env NAME]",
)
@ENVIRONMENT_OPTION
@click.argument("words", metavar="[RECIPE] [FLAGS]", nargs=-1, type=click.UNPROCESSED)
@reports_errors
def serve(environment_name: str, words: tuple[str, ...]) -> None:
    """Serve a recipe's pushed models over REST and gRPC; takes TensorFlow Serving's flags."""
    # Cheap to import: the server imports TensorFlow only after it has checked its flags.
    from serving import main as server

    named = bool(words) and not words[0].startswith("-")
    recipe_name, flags = (words[0], words[1:]) if named else (DEFAULT_RECIPE, words)
    base_path = environments.load(environment_name).serving_root / recipe_name
    if not set(flags) & {"-h", "--help"} and not base_path.exists():
        run_it = shell_line("run", recipe_name, *environment_words(environment_name))
        raise MillraceError(f"{recipe_name} has no pushed model: {base_path} does not exist.", f"Make one:  {run_it}")
    ours = [f"--model_name={recipe_name}", f"--model_base_path={base_path}", f"--rest_api_port={REST_PORT}"]
    server.main.main([*ours, *flags], prog_name=f"millrace serve {recipe_name}")


@click.command()
@RECIPE_ARGUMENT
@click.option(
    "--to", "version", type=int, metavar="VERSION", help="Which version; default: the one before the served one."
)
@click.option("--list", "listed", is_flag=True, help="Show the versions and change nothing.")
@ENVIRONMENT_OPTION
@reports_errors
def rollback(recipe_name: str, version: int | None, listed: bool, environment_name: str) -> None:
    """Serve an older version again, as a new one: running servers swap to it without a failed request."""
    recipe.check_name(recipe_name)
    workplace = Workplace.load(environment_name)
    console = Console()
    if listed:
        folder = workplace.environment.serving_root / recipe_name
        existing = versions.find_versions(folder)
        if not existing:
            raise PushError(f"{folder} holds no version.")
        shown = rollbacks.version_entries(recipe_name, existing, workplace.open_store())
        # A terminal that is too narrow wraps the lines; no number is cut off.
        console.width = max(console.width, WIDEST)
        console.print(rollbacks.versions_table(recipe_name, shown))
        return
    done = rollbacks.roll_back(recipe_name, workplace, version)
    lines = {
        "Restored": f"version {done.restored}, instead of version {done.served_before}",
        "Pushed to": display_path(done.path),
        "Undo": shell_line(
            "rollback", recipe_name, "--to", str(done.served_before), *environment_words(environment_name)
        ),
    }
    for heading, text in lines.items():
        console.print(f"{heading:<10} {text}", highlight=False, soft_wrap=True)
    if not done.recorded:
        console.print("Not recorded: there is no metadata store.", style="yellow")
