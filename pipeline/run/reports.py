"""The report of a run: where and when it is written, and what it shows besides the contents of the metadata store."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from contracts.errors import MillraceError, SettingsError
from metadata.queries import Queries
from metadata.records import KILLED, ArtifactRecord, RunRecord
from pipeline.plan import nodes, project, recipe
from pipeline.plan.recipe import Recipe
from pipeline.run import run_summary
from pipeline.run.command_lines import display_path, environment_words, program, run_line, shell_line
from pipeline.run.folder import Request
from pipeline.run.workplace import Workplace

if TYPE_CHECKING:
    from ui.report.source import Surroundings

ERROR_LOG = "report.log"
README = "README.md"

Commands = tuple[tuple[str, str], ...]


def prepare() -> None:
    """Imports what writing a report needs; a run does this while it waits for its worker."""
    # Imports the report's sections too, so that writing imports nothing more.
    from ui import rendering
    from ui.report import page  # noqa: F401

    rendering.prepare()


def write_after_run(workplace: Workplace, run_id: str, chosen: Recipe) -> str | None:
    """Writes the report of a run that has just ended and says where it is.

    An error in it is shown and logged, and does not affect the run.

    Returns:
        A line for the user; None if the run never reached the metadata store.
    """
    path = workplace.run_folder(run_id).report_path
    try:
        store = workplace.open_store()
        run = store.run(run_id) if store else None
        if store is None or run is None:
            return None
        write(store, run, surroundings(store, run, workplace, chosen), path)
    except Exception as error:
        return f"Report     not written: {type(error).__name__}: {error}; see {_logged(path.with_name(ERROR_LOG))}"
    return f"Report     {display_path(path)}"


def _logged(log: Path) -> str:
    """Logs the traceback of the error being handled, and says where."""
    try:
        log.write_text(traceback.format_exc(), encoding="utf-8")
    except OSError as error:
        return f"the log, which cannot be written either: {error}"
    return display_path(log)


def write(store: Queries, run: RunRecord, around: Surroundings, path: Path) -> None:
    """Writes the report of a run.

    Raises:
        OSError: It cannot be written there.
    """
    from ui.report import page

    page.write(store, run, around, path)


def surroundings(store: Queries, run: RunRecord, workplace: Workplace, chosen: Recipe | None = None) -> Surroundings:
    """What a run's page shows that is not in the metadata store.

    Args:
        store: The store.
        run: The run.
        workplace: Where it ran.
        chosen: The run's recipe; None: found by its name.
    """
    from ui.report.source import Surroundings

    folder = workplace.run_folder(run.id)
    request = folder.read_request()
    chosen = chosen or _recipe(run, request)
    readme = project.recipes_folder() / run.pipeline / README
    environment = environment_words(workplace.name)
    served, commands = _serving(run, _pushed(store, run), environment)
    return Surroundings(
        graph=_graph(chosen),
        log_folder=folder.path if folder.path.exists() else None,
        commands=(*_resume_commands(run, request), *commands, *_explaining_commands(store, run, environment)),
        recipe_text=readme.read_text(encoding="utf-8", errors="replace") if readme.exists() else "",
        served=served,
    )


def _graph(chosen: Recipe | None) -> dict[str, tuple[str, ...]]:
    try:
        return nodes.graph(chosen) if chosen else {}
    except SettingsError:
        # The recipe's own nodes have changed since, and now have mistakes.
        return {}


def _recipe(run: RunRecord, request: Request | None) -> Recipe | None:
    """The recipe as the run had it; None if the current one does not fit what was requested then."""
    try:
        return recipe.load(run.pipeline, request.overrides if request else ())
    except SettingsError:
        return None


def _pushed(store: Queries, run: RunRecord) -> ArtifactRecord | None:
    pushers = [node.id for node in run.nodes if node.node == nodes.PUSHER_NODE and node.succeeded]
    outputs_of_runs = store.outputs_of(pushers).values()
    return next((a for outputs in outputs_of_runs for a in outputs.get("pushed_model", [])), None)


def _serving(run: RunRecord, pushed: ArtifactRecord | None, environment: list[str]) -> tuple[str, Commands]:
    """What has become of the pushed model since, and how to serve it or another."""
    if pushed is None:
        return "", ()
    try:
        state = run_summary.push_state(pushed.properties)
    except MillraceError as error:
        return f"It is not known what is served: {error}", ()
    if state.restorable is not None:
        back = shell_line("rollback", run.pipeline, "--to", str(state.restorable), *environment)
        return state.why_not or "", (("Serve this model again", back),)
    if state.served is None:
        return state.why_not or "", ()
    commands = (
        ("Serve it", shell_line("serve", run.pipeline, *environment)),
        ("Inspect it", f"{program('saved_model_cli')} show --dir {display_path(state.served)} --all"),
        ("Versions to roll back to", shell_line("rollback", run.pipeline, "--list", *environment)),
        ("Roll back to the version before", shell_line("rollback", run.pipeline, *environment)),
    )
    return f"It is served from {display_path(state.served)}.", commands


def _resume_commands(run: RunRecord, request: Request | None) -> Commands:
    unfinished = run.state in {"FAILED", "CANCELED", KILLED}
    return (("Go on", run_line(request)),) if unfinished and request else ()


def _explaining_commands(store: Queries, run: RunRecord, environment: list[str]) -> Commands:
    """The commands that explain the run: why the Trainer ran, and what changed."""
    before = store.runs(run.pipeline, limit=1, before=run.number)
    why = shell_line("why", "Trainer", "--recipe", run.pipeline, *environment)
    trained = any(node.node == "Trainer" for node in run.nodes)
    return (
        *((("Why the Trainer ran", why),) if trained else ()),
        *(
            (("What changed since the run before", shell_line("diff", before[0].id, run.id, *environment)),)
            if before
            else ()
        ),
    )
