"""Times each node as a process of its own against the same node in the local run: `python -m benchmarks.nodes`.

Both run the same recipe in fresh folders. The extra cost of a node is its process: TFX's imports, and what the local
run has already loaded when it reaches that node.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console

from benchmarks import children, command, millrace
from pipeline.plan import nodes, recipe

RUN = "by-node"
BAR_SECONDS = 6.0


@click.command(context_settings=command.HELP)
@click.option("--to", "last_node", default=nodes.PUSHER_NODE, show_default=True, help="End here.")
def main(last_node: str) -> None:
    """Time each node of the taxi recipe as a process of its own against the same node in the local run.

    Exit codes: 0 the bar is met, 1 it is missed or a run failed.
    """
    console = Console()
    with command.temporary_folder(console) as folder:
        missed = _measure(folder, nodes.find(last_node), console)
    sys.exit(1 if missed else 0)


def _measure(folder: Path, last_node: str, console: Console) -> bool:
    """Prints the table; returns whether a node is over the bar."""
    environments = {kind: millrace.write_environment(folder / kind) for kind in ("local", RUN)}
    console.print("The local run", style="dim")
    local_run = millrace.run("local", environments["local"], folder, last_node=last_node)
    local = millrace.latest_nodes(folder / "local")
    table = command.new_table("Node", "Local run", "Own process", "More")
    total, most = 0.0, 0.0
    order = nodes.names(recipe.load(millrace.RECIPE))
    for node in order[: order.index(last_node) + 1]:
        console.print(node, style="dim")
        alone = _run_node(node, environments[RUN], folder)
        more = alone - local[node].seconds
        total, most = total + alone, max(most, more)
        table.add_row(node, f"{local[node].seconds:.1f} s", f"{alone:.1f} s", f"{more:.1f} s")
    console.print(table)
    console.print(f"All, one after the other: {total:.1f} s; the local run {local_run.seconds:.1f} s", highlight=False)
    console.print(f"At most {most:.1f} s more; bar {BAR_SECONDS:.0f} s", highlight=False)
    return most > BAR_SECONDS


def _run_node(node: str, environment: Path, folder: Path) -> float:
    arguments = [*millrace.CLI, "node", "run", millrace.RECIPE, node, "--run", RUN, "--env", str(environment)]
    return children.run_child(node, arguments, folder).seconds


if __name__ == "__main__":
    main()
