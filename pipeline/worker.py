"""The process that runs a pipeline: `python -m pipeline.worker REQUEST`, started and watched by `pipeline.local`.

It is a process of its own so that the one in front of the user stays light, can draw while this one works, and can stop
it at once. Whatever TFX, Beam and TensorFlow print, from Python or C++, goes to one file a node.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from components import processes
from components.errors import AnomalyError, MillraceError
from components.settings import Settings
from pipeline import environment as environments
from pipeline import fingerprint, lean_imports, recipe, remote_failures, stores
from pipeline.objects import mirror
from pipeline.recipe import PROJECT_ROOT

RUN_FOLDER_VARIABLE = "MILLRACE_RUN_FOLDER"
FAILURE_FILE = "failure.json"
REQUEST_FILE = "request.json"
WORKER_LOG = "worker.log"


class Request(Settings):
    """What the worker is asked to do.

    Attributes:
        recipe: The recipe's name.
        overrides: `--set` texts.
        environment: An environment's name or file.
        run_id: The run's name in the metadata store.
        span: The resolved span of the input data.
        from_node: Where a partial run begins.
        to_node: Where a partial run ends.
        force: Whether nodes run although their results are in the cache.
    """

    recipe: str
    overrides: tuple[str, ...]
    environment: str
    run_id: str
    span: int | None
    from_node: str | None = None
    to_node: str | None = None
    force: bool = False


def log_path(run_folder: Path, node: str) -> Path:
    """Where a node's log is."""
    return run_folder / f"{node}.log"


def progress_path(run_folder: Path, node: str) -> Path:
    """Where a node writes how far it is, if it does."""
    return run_folder / f"{node}.progress.json"


def main(request_path: str) -> None:
    """Runs the pipeline that the request describes; the exit code tells nothing but whether it came to its end."""
    processes.die_with(os.getppid())
    path = Path(request_path)
    os.environ[RUN_FOLDER_VARIABLE] = str(path.parent)
    with output_to(path.parent / WORKER_LOG):
        _run(Request.model_validate_json(path.read_text(encoding="utf-8")))
    # Taking TensorFlow and Beam apart again takes over a second and ends in a traceback of TensorFlow's own.
    os._exit(0)


def _run(request: Request) -> None:
    intermediate = compiled(request)
    from pipeline import runner

    options = _partial_run(request) if request.from_node or request.to_node else None
    runner.Runner().run_with_ir(intermediate, run_options=options)


def compiled(request: Request) -> Any:
    """Imports TFX, and compiles what is asked for to TFX's `pipeline_pb2.Pipeline`."""
    with lean_imports.lean():
        # Imported here, for the request module above is also the light process's.
        from absl import logging
        from tfx.dsl.compiler import constants
        from tfx.dsl.compiler.compiler import Compiler
        from tfx.orchestration.portable import runtime_parameter_utils

        from components.beam_overhead import reduce_overhead
        from metadata.connection import be_patient
        from pipeline import beam, dag, runner  # noqa: F401 - the runner with the rest: what it imports is as much

    reduce_overhead()
    # TFX logs whole protos at INFO; what a user needs to read starts at WARNING.
    logging.set_verbosity(logging.WARNING)
    chosen = recipe.load(request.recipe, request.overrides)
    environment = environments.load(request.environment)
    inputs = chosen.find_inputs()
    settled, _ = beam.settle(environment.beam, inputs)
    environment = environment.model_copy(update={"beam": settled})
    be_patient(stores.connection(environment))
    mirror.use(environment, patient=True)
    prints = fingerprint.fingerprints(chosen, environment, inputs)
    intermediate = Compiler().compile(dag.build(chosen, environment, prints, request.span, not request.force))
    # Set before the runner, which would otherwise name the run by the time alone.
    runtime_parameter_utils.substitute_runtime_parameter(
        intermediate, {constants.PIPELINE_RUN_ID_PARAMETER_NAME: request.run_id}
    )
    return intermediate


def _partial_run(request: Request) -> Any:
    from tfx.proto.orchestration import pipeline_pb2

    options = pipeline_pb2.RunOptions()
    options.partial_run.from_nodes.extend([request.from_node] if request.from_node else [])
    options.partial_run.to_nodes.extend([request.to_node] if request.to_node else [])
    options.partial_run.snapshot_settings.latest_pipeline_run_strategy.SetInParent()
    return options


@contextmanager
def output_to(path: Path) -> Iterator[None]:
    """Sends the process's standard output and error to the end of a file, C++ libraries' included."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(target, 1)
    os.dup2(target, 2)
    os.close(target)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(kept[0], 1)
        os.dup2(kept[1], 2)
        os.close(kept[0])
        os.close(kept[1])


def describe_failure(node: str, error: BaseException) -> dict[str, Any]:
    """A failure as plain data: node, kind, message, the user's own lines in the traceback, anomalies of the data."""
    remote = remote_failures.read(str(error))
    known = isinstance(error, MillraceError)
    message = str(error) if known else f"{type(error).__name__}: {error}"
    message = re.sub(r"\s*\[while running '.*?'\]", "", remote.message if remote else message).strip()
    return {
        "node": node,
        "kind": remote.kind if remote else type(error).__name__,
        "message": message,
        "lines": _user_lines(remote.frames if remote else _frames(error)),
    } | ({"findings": error.findings} if isinstance(error, AnomalyError) else {})


def _user_lines(frames: Iterable[tuple[str, int | None, str, str | None]]) -> list[str]:
    found: list[str] = []
    for file, line, function, code in frames:
        path = Path(file)
        if path.is_relative_to(recipe.recipes_folder()):
            shown = f"{path.relative_to(PROJECT_ROOT)}:{line} in {function}: {code}"
            if shown not in found:
                found.append(shown)
    return found


def _frames(error: BaseException) -> Iterator[tuple[str, int | None, str, str | None]]:
    current: BaseException | None = error
    while current is not None:
        for frame in traceback.extract_tb(current.__traceback__):
            yield frame.filename, frame.lineno, frame.name, frame.line
        current = current.__cause__ or current.__context__


if __name__ == "__main__":
    main(sys.argv[1])
