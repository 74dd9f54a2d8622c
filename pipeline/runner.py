"""TFX's BeamDagRunner, with a log a node and failures written down where the front end finds them."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tfx.orchestration.beam import beam_dag_runner

from components.trainer.callbacks import PROGRESS_VARIABLE
from pipeline import worker


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
