"""`millrace serve`: the model server over what a recipe pushed."""

from __future__ import annotations

import click

from components.errors import MillraceError
from pipeline import environment as environments
from pipeline.commands.line import DEFAULT_RECIPE, ENVIRONMENT_OPTION, environment_words, reports_errors, shell_line

# TensorFlow Serving's image opens it there.
REST_PORT = 8501


@click.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    options_metavar="[--env NAME]",
)
@ENVIRONMENT_OPTION
@click.argument("words", metavar="[RECIPE] [FLAGS]", nargs=-1, type=click.UNPROCESSED)
@reports_errors
def serve(environment_name: str, words: tuple[str, ...]) -> None:
    """Serve a recipe's pushed models over REST and gRPC; takes TensorFlow Serving's flags."""
    # The server's settings are light; it imports TensorFlow once its flags are right.
    from serving import main as server

    named = bool(words) and not words[0].startswith("-")
    recipe_name, flags = (words[0], words[1:]) if named else (DEFAULT_RECIPE, words)
    base_path = environments.load(environment_name).serving_root / recipe_name
    if not set(flags) & {"-h", "--help"} and not base_path.exists():
        run_it = shell_line("run", recipe_name, *environment_words(environment_name))
        raise MillraceError(f"{recipe_name} has no pushed model: {base_path} does not exist.", f"Make one:  {run_it}")
    ours = [f"--model_name={recipe_name}", f"--model_base_path={base_path}", f"--rest_api_port={REST_PORT}"]
    server.main.main([*ours, *flags], prog_name=f"millrace serve {recipe_name}")
