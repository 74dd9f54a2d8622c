"""What TFX and Beam force on us, in one place: how they run our nodes, and how the nodes get the run's context.

- TFX creates executors and file systems itself, and Beam pickles a node before it runs it: neither can be given an
  object of ours. So the process that runs a run can look it up by its id while it is going on (`_runs`).
- An executor gets only execution properties. What is not part of its cache key is added to them in memory, after the
  key has been computed, and TFX drops it when it publishes them.
- Everything in TFX except the executors (input resolution, cache keys, published artifacts) sees only the URIs of
  artifacts, so each pod may have its cache in a different place. See docs/adr/0023-object-stores-at-the-executor.md.
- TFX creates its own clients of the metadata store: `be_patient` makes them wait for a server that is down.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import attr
from absl import logging
from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2
from tfx.dsl.compiler import constants
from tfx.dsl.compiler.compiler import Compiler
from tfx.dsl.io import filesystem, filesystem_registry
from tfx.orchestration import metadata
from tfx.orchestration.beam import beam_dag_runner
from tfx.orchestration.local import runner_utils
from tfx.orchestration.portable import (
    cache_utils,
    execution_publish_utils,
    launcher,
    outputs_utils,
    partial_run_utils,
    runtime_parameter_utils,
)
from tfx.proto.orchestration import driver_output_pb2, pipeline_pb2
from tfx.types import Artifact, standard_artifacts

from components.artifacts import STORED_AT
from components.beam_overhead import reduce_overhead
from components.evaluation.looks import EARLIER_LOOKS, looks_to_text
from components.trainer.processes import SURROUNDINGS, Launcher, Surroundings
from metadata.connection import be_patient
from metadata.files import WRITTEN, Files, described, local_sizes
from metadata.records import artifact_record, changed_files
from pipeline.plan import dag
from pipeline.plan.table import EVALUATOR_NODE, TRAINER_NODE
from pipeline.run.context import RunContext
from pipeline.run.failures import describe_failure
from pipeline.run.folder import Request, redirect_output
from pipeline.run.objects.faults import ObjectStoreError
from pipeline.run.objects.mirror import Mirror

Artifacts = Mapping[str, Sequence[Artifact]]

FIRST_PRIORITY = 0
"""Before TFX's own file systems for these schemes, which need a TensorFlow that supports them."""

_runs: dict[str, RunContext] = {}
"""The runs that this process is running, by run id."""


def compile_pipeline(context: RunContext) -> Any:
    """Compiles the pipeline of a run to TFX's `pipeline_pb2.Pipeline`."""
    reduce_overhead()
    # TFX logs whole protos at INFO; what a user needs to read starts at WARNING.
    logging.set_verbosity(logging.WARNING)
    connection = context.workplace.connection
    be_patient(connection)
    request, (engine, _) = context.request, context.engine
    environment = context.environment.model_copy(update={"beam": engine})
    pipeline = dag.build(context.recipe, environment, context.fingerprints, request.span, connection, not request.force)
    compiled = Compiler().compile(pipeline)
    # Set here, because the runner would otherwise name the run by the time alone.
    runtime_parameter_utils.substitute_runtime_parameter(
        compiled, {constants.PIPELINE_RUN_ID_PARAMETER_NAME: request.run_id}
    )
    return compiled


def run_pipeline(compiled: Any, context: RunContext) -> None:
    """Runs the requested nodes of a compiled pipeline, on Beam in this process."""
    with _registered(context):
        _Runner().run_with_ir(compiled, run_options=_partial_run(context.request))


