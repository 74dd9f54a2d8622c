"""The process that runs a pipeline: `python -m pipeline.run.worker REQUEST`, which `pipeline.run.local` starts.

It is a process of its own so that the one in front of the user stays light, can draw while this one works, and can stop
it at once. Whatever TFX, Beam and TensorFlow print, from Python or C++, goes to one file a node.
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
    """Runs the pipeline that a file in a run's folder asks for; the exit code says only whether it came to its end."""
    processes.die_with(os.getppid())
    with redirect_output(RunFolder(request_path.parent).worker_log):
        with lean():
            from pipeline.run import tfx_adapter
        request = Request.model_validate_json(request_path.read_bytes())
        context = RunContext.of_request(request).patient()
        tfx_adapter.run_pipeline(tfx_adapter.compile_pipeline(context), context)
    # Taking TensorFlow and Beam apart again takes over a second and ends in a traceback of TensorFlow's own.
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
