"""What a killed run leaves behind: executions that never ended, and what they had begun to write."""

from __future__ import annotations

import shutil

from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2

from metadata.records import NEVER_ENDED
from pipeline import stores
from pipeline.environment import Environment
from pipeline.objects import mirror


def sweep(
    name: str,
    environment: Environment,
    run_id: str | None = None,
    node: str | None = None,
    still_writing: bool = False,
) -> None:
    """Cancels unfinished executions and removes their folders; whoever calls holds the lock of what it sweeps.

    Args:
        name: The recipe's name.
        environment: Where it runs.
        run_id: The run; None for the latest one.
        node: One node of it; None for all.
        still_writing: Whether threads of this process may go on writing for the moment that it has left: what they
            write while it is being removed stays.
    """
    store = stores.opened(environment)
    if store is None:
        return
    unfinished = [
        record
        for chosen in ([run_id] if run_id else store.run_ids(name)[:1])
        for record in store.node_runs(name, chosen).values()
        if record.state in NEVER_ENDED and node in {None, record.node}
    ]
    if not unfinished:
        return
    folders = {record.id: environment.pipeline_root / name / record.node for record in unfinished}
    if (objects := mirror.use(environment)) is not None:
        # First, for nothing looks again for what a cancelled execution had sent.
        for number, folder in folders.items():
            objects.remove_made(str(folder), number)
    writable = stores.writable(environment)
    executions = writable.get_executions_by_id([record.id for record in unfinished])
    for execution in executions:
        execution.last_known_state = mlmd_pb2.Execution.CANCELED
    writable.put_executions(executions)
    for number, folder in folders.items():
        for left in [*folder.glob(f"*/{number}"), *folder.glob(f".system/executor_execution/{number}")]:
            shutil.rmtree(left, ignore_errors=still_writing)
