"""What TFX forces on us, in one place: the pipeline as it compiles it, its nodes, and how these get the run's context.

- TFX creates executors and file systems itself, and Beam pickles a node before it runs it: neither can be given an
  object of ours. So the process that runs a node can look its run up by its id while it is going on (`_runs`).
- An executor gets only execution properties. What is not part of its cache key is added to them in memory, after the
  key has been computed, and TFX drops it when it publishes them (launching.py).
- TFX creates its own clients of the metadata store: `be_patient` makes them wait for a server that is down.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from absl import logging
from tfx.dsl.compiler import constants
from tfx.dsl.compiler.compiler import Compiler
from tfx.dsl.io import filesystem, filesystem_registry
from tfx.orchestration import metadata
from tfx.orchestration.local import runner_utils
from tfx.orchestration.portable import partial_run_utils, runtime_parameter_utils

from components.beam_overhead import reduce_overhead
from components.trainer.processes import Launcher
from metadata.connection import be_patient
from pipeline.plan import dag
from pipeline.run.context import RunContext
from pipeline.run.folder import Request
from pipeline.run.launching import NodeLauncher

FIRST_PRIORITY = 0
"""Before TFX's own file systems for these schemes, which need a TensorFlow that supports them."""

_runs: dict[str, RunContext] = {}
"""The runs that this process is running, by run id."""


def compile_pipeline(context: RunContext) -> Any:
    """Compiles the pipeline of a run to TFX's `pipeline_pb2.Pipeline`, without opening the metadata store."""
    reduce_overhead()
    # TFX logs whole protos at INFO; what a user needs to read starts at WARNING.
    logging.set_verbosity(logging.WARNING)
    connection = context.workplace.connection
    be_patient(connection)
    request, (engine, _) = context.request, context.engine
    environment = context.environment.model_copy(update={"beam": engine})
    pipeline = dag.build(context.recipe, environment, context.fingerprints, request.span, connection, not request.force)
    compiled = Compiler().compile(pipeline)
    # Set here, because a runner of TFX would name the run by the time alone.
    runtime_parameter_utils.substitute_runtime_parameter(
        compiled, {constants.PIPELINE_RUN_ID_PARAMETER_NAME: request.run_id}
    )
    return compiled


def mark_requested(compiled: Any, request: Request) -> None:
    """Marks in a compiled pipeline which nodes a partial run skips, as TFX does; a whole run skips none."""
    if request.from_node or request.to_node:
        partial_run_utils.mark_pipeline(
            compiled,
            from_nodes=[request.from_node] if request.from_node else None,
            to_nodes=[request.to_node] if request.to_node else None,
        )


def waits(compiled: Any) -> dict[str, list[str]]:
    """The nodes that a run runs, in the order of the data flow, and which of them each waits for."""
    running = {
        entry.pipeline_node.node_info.id: entry.pipeline_node
        for entry in compiled.nodes
        if not entry.pipeline_node.execution_options.HasField("skip")
    }
    snapshot = [name for name, node in running.items() if node.execution_options.run.perform_snapshot]
    return {
        name: [
            *(other for other in node.upstream_nodes if other in running),
            # It uses results of an earlier run, which the first node of a partial run takes over.
            *(other for other in snapshot if node.execution_options.run.depends_on_snapshot and other != name),
        ]
        for name, node in running.items()
    }


def run_node(
    compiled: Any,
    node: str,
    context: RunContext,
    training_launcher: Launcher | None = None,
    turns: Path | None = None,
) -> None:
    """Runs one node of a compiled pipeline in this process; the nodes before it must have run.

    Args:
        compiled: TFX's `pipeline_pb2.Pipeline`.
        node: The node's id.
        context: The run.
        training_launcher: Starts the processes of distributed training; None: on this machine.
        turns: The file by whose lock the run's processes take turns at the metadata store; None if there is only one.
    """
    deployment = runner_utils.extract_local_deployment_config(compiled)
    connection = deployment.metadata_connection_config
    store = metadata.Metadata(getattr(connection, connection.WhichOneof("connection_config")))
    pipeline_node = _node_of(compiled, node)
    if pipeline_node.execution_options.run.perform_snapshot:
        with store as handle:
            partial_run_utils.snapshot(handle, compiled)
    with _registered(context):
        NodeLauncher(
            context=context,
            training_launcher=training_launcher,
            turns=turns,
            pipeline_node=pipeline_node,
            mlmd_connection=store,
            pipeline_info=compiled.pipeline_info,
            pipeline_runtime_spec=compiled.runtime_spec,
            executor_spec=runner_utils.extract_executor_spec(deployment, node),
            custom_driver_spec=runner_utils.extract_custom_driver_spec(deployment, node),
        ).launch()


def upstream_nodes(compiled: Any, node: str) -> list[str]:
    """The upstream nodes of a node in a compiled pipeline."""
    return list(_node_of(compiled, node).upstream_nodes)


def _node_of(compiled: Any, node: str) -> Any:
    return next(entry.pipeline_node for entry in compiled.nodes if entry.pipeline_node.node_info.id == node)


@contextmanager
def _registered(context: RunContext) -> Iterator[None]:
    """Lets the file system that TFX creates look the run up by its id."""
    _runs[context.run_id] = context
    try:
        yield
    finally:
        del _runs[context.run_id]


class ObjectFilesystem(filesystem.Filesystem):
    """All that TFX asks a file system by an artifact's URI: whether a cached artifact still exists."""

    SUPPORTED_SCHEMES = ["s3://", "gs://"]  # noqa: RUF012 (as TFX declares it)

    @staticmethod
    def exists(path: filesystem.PathType) -> bool:
        """Whether an artifact of the current run exists.

        Raises:
            UnavailableError: The store is down, or refuses us.
        """
        uri = path.decode() if isinstance(path, bytes) else path
        return not any(context.workplace.files.gone([uri]) for context in _runs.values())


filesystem_registry.DEFAULT_FILESYSTEM_REGISTRY.register(ObjectFilesystem, priority=FIRST_PRIORITY)
