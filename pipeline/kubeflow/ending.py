"""How a run on Kubeflow ends: what was left unfinished is closed, the report is written, the verdict is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components.errors import MillraceError
from metadata.records import NEVER_ENDED, NodeRun
from pipeline import leftovers, outcome, recipe, reports, stores
from pipeline.environment import Environment


def close(
    recipe_name: str, overrides: Sequence[str], run_id: str, environment: Environment, environment_name: str
) -> list[str]:
    """Closes a run of which no task goes on any more, and writes its report.

    Returns:
        What was done, a line each.

    Raises:
        StoreError: The metadata store stayed away.
        MillraceError: It is empty.
    """
    # Patiently, for Kubeflow does not try this task again.
    found = stores.patiently(environment, lambda: _nodes(recipe_name, run_id, environment))
    unfinished = [node.node for node in found.values() if node.state in NEVER_ENDED]
    leftovers.sweep(recipe_name, environment, run_id)
    line = reports.leave(environment, environment_name, run_id, recipe.load(recipe_name, overrides))
    told = [f"{node}: its task ended before it did; cancelled." for node in unfinished]
    return [*told, line or f"No report: run {run_id} never came as far as the metadata store."]


def result(recipe_name: str, run_id: str, environment: Environment) -> outcome.Result:
    """What came out of a run.

    Raises:
        StoreError: The metadata store is away.
        MillraceError: It is empty.
    """
    nodes = _nodes(recipe_name, run_id, environment)
    store = stores.opened(environment)
    return outcome.read(store, nodes) if store else outcome.Result(None, None)


def _nodes(recipe_name: str, run_id: str, environment: Environment) -> Mapping[str, NodeRun]:
    store = stores.opened(environment)
    if store is None:
        raise MillraceError(f"no run {run_id!r}: the metadata store is empty.")
    return store.node_runs(recipe_name, run_id)
