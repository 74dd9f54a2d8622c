"""The command line: `millrace …`. The Makefile only wraps it."""

from __future__ import annotations

import logging
from importlib import import_module

import click

from pipeline.plan import project
from pipeline.run.lean_imports import without_garbage_collection

COMMANDS = {
    "artifacts": "runs",
    "check": "settings",
    "deploy": "deploy",
    "diff": "explain",
    "inspect": "pages",
    "kubeflow": "kubeflow",
    "lineage": "explain",
    "new": "new",
    "node": "node",
    "predict": "predict",
    "recipes": "settings",
    "report": "pages",
    "rollback": "serving",
    "run": "run",
    "runs": "runs",
    "schema": "schema",
    "serve": "serving",
    "show": "settings",
    "status": "runs",
    "why": "explain",
}
"""The commands, each with its module below pipeline/commands."""


class Commands(click.Group):
    """Imports only the command that is called: importing all would take longer than a run with nothing to do."""

    def list_commands(self, _context: click.Context) -> list[str]:
        """The names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        """The command of that name, or None."""
        if name not in COMMANDS:
            return None
        with without_garbage_collection():
            command: click.Command = getattr(import_module(f"pipeline.commands.{COMMANDS[name]}"), name)
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="millrace")
def main() -> None:
    """Raw files in, a validated and served model out, every artifact recorded."""
    project.enter()
    # ML Metadata logs each error that it raises; our errors have everything that a user needs.
    logging.getLogger("absl").setLevel(logging.CRITICAL)


if __name__ == "__main__":
    main()
