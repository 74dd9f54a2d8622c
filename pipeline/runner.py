"""TFX's BeamDagRunner, with a log a node and failures where the front end finds them; and one node alone."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tfx.orchestration import metadata
from tfx.orchestration.beam import beam_dag_runner
from tfx.orchestration.local import runner_utils
from tfx.orchestration.portable import execution_publish_utils, launcher

from components.trainer.callbacks import PROGRESS_VARIABLE
from pipeline import worker
from pipeline.objects import launching, mirror


class _Node(beam_dag_runner.PipelineNodeAsDoFn):
    """Runs one node with everything it prints in its own file."""

    def _run_node(self) -> None:
        run_folder = Path(os.environ[worker.RUN_FOLDER_VARIABLE])
        os.environ[PROGRESS_VARIABLE] = str(worker.progress_path(run_folder, self._node_id))
        with worker.output_to(worker.log_path(run_folder, self._node_id)):
            try:
                super()._run_node()
            except Exception as error:
                failure = worker.describe_failure(self._node_id, error)
                (run_folder / worker.FAILURE_FILE).write_text(json.dumps(failure), encoding="utf-8")
                raise


class Runner(beam_dag_runner.BeamDagRunner):
    """Runs a compiled pipeline on Beam in this process."""

    _PIPELINE_NODE_DO_FN_CLS = _Node

    def run_with_ir(self, pipeline: Any, run_options: Any = None) -> None:
        """See TFX's."""
        before = launcher.Launcher
        if mirror.used() is not None:
            # TFX's node makes its launcher by this name.
            launcher.Launcher = launching.Launcher
        try:
            super().run_with_ir(pipeline, run_options=run_options)
        finally:
            launcher.Launcher = before


class _Launcher(launching.Launcher):
    """Begins an execution of its own for each try; TFX's would go on in the one that failed or was cancelled."""

    def _register_or_reuse_execution(self, metadata_handle: Any, contexts: Any, **given: Any) -> Any:
        return execution_publish_utils.register_execution(
            metadata_handle=metadata_handle,
            execution_type=self._pipeline_node.node_info.type,
            contexts=contexts,
            **given,
        )


def upstream(pipeline: Any, node: str) -> list[str]:
    """The nodes of a compiled pipeline that a node comes after."""
    return list(_found(pipeline, node).upstream_nodes)


def run_node(pipeline: Any, node: str, run_folder: Path) -> None:
    """Runs one node of a compiled pipeline here and now; the nodes before it must have run.

    Args:
        pipeline: TFX's `pipeline_pb2.Pipeline`.
        node: The node's id.
        run_folder: Where it writes how far it is.
    """
    os.environ[PROGRESS_VARIABLE] = str(worker.progress_path(run_folder, node))
    deployment = runner_utils.extract_local_deployment_config(pipeline)
    connection = deployment.metadata_connection_config
    _Launcher(
        pipeline_node=_found(pipeline, node),
        mlmd_connection=metadata.Metadata(getattr(connection, connection.WhichOneof("connection_config"))),
        pipeline_info=pipeline.pipeline_info,
        pipeline_runtime_spec=pipeline.runtime_spec,
        executor_spec=runner_utils.extract_executor_spec(deployment, node),
        custom_driver_spec=runner_utils.extract_custom_driver_spec(deployment, node),
    ).launch()


def _found(pipeline: Any, node: str) -> Any:
    return next(entry.pipeline_node for entry in pipeline.nodes if entry.pipeline_node.node_info.id == node)
