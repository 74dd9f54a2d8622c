"""The process that runs a pipeline: `python -m pipeline.run.worker REQUEST`, started by `pipeline.run.local`.

It is a separate process so that the one in front of the user stays light, can draw while this one works, and can stop
it at once. Whatever TFX, Beam and TensorFlow print, from Python or C++, goes to one file per node.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from components import processes
from pipeline.run.context import RunContext
from pipeline.run.folder import Request, RunFolder, redirect_output
from pipeline.run.lean_imports import lean


def main(request_path: Path) -> None:
    """Runs the pipeline that the request in a run's folder asks for; the exit code only says whether it finished."""
    processes.die_with(os.getppid())
    with redirect_output(RunFolder(request_path.parent).worker_log):
        with lean():
            from pipeline.run import tfx_adapter
        request = Request.model_validate_json(request_path.read_bytes())
        context = RunContext.from_request(request).patient()
        tfx_adapter.run_pipeline(tfx_adapter.compile_pipeline(context), context)
    # Without cleanup: tearing down TensorFlow and Beam takes over a second and ends in a traceback from TensorFlow.
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
