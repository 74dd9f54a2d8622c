"""`millrace schema`: what the data ask of the schema, and what becomes of it."""

from __future__ import annotations

import click

from pipeline.commands.schema.decide import accept, reject
from pipeline.commands.schema.propose import propose
from pipeline.commands.schema.show import show


@click.group()
def schema() -> None:
    """Bring the schema and the data together: propose, accept, reject, show."""


for command in (propose, accept, reject, show):
    schema.add_command(command)
