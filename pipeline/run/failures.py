"""Describes for users why a node failed: an error in this process, or in a worker of a distributed engine."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from contracts.errors import AnomalyError, MillraceError, NodeError
from contracts.failure import Failure
from pipeline.plan import project

JOB = re.compile(r"Pipeline \S+ failed in state \w+: (?P<first>[^\n]*)")
TRACEBACK = re.compile(
    r"Traceback \(most recent call last\):\n(?P<frames>(?: [^\n]*\n)+)"
    r"(?P<kind>[\w.]+)(?:: (?P<message>.*?))?(?=\n\n|\n\tat |\Z)",
    re.DOTALL,
)
FRAME = re.compile(r' +File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<function>.+)\n    (?P<code>.*)')
BEAM_STEP = re.compile(r"\s*\[while running '.*?'\]")

Frame = tuple[str, int | None, str, str | None]
"""A frame of a traceback: file, line number, function, source line."""


@dataclass(frozen=True)
class RemoteFailure:
    """An error in a worker of a distributed engine.

    Attributes:
        kind: The error's class, without its module.
        message: The error's class and message, as Python prints them.
        frames: The frames of its traceback.
    """

    kind: str
    message: str
    frames: tuple[Frame, ...]


def describe_failure(node: str, error: BaseException) -> Failure:
    """Describes why a node failed: kind, message, the user's own lines in the traceback, anomalies in the data."""
    remote = read_remote_failure(str(error))
    message = str(error) if isinstance(error, MillraceError) else f"{type(error).__name__}: {error}"
    return Failure(
        node=node,
        kind=remote.kind if remote else type(error).__name__,
        message=BEAM_STEP.sub("", remote.message if remote else message).strip(),
        lines=_user_lines(remote.frames if remote else _frames(error)),
        findings=error.findings if isinstance(error, AnomalyError) else None,
    )


def node_error(failure: Failure, log: Path) -> NodeError:
    """The error that reports a failure to the user.

    Args:
        failure: The failure.
        log: The node's log.
    """
    lines = "".join(f"\n  {line}" for line in failure.lines)
    return NodeError(f"{failure.node} failed.\n{failure.message}{lines}\n\nLog: {log}", kind=failure.kind)


def read_remote_failure(text: str) -> RemoteFailure | None:
    """Finds the first worker's error in the runner's message, or else the engine's first message.

    Returns:
        None if the text does not report a failed job.
    """
    job = JOB.search(text)
    if job is None:
        return None
    trace = TRACEBACK.search(text)
    if trace is None:
        return RemoteFailure("RuntimeError", f"The engine of the data work says: {job['first']}", ())
    kind = trace["kind"].rpartition(".")[2]
    frames = tuple(
        (frame["file"], int(frame["line"]), frame["function"], frame["code"])
        for frame in FRAME.finditer(trace["frames"])
    )
    return RemoteFailure(kind, f"{kind}: {trace['message']}" if trace["message"] else kind, frames)


def _user_lines(frames: Iterable[Frame]) -> list[str]:
    lines = [
        f"{project.relative_path(Path(file))}:{line} in {function}: {code}"
        for file, line, function, code in frames
        if Path(file).is_relative_to(project.recipes_folder())
    ]
    return list(dict.fromkeys(lines))


def _frames(error: BaseException) -> Iterator[Frame]:
    current: BaseException | None = error
    while current is not None:
        for frame in traceback.extract_tb(current.__traceback__):
            yield frame.filename, frame.lineno, frame.name, frame.line
        current = current.__cause__ or current.__context__