def run_node(compiled: Any, node: str, context: RunContext, training_launcher: Launcher | None = None) -> None:
    """Runs one node of a compiled pipeline in this process; the nodes before it must have run.

    Args:
        compiled: TFX's `pipeline_pb2.Pipeline`.
        node: The node's id.
        context: The run.
        training_launcher: Starts the processes of distributed training; None: on this machine.
    """
    deployment = runner_utils.extract_local_deployment_config(compiled)
    connection = deployment.metadata_connection_config
    with _registered(context):
        _Launcher(
            context=context,
            training_launcher=training_launcher,
            pipeline_node=_node_of(compiled, node),
            mlmd_connection=metadata.Metadata(getattr(connection, connection.WhichOneof("connection_config"))),
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


def _partial_run(request: Request) -> Any:
    """TFX's options for a partial run; None for a whole one."""
    if not (request.from_node or request.to_node):
        return None
    options = pipeline_pb2.RunOptions()
    options.partial_run.from_nodes.extend([request.from_node] if request.from_node else [])
    options.partial_run.to_nodes.extend([request.to_node] if request.to_node else [])
    options.partial_run.snapshot_settings.latest_pipeline_run_strategy.SetInParent()
    return options


@contextmanager
def _registered(context: RunContext) -> Iterator[None]:
    """Lets the nodes and the file system that TFX creates look the run up by its id."""
    _runs[context.run_id] = context
    try:
        yield
    finally:
        del _runs[context.run_id]


class _BeamNode(beam_dag_runner.PipelineNodeAsDoFn):
    """Runs one node with its output in its own log, and records why it failed."""

    def _run_node(self) -> None:
        context = _runs[self._pipeline_runtime_spec.pipeline_run_id.field_value.string_value]
        with redirect_output(context.folder.log_path(self._node_id)):
            try:
                self._launch(context)
            except Exception as error:
                context.folder.write_failure(describe_failure(self._node_id, error))
                raise

    def _launch(self, context: RunContext) -> None:
        """Does what TFX's node does, with our launcher."""
        if self._pipeline_node.execution_options.run.perform_snapshot:
            with metadata.Metadata(self._mlmd_connection_config) as store:
                partial_run_utils.snapshot(store, self._pipeline)
        _Launcher(
            context=context,
            pipeline_node=self._pipeline_node,
            mlmd_connection=metadata.Metadata(self._mlmd_connection_config),
            pipeline_info=self._pipeline_info,
            pipeline_runtime_spec=self._pipeline_runtime_spec,
            executor_spec=self._executor_spec,
            custom_driver_spec=self._custom_driver_spec,
        ).launch()


class _Runner(beam_dag_runner.BeamDagRunner):
    """Runs a compiled pipeline on Beam in this process."""

    _PIPELINE_NODE_DO_FN_CLS = _BeamNode


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


class _Launcher(launcher.Launcher):
    """Launches a node of a run: passes on the run's context, and downloads and uploads artifacts of an object store.

    It registers a new execution for each attempt; TFX's would reuse the one that failed or was cancelled.
    """

    def __init__(self, context: RunContext, training_launcher: Launcher | None = None, **arguments: Any) -> None:
        super().__init__(**arguments)
        progress = context.folder.progress_path(self._pipeline_node.node_info.id)
        self._surroundings = Surroundings(str(progress), training_launcher)
        if self._executor_spec is not None:
            # TFX takes a cached output if its folder exists. It asks a node's driver between resolving its inputs,
            # which the cache key is made of, and looking up the cache; ours looks whether the files are there.
            self._driver_operator: Any = _CachedOutputs(self, context.workplace.files, self._driver_operator)
        self._mirror = context.workplace.mirror
        if self._mirror is not None:
            own = ("pipeline_node", "pipeline_info", "pipeline_runtime_spec")
            self._output_resolver = _ObjectStoreOutputs(self._mirror, **{name: arguments[name] for name in own})

    def _register_or_reuse_execution(self, metadata_handle: Any, contexts: Any, **arguments: Any) -> Any:
        return execution_publish_utils.register_execution(
            metadata_handle=metadata_handle,
            execution_type=self._pipeline_node.node_info.type,
            contexts=contexts,
            **arguments,
        )

    def _run_executor(self, execution_info: Any) -> Any:
        if self._pipeline_node.node_info.id == TRAINER_NODE:
            # Only in memory: the cache key has been computed, and TFX does not publish properties that are objects.
            # Only for the Trainer: TFX copies the properties of a node with Beam arguments to a proto, which cannot
            # hold an object.
            execution_info = _with_property(execution_info, SURROUNDINGS, self._surroundings)
        if self._pipeline_node.node_info.id == EVALUATOR_NODE:
            with self._mlmd_connection as handle:
                blessings = handle.store.get_artifacts_by_type(standard_artifacts.ModelBlessing.TYPE_NAME)
            execution_info = _with_property(execution_info, EARLIER_LOOKS, looks_to_text(blessings))
        if self._mirror is None:
            return _with_files_noted(super()._run_executor(execution_info))
        return self._run_here(execution_info, self._mirror)

    def _run_here(self, execution_info: Any, mirror: Mirror) -> Any:
        """Downloads the executor's inputs, and uploads its outputs before they are published."""
        for uri in _uris(execution_info.input_dict):
            mirror.download(uri)
        outputs = _uris(execution_info.output_dict)
        for uri in outputs:
            mirror.make_empty(uri)
        local_info = attr.evolve(
            execution_info,
            input_dict=_local_copies(execution_info.input_dict, mirror, noted=True),
            output_dict=_local_copies(execution_info.output_dict, mirror),
        )
        output = _with_files_noted(super()._run_executor(local_info))
        _send_outputs(outputs, mirror)
        _rename_to_uris(output, mirror)
        return output


class _CachedOutputs:
    """A node's driver, which takes cached outputs of which files are gone out of TFX's cache.

    Args:
        node: The launcher of the node.
        files: Reads the files of artifacts.
        own: The node's own driver, or None.
    """

    def __init__(self, node: Any, files: Files, own: Any) -> None:
        self._node, self._files, self._own = node, files, own

    def run_driver(self, execution_info: Any) -> Any:
        """Returns what the node's own driver does, if it has one."""
        if self._node._pipeline_node.execution_options.caching_options.enable_cache:
            self._withdraw_incomplete(execution_info)
        return self._own.run_driver(execution_info) if self._own else driver_output_pb2.DriverOutput()

    def _withdraw_incomplete(self, execution_info: Any) -> None:
        """Marks the outputs as deleted that the cache has for an execution, and that are not as they were written."""
        with self._node._mlmd_connection as handle:
            key = cache_utils.get_cache_context(
                handle,
                self._node._pipeline_node,
                self._node._pipeline_info,
                self._node._executor_spec,
                execution_info.input_dict,
                execution_info.output_dict,
                execution_info.exec_properties,
            )
            executions = [execution.id for execution in handle.store.get_executions_by_context(key.id)]
            events = handle.store.get_events_by_execution_ids(executions) if executions else []
            ids = {event.artifact_id for event in events if event.type == mlmd_pb2.Event.OUTPUT}
            artifacts = handle.store.get_artifacts_by_id(ids) if ids else []
            live = [artifact for artifact in artifacts if artifact.state == mlmd_pb2.Artifact.LIVE]
            changed = changed_files(map(artifact_record, live), self._files)
            for uri, what in changed.items():
                logging.warning("%s %s: it is not taken from the cache.", uri, what)
            for artifact in live:
                if artifact.uri in changed:
                    artifact.state = mlmd_pb2.Artifact.DELETED
                    handle.store.put_artifacts([artifact])


def _with_files_noted(output: Any) -> Any:
    """Notes in the outputs, which are local here, which files they have; see `metadata.files.described`."""
    for artifact in (artifact for listed in output.output_artifacts.values() for artifact in listed.artifacts):
        artifact.custom_properties[WRITTEN].string_value = described(local_sizes(artifact.uri))
    return output


def _with_property(execution_info: Any, name: str, value: Any) -> Any:
    return attr.evolve(execution_info, exec_properties={**execution_info.exec_properties, name: value})


class _ObjectStoreOutputs(outputs_utils.OutputsResolver):
    """Gives outputs the URIs under which they are published; TFX's own files for an execution stay on this machine."""

    def __init__(self, mirror: Mirror, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._mirror = mirror

    def generate_output_artifacts(self, execution_id: int) -> dict[str, list[Artifact]]:
        """See `OutputsResolver`."""
        outputs: dict[str, list[Artifact]] = super().generate_output_artifacts(execution_id)
        for artifact in (artifact for artifacts in outputs.values() for artifact in artifacts):
            artifact.uri = self._mirror.uri_of(artifact.uri)
        return outputs


def _uris(artifacts: Artifacts) -> list[str]:
    return [artifact.uri for listed in artifacts.values() for artifact in listed]


def _local_copies(artifacts: Artifacts, mirror: Mirror, noted: bool = False) -> dict[str, list[Artifact]]:
    """Copies of artifacts with local paths; if `noted`, they also record where they are stored."""
    copies = {key: [copy.deepcopy(artifact) for artifact in listed] for key, listed in artifacts.items()}
    for artifact in (artifact for listed in copies.values() for artifact in listed):
        if noted:
            artifact.set_string_custom_property(STORED_AT, artifact.uri)
        artifact.uri = str(mirror.path_of(artifact.uri))
    return copies


def _send_outputs(uris: Sequence[str], mirror: Mirror) -> None:
    try:
        for uri in uris:
            mirror.upload(uri)
    except ObjectStoreError:
        # A store that refuses an upload may refuse to remove it, too: then the part uploaded stays, unused.
        with suppress(ObjectStoreError):
            for uri in uris:
                mirror.discard_upload(uri)
        raise


def _rename_to_uris(output: Any, mirror: Mirror) -> None:
    """Replaces local paths by URIs in what an executor reports about its outputs."""
    artifacts = [artifact for listed in output.output_artifacts.values() for artifact in listed.artifacts]
    for artifact in artifacts:
        artifact.uri = mirror.uri_of(artifact.uri)
    values = [value for a in artifacts for held in (a.properties, a.custom_properties) for value in held.values()]
    for value in [*values, *output.execution_properties.values()]:
        if value.HasField("string_value"):
            value.string_value = mirror.uri_of(value.string_value)
