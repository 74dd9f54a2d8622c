"""The process that runs a pipeline: `python -m pipeline.run.worker`, started by `pipeline.run.workers`.

It is a separate process so that the one in front of the user stays light, can draw while this one works, and can stop
it at once. It imports TFX and TensorFlow, starts neither, and forks the processes that run the nodes: those that do not
wait for each other run at once where cores are free. What a node prints, from Python or C++, goes to a file of its own.

It is told which pipeline to run, by a line on its standard input, only when it has imported TFX, so that the process in
front checks the run meanwhile.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from components.cores import available_cores
from contracts.failure import Failure
from pipeline.run.context import RunContext
from pipeline.run.failures import describe_failure
from pipeline.run.folder import Request, RunFolder, redirect_output
from pipeline.run.lanes import KilledError, Lanes
from pipeline.run.lean_imports import lean
from pipeline.run.schedule import Schedule

TURNS = "turns"
"""The file by whose lock the processes take turns at the metadata store, among the run's temporary files."""


def main() -> None:
    """Runs the pipeline that the request in a run's folder asks for; the exit code only says whether it finished."""
    with lean():
        import_module("pipeline.run.tfx_adapter")
    line = sys.stdin.readline().strip()
    if not line:
        # The process in front has found something wrong, or nothing to do.
        os._exit(0)
    with redirect_output(RunFolder(Path(line).parent).worker_log):
        code = run(Path(line))
    # Without cleanup: tearing down TensorFlow and Beam takes over a second and ends in a traceback from TensorFlow.
    os._exit(code)


def run(request_path: Path) -> int:
    """Runs the pipeline in forked processes; TFX has been imported.

    Returns:
        The exit code: 0, or 1 if a node failed, which the run's folder says then.
    """
    from pipeline.run import tfx_adapter

    request = Request.model_validate_json(request_path.read_bytes())
    context = RunContext.from_request(request).patient()
    compiled = tfx_adapter.compile_pipeline(context)
    tfx_adapter.mark_requested(compiled, request)
    schedule = Schedule(tfx_adapter.waits(compiled))
    turns = Path(tempfile.gettempdir(), TURNS)
    try:
        with Lanes(partial(_run_node, compiled, context, turns), available_cores()) as lanes:
            lanes.run(schedule)
    except KilledError as killed:
        if killed.number:
            # As if this process had been ended, so that the one in front tells so.
            signal.signal(killed.number, signal.SIG_DFL)
            os.kill(os.getpid(), killed.number)
        raise
    if schedule.failure is not None:
        context.folder.write_failure(schedule.failure)
        return 1
    return 0


def _run_node(compiled: Any, context: RunContext, turns: Path, node: str) -> Failure | None:
    """Runs a node with its output in its own log."""
    from pipeline.run import tfx_adapter

    with redirect_output(context.folder.log_path(node)):
        try:
            tfx_adapter.run_node(compiled, node, context, turns=turns)
        except Exception as error:
            return describe_failure(node, error)
    return None


if __name__ == "__main__":
    main()
