"""How TFX launches a node of ours: driver, executor, publisher, with what the run hands to the executor in between."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import attr
from absl import logging
from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2
from tfx.orchestration.portable import cache_utils, execution_publish_utils, launcher
from tfx.proto.orchestration import driver_output_pb2
from tfx.types import standard_artifacts

from components.evaluation.looks import EARLIER_LOOKS, looks_to_text
from components.progress import PROGRESS
from components.trainer.processes import SURROUNDINGS, Launcher, Surroundings
from metadata.files import WRITTEN, Files, described, local_sizes
from metadata.records import artifact_record, changed_files
from pipeline.plan.table import EVALUATOR_NODE, TRAINER_NODE
from pipeline.run import lock
from pipeline.run.context import RunContext
from pipeline.run.objects.launching import (
    ObjectStoreOutputs,
    local_copies,
    rename_to_uris,
    send_outputs,
    uris_of,
)
from pipeline.run.objects.mirror import Mirror

COUNTING_NODES = ("ExampleGen", "StatisticsGen", "Transform", EVALUATOR_NODE)
"""The nodes that tell how many rows they have worked through; see components/progress.py."""


class NodeLauncher(launcher.Launcher):
    """Launches a node of a run: passes on the run's context, and downloads and uploads artifacts of an object store.

    It registers a new execution for each attempt; TFX's would reuse the one that failed or was cancelled.
    """

    def __init__(
        self,
        context: RunContext,
        training_launcher: Launcher | None = None,
        turns: Path | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self._turns = turns
        self._preparing = False
        progress = context.folder.progress_path(self._pipeline_node.node_info.id)
        self._surroundings = Surroundings(str(progress), training_launcher)
        if self._executor_spec is not None:
            # TFX takes a cached output if its folder exists. It asks a node's driver between resolving its inputs,
            # which the cache key is made of, and looking up the cache; ours looks whether the files are there.
            self._driver_operator: Any = _CachedOutputs(self, context.workplace.files, self._driver_operator)
        self._mirror = context.workplace.mirror
        if self._mirror is not None:
            own = ("pipeline_node", "pipeline_info", "pipeline_runtime_spec")
            self._output_resolver = ObjectStoreOutputs(self._mirror, **{name: arguments[name] for name in own})

    def launch(self) -> Any:
        """See `Launcher`."""
        # A node that only looks up artifacts does nothing but use the store.
        with self._turn() if self._system_node_handler else nullcontext():
            return super().launch()

    def _turn(self) -> AbstractContextManager[None]:
        """A turn at the metadata store, of which the node's driver and publisher need one each.

        SQLite refuses a writer that began by reading while another wrote; ML Metadata's client then sleeps seconds.
        """
        return lock.wait_for(self._turns) if self._turns else nullcontext()

    def _prepare_execution(self) -> Any:
        # It publishes the failure to resolve inputs itself, within the same turn.
        self._preparing = True
        try:
            with self._turn():
                return super()._prepare_execution()
        finally:
            self._preparing = False

    def _publish_successful_execution(self, *arguments: Any) -> None:
        with self._turn():
            super()._publish_successful_execution(*arguments)

    def _publish_failed_execution(self, *arguments: Any, **options: Any) -> None:
        with nullcontext() if self._preparing else self._turn():
            super()._publish_failed_execution(*arguments, **options)

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
        if self._pipeline_node.node_info.id in COUNTING_NODES:
            execution_info = _with_property(execution_info, PROGRESS, self._surroundings.progress)
        if self._pipeline_node.node_info.id == EVALUATOR_NODE:
            with self._mlmd_connection as handle:
                blessings = handle.store.get_artifacts_by_type(standard_artifacts.ModelBlessing.TYPE_NAME)
            execution_info = _with_property(execution_info, EARLIER_LOOKS, looks_to_text(blessings))
        if self._mirror is None:
            return _with_files_noted(super()._run_executor(execution_info))
        return self._run_here(execution_info, self._mirror)

    def _run_here(self, execution_info: Any, mirror: Mirror) -> Any:
        """Downloads the executor's inputs, and uploads its outputs before they are published."""
        for uri in uris_of(execution_info.input_dict):
            mirror.download(uri)
        outputs = uris_of(execution_info.output_dict)
        for uri in outputs:
            mirror.make_empty(uri)
        local_info = attr.evolve(
            execution_info,
            input_dict=local_copies(execution_info.input_dict, mirror, noted=True),
            output_dict=local_copies(execution_info.output_dict, mirror),
        )
        output = _with_files_noted(super()._run_executor(local_info))
        send_outputs(outputs, mirror)
        rename_to_uris(output, mirror)
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
