"""What a distributed engine says of a job that failed: our own words are somewhere in it."""

from __future__ import annotations

import re
from dataclasses import dataclass

JOB = re.compile(r"Pipeline \S+ failed in state \w+: (?P<first>[^\n]*)")
TRACEBACK = re.compile(
    r"Traceback \(most recent call last\):\n(?P<frames>(?: [^\n]*\n)+)"
    r"(?P<kind>[\w.]+)(?:: (?P<message>.*?))?(?=\n\n|\n\tat |\Z)",
    re.DOTALL,
)
FRAME = re.compile(r' +File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<function>.+)\n    (?P<code>.*)')


@dataclass(frozen=True)
class RemoteFailure:
    """What went wrong in a worker.

    Attributes:
        kind: The error's class, without its module.
        message: The error and what it says, as Python prints it.
        frames: File, line number, function and source line of each call that led to it.
    """

    kind: str
    message: str
    frames: tuple[tuple[str, int, str, str], ...]


def read(text: str) -> RemoteFailure | None:
    """The first error of a worker in what the runner says; what the engine says first, where no worker failed.

    Returns:
        None where it is no failed job.
    """
    job = JOB.search(text)
    if job is None:
        return None
    found = TRACEBACK.search(text)
    if found is None:
        return RemoteFailure("RuntimeError", f"The engine of the data work says: {job['first']}", ())
    kind = found["kind"].rpartition(".")[2]
    frames = tuple(
        (frame["file"], int(frame["line"]), frame["function"], frame["code"])
        for frame in FRAME.finditer(found["frames"])
    )
    return RemoteFailure(kind, f"{kind}: {found['message']}" if found["message"] else kind, frames)
