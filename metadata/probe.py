"""Why a server's store cannot be opened.

ML Metadata says only that it could not; the reason, which its C++ code writes to standard error, is read there, in a
process of its own: `python -m metadata.probe` takes a connection on its standard input.
"""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2

TIME_LIMIT_SECONDS = 15
LOG_LINE = re.compile(r"^[IWEF]\d{4} .*?\] ", re.MULTILINE)
PREFIX = re.compile(r"^(PostgreSQL error|Execution failed|PostgreSQL metadata source error|RuntimeError): *")
ERROR_NUMBER = re.compile(r"\bE[A-Z]{4,}\b(?=$| )")
VAGUE = ("", "connection pointer is NULL")


def reason(connection: mlmd_pb2.ConnectionConfig) -> str | None:
    """The reason in one line, as the server or the operating system gave it; None where it can be opened now."""
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "metadata.probe"],
            input=connection.SerializeToString(),
            capture_output=True,
            cwd=Path(__file__).parent.parent,
            env={**os.environ, "GLOG_minloglevel": "0"},
            timeout=TIME_LIMIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {TIME_LIMIT_SECONDS} seconds"
    return None if done.returncode == 0 else first_reason(done.stderr.decode(errors="replace"))


def first_reason(log: str) -> str:
    """What went wrong first, of what ML Metadata wrote."""
    starts = [match for match in LOG_LINE.finditer(log) if match.group().startswith(("E", "F"))]
    texts = [_text(log, match.end()) for match in starts] + [log.rpartition("RuntimeError:")[2]]
    return next((text for text in map(_plain, texts) if text not in VAGUE), "no reason given")


def _plain(text: str) -> str:
    """In one line, without ML Metadata's names for it and libpq's question; the system's error in words."""
    line = PREFIX.sub("", " ".join(PREFIX.sub("", text).split())).partition(" Is the server running")[0]
    return ERROR_NUMBER.sub(_in_words, line).removesuffix(".")


def _in_words(match: re.Match[str]) -> str:
    number = getattr(errno, match.group(), None)
    return match.group() if number is None else os.strerror(number)


def _text(log: str, start: int) -> str:
    """One log line with those that go on with it."""
    following = re.compile(r"^([IWEF]\d{4} |Traceback )", re.MULTILINE).search(log, start)
    return log[start : following.start() if following else len(log)]


def main() -> None:
    """Opens the store of standard input and says nothing; what goes wrong ends this process with a traceback."""
    import ml_metadata as mlmd

    mlmd.MetadataStore(mlmd_pb2.ConnectionConfig.FromString(sys.stdin.buffer.read()))


if __name__ == "__main__":
    main()
