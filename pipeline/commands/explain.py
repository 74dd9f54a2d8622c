"""`millrace why`, `diff` and `lineage`: why a node ran, what changed, and what a result was made from."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.text import Text
from rich.tree import Tree

from contracts.errors import MillraceError
from metadata import differences
from metadata import lineage as lineages
from metadata.differences import Change
from metadata.lineage import Lineage, Step
from metadata.queries import Queries
from metadata.records import ArtifactRecord, RunRecord
from metadata.values import DIGEST_DIGITS, fingerprint_of, lineage_values
from pipeline.commands import lookup
from pipeline.commands.options import ENVIRONMENT_OPTION, reports_errors
from pipeline.plan import nodes, recipe
from pipeline.plan import why as reasons
from pipeline.run.command_lines import DEFAULT_RECIPE, display_path, environment_words, shell_line
from pipeline.run.workplace import Workplace

LONGEST = 60


@click.command()
@click.argument("node")
@click.option("--recipe", "recipe_name", default=DEFAULT_RECIPE, show_default=True)
@ENVIRONMENT_OPTION
@reports_errors
def why(node: str, recipe_name: str, environment_name: str) -> None:
    """Say in one sentence why NODE ran or was cached."""
    chosen = recipe.load(recipe_name)
    store = Workplace.load(environment_name).open_store()
    if store is None:
        run_it = shell_line("run", recipe_name, *environment_words(environment_name))
        raise MillraceError(f"{recipe_name} has not run yet.", f"Run it with: {run_it}")
    name = nodes.find(node, chosen.settings.nodes)
    if next(store.latest(chosen.name, name), None) is None:
        nodes.check_present(chosen, name)
    click.echo(reasons.explain(store, chosen.name, name))


@click.command()
@click.argument("before", shell_complete=lookup.complete_runs)
@click.argument("after", shell_complete=lookup.complete_runs)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    is_flag=False,
    flag_value="",
    help="Write a page that compares both runs and their data to FILE, by default diff-BEFORE-AFTER.html.",
    metavar="[FILE]",
)
@lookup.JSON_OPTION
@ENVIRONMENT_OPTION
@reports_errors
def diff(before: str, after: str, html: Path | None, as_json: bool, environment_name: str) -> None:
    """Show what changed from run BEFORE to run AFTER: settings, code, packages, data, schema, metrics."""
    store = lookup.open_store(Workplace.load(environment_name))
    runs = lookup.find_run(store, before), lookup.find_run(store, after)
    if html is not None:
        _write_page(store, *runs, html)
        return
    changed = differences.between(store, *runs)
    if as_json:
        lookup.print_json({"before": before, "after": after} | asdict(changed))
        return
    sections = {
        "Settings": changed.settings,
        "Code": changed.code,
        "Packages": changed.packages,
        "Data": changed.data,
        "Metrics": changed.metrics,
    }
    for title, changes in sections.items():
        if changes:
            _show_changes(title, changes)
    if changed.schema:
        click.secho("Schema", bold=True)
        click.echo("\n".join(changed.schema))
    if not changed.schema and not any(sections.values()):
        click.echo(f"Nothing differs between {before} and {after}.")


def _write_page(store: Queries, before: RunRecord, after: RunRecord, path: Path) -> None:
    # Imported here because the templates take a tenth of a second, which terminal output does not need.
    from ui.report import comparison

    target = path if path.name else Path(f"diff-{before.id}-{after.id}.html")
    try:
        comparison.write(store, before, after, target)
    except OSError as error:
        raise MillraceError(
            f"the page cannot be written to {target}: {error.strerror}.", "Name a file in a folder that is there."
        ) from error
    click.echo(f"Written    {target}")


def _show_changes(title: str, changes: list[Change]) -> None:
    table = lookup.make_table(title, ("", "Before", "After"), right=("Before", "After") if title == "Metrics" else ())
    for change in changes:
        table.add_row(Text(change.name), Text(_display_value(change.before)), Text(_display_value(change.after)))
    lookup.print_wide(table)


def _display_value(value: Any) -> str:
    if value is None:
        return "-"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


@click.command()
@click.argument("artifact", shell_complete=lookup.complete_artifacts)
@click.option("--down", is_flag=True, help="What was made from it, instead.")
@lookup.JSON_OPTION
@ENVIRONMENT_OPTION
@reports_errors
def lineage(artifact: str, down: bool, as_json: bool, environment_name: str) -> None:
    """Show what ARTIFACT (an id or a folder) was made from, up to raw files, code and packages."""
    store = lookup.open_store(Workplace.load(environment_name))
    start = lookup.find_artifact(store, artifact).artifact.id
    traced = lineages.trace(store, start, "down" if down else "up")
    if traced is None:
        return
    if as_json:
        lookup.print_json(lineage_values(traced))
        return
    tree = Tree(_name_artifact(traced.artifacts[start]))
    _grow(tree, traced, start, {start})
    lookup.print_wide(tree)
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
                text = f"{name}: {_name_artifact(traced.artifacts[number])}"
                below = grown.add(f"{text} (see above)" if again else text)
                if not again:
                    _grow(below, traced, number, seen)


def _name_artifact(artifact: ArtifactRecord) -> str:
    return escape(f"{artifact.type} {artifact.id}  {display_path(artifact.uri)}")


def _made_with(step: Step) -> list[str]:
    fingerprint = fingerprint_of(step.node_run)
    if fingerprint is None:
        return []
    code = [f"code {fingerprint.code_digest} ({len(fingerprint.code)} files)"] if fingerprint.code else []
    packages = (
        [", ".join(f"{name} {version}" for name, version in fingerprint.packages.items())]
        if fingerprint.packages
        else []
    )
    files = [f"file {path}  {digest[:DIGEST_DIGITS]}" for path, digest in fingerprint.files.items()]
    return [*code, *packages, *files]
