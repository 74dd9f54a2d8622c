"""The report that every run leaves: where it lies, when it is written, and what it shows beside the metadata store."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from components.errors import MillraceError, SettingsError
from metadata.contents import places
from metadata.queries import Queries
from metadata.records import KILLED, ArtifactRecord, RunRecord
from pipeline import nodes, outcome, recipe, serving_state, stores, worker
from pipeline.commands.line import environment_words, program, run_line, shell_line
from pipeline.environment import Environment
from pipeline.recipe import Recipe

if TYPE_CHECKING:
    from metadata.report.source import Surroundings

ERROR_LOG = "report.log"
README = "README.md"

Commands = tuple[tuple[str, str], ...]


def path_of(environment: Environment, run_id: str) -> Path:
    """Where the report of a run lies."""
    return environment.log_root / run_id / places.REPORT_FILE


def prepare() -> None:
    """Loads what writing a report needs; a run does it while it waits for its worker."""
    from metadata.report import page

    page.prepare()


def leave(environment: Environment, environment_name: str, run_id: str, chosen: Recipe) -> str | None:
    """Writes the report of a run that just ended and says where it is.

    Whatever goes wrong with it is told and logged, and changes nothing about the run.

    Returns:
        A line for the user; None where the run never came as far as the metadata store.
    """
    path = path_of(environment, run_id)
    try:
        store = stores.opened(environment)
        run = store.run(run_id) if store else None
        if store is None or run is None:
            return None
        write(store, run, surroundings(store, run, environment, environment_name, chosen), path)
    except Exception as error:
        return f"Report     not written: {type(error).__name__}: {error}; see {_logged(path.with_name(ERROR_LOG))}"
    return f"Report     {outcome.shown(path)}"


def _logged(log: Path) -> str:
    """Where the traceback of the error that is being handled can be read."""
    try:
        log.write_text(traceback.format_exc(), encoding="utf-8")
    except OSError as error:
        return f"the log, which cannot be written either: {error}"
    return outcome.shown(log)


def write(store: Queries, run: RunRecord, around: Surroundings, path: Path) -> None:
    """Writes the report of a run.

    Raises:
        OSError: It cannot be written there.
    """
    from metadata.report import page

    page.write(store, run, around, path)


def surroundings(
    store: Queries, run: RunRecord, environment: Environment, environment_name: str, chosen: Recipe | None = None
) -> Surroundings:
    """What the page of a run shows that the metadata store does not know.

    Args:
        store: The store.
        run: The run.
        environment: Where it ran.
        environment_name: What the user calls that.
        chosen: The run's recipe; found by its name where it is not given.
    """
    from metadata.report.source import Surroundings

    folder = environment.log_root / run.id
    request = _request(folder)
    chosen = chosen or _recipe(run, request)
    readme = recipe.recipes_folder() / run.pipeline / README
    pushed = _pushed(store, run)
    where = environment_words(environment_name)
    served, commands = _serving(run, pushed, where)
    return Surroundings(
        graph=nodes.graph(chosen) if chosen else {},
        log_folder=folder if folder.exists() else None,
        commands=(
            *_going_on(run, request),
            *commands,
            *_looking_closer(store, run, where),
        ),
        recipe_text=readme.read_text(encoding="utf-8", errors="replace") if readme.exists() else "",
        served=served,
    )


def _request(folder: Path) -> worker.Request | None:
    """What the worker was asked; None where that is not known, or was asked by another version in another form."""
    path = folder / worker.REQUEST_FILE
    try:
        return worker.Request.model_validate_json(path.read_bytes()) if path.exists() else None
    except ValidationError:
        return None


def _recipe(run: RunRecord, request: worker.Request | None) -> Recipe | None:
    """The recipe as the run had it; None where today's does not go with what was asked for then."""
    try:
        return recipe.load(run.pipeline, request.overrides if request else ())
    except SettingsError:
        return None


def _pushed(store: Queries, run: RunRecord) -> ArtifactRecord | None:
    pushers = [node.id for node in run.nodes if node.node == nodes.PUSHER_NODE and node.succeeded]
    found = store.outputs_of(pushers)
    return next((a for outputs in found.values() for a in outputs.get("pushed_model", [])), None)


def _serving(run: RunRecord, pushed: ArtifactRecord | None, where: list[str]) -> tuple[str, Commands]:
    """What became of the pushed model since, and how to serve it or another."""
    if pushed is None:
        return "", ()
    try:
        state = serving_state.of(pushed.properties)
    except MillraceError as error:
        return f"What is served cannot be told: {error}", ()
    if state.restorable is not None:
        back = shell_line("rollback", run.pipeline, "--to", str(state.restorable), *where)
        return state.why_not or "", (("Serve this model again", back),)
    if state.served is None:
        return state.why_not or "", ()
    commands = (
        ("Serve it", shell_line("serve", run.pipeline, *where)),
        ("Inspect it", f"{program('saved_model_cli')} show --dir {outcome.shown(state.served)} --all"),
        ("Versions to roll back to", shell_line("rollback", run.pipeline, "--list", *where)),
        ("Roll back to the version before", shell_line("rollback", run.pipeline, *where)),
    )
    return f"It is served from {outcome.shown(state.served)}.", commands


def _going_on(run: RunRecord, request: worker.Request | None) -> Commands:
    unfinished = run.state in {"FAILED", "CANCELED", KILLED}
    return (("Go on", run_line(request)),) if unfinished and request else ()


def _looking_closer(store: Queries, run: RunRecord, where: list[str]) -> Commands:
    """What was the matter, and what changed."""
    before = store.runs(run.pipeline, limit=1, before=run.number)
    why = shell_line("why", "Trainer", "--recipe", run.pipeline, *where)
    trained = any(node.node == "Trainer" for node in run.nodes)
    return (
        *((("Why the Trainer ran", why),) if trained else ()),
        *((("What changed since the run before", shell_line("diff", before[0].id, run.id, *where)),) if before else ()),
    )
