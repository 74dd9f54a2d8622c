"""`millrace lineage`: what an artifact was made from, up to the raw files, code and packages."""

from __future__ import annotations

import click
from rich.markup import escape
from rich.tree import Tree

from metadata import lineage as lineages
from metadata.lineage import Lineage, Step
from metadata.records import ArtifactRecord
from metadata.values import DIGEST_DIGITS, fingerprint_of, lineage_values
from pipeline import outcome
from pipeline.commands import found
from pipeline.commands.line import ENVIRONMENT_OPTION, reports_errors


@click.command()
@click.argument("artifact", shell_complete=found.complete_artifacts)
@click.option("--down", is_flag=True, help="What was made from it, instead.")
@found.JSON_OPTION
@ENVIRONMENT_OPTION
@reports_errors
def lineage(artifact: str, down: bool, as_json: bool, environment_name: str) -> None:
    """Show what ARTIFACT (an id or a folder) was made from, up to raw files, code and packages."""
    store = found.opened(environment_name)
    start = found.artifact_of(store, artifact).artifact.id
    traced = lineages.trace(store, start, "down" if down else "up")
    if traced is None:
        return
    if as_json:
        found.print_json(lineage_values(traced))
        return
    tree = Tree(_name(traced.artifacts[start]))
    _grow(tree, traced, start, {start})
    found.show(tree)
    if not traced.whole:
        click.echo(f"The tree ends here: it has more than {lineages.MOST_ARTIFACTS} artifacts.")


def _grow(branch: Tree, traced: Lineage, artifact: int, seen: set[int]) -> None:
    for step in traced.steps_next_to(artifact):
        grown = branch.add(f"{step.place.node} of {step.place.run or 'no run'}")
        if traced.direction == "up":
            for line in _made_with(step):
                grown.add(escape(line), style="dim")
        named = step.inputs if traced.direction == "up" else step.outputs
        for name, ids in named.items():
            for number in (number for number in ids if number in traced.artifacts):
                again = number in seen
                seen.add(number)
                text = f"{name}: {_name(traced.artifacts[number])}"
                below = grown.add(f"{text} (see above)" if again else text)
                if not again:
                    _grow(below, traced, number, seen)


def _name(artifact: ArtifactRecord) -> str:
    return escape(f"{artifact.type} {artifact.id}  {outcome.shown(artifact.uri)}")


def _made_with(step: Step) -> list[str]:
    made = fingerprint_of(step.node_run)
    if made is None:
        return []
    code = [f"code {made.code_digest} ({len(made.code)} files)"] if made.code else []
    packages = [", ".join(f"{name} {version}" for name, version in made.packages.items())] if made.packages else []
    files = [f"file {path}  {digest[:DIGEST_DIGITS]}" for path, digest in made.files.items()]
    return [*code, *packages, *files]
