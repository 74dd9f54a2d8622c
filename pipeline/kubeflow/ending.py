"""How a run on Kubeflow ends: what was left unfinished is closed, the report is written, the verdict is said."""

from __future__ import annotations

import shutil

from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2

from components.errors import MillraceError
from metadata.records import NodeRun
from pipeline import outcome, recipe, reports, stores
from pipeline.environment import Environment


def close(recipe_name: str, run_id: str, environment: Environment, environment_name: str) -> list[str]:
    """Closes a run of which no task goes on any more, and writes its report.

    Returns:
        What was done, a line each.
    """
    unfinished = [
        node for node in _nodes(recipe_name, run_id, environment).values() if node.state in {"NEW", "RUNNING"}
    ]
    if unfinished:
        _cancel(unfinished, environment)
        for node in unfinished:
            for folder in (environment.pipeline_root / recipe_name / node.node).glob(f"*/{node.id}"):
                shutil.rmtree(folder)
    told = [f"{node.node}: its task ended before it did; cancelled." for node in unfinished]
    line = reports.leave(environment, environment_name, run_id, recipe.load(recipe_name))
    return [*told, line or f"No report: run {run_id} never came as far as the metadata store."]


def _cancel(unfinished: list[NodeRun], environment: Environment) -> None:
    store = stores.writable(environment)
    executions = store.get_executions_by_id([node.id for node in unfinished])
    for execution in executions:
        execution.last_known_state = mlmd_pb2.Execution.CANCELED
    store.put_executions(executions)


def result(recipe_name: str, run_id: str, environment: Environment) -> outcome.Result:
    """What came out of a run."""
    store = stores.opened(environment)
    return outcome.read(store, store.node_runs(recipe_name, run_id)) if store else outcome.Result(None, None)


def _nodes(recipe_name: str, run_id: str, environment: Environment) -> dict[str, NodeRun]:
    store = stores.opened(environment)
    if store is None:
        raise MillraceError(f"no run {run_id!r}: the metadata store is empty.")
    return store.node_runs(recipe_name, run_id)
