"""Why a server's store cannot be opened.

ML Metadata's exception does not say why; its C++ code writes the reason to standard error. To read it there, the store
is opened in a separate process: `python -m metadata.probe` takes a connection on its standard input.
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
    """The reason in one line, as the server or the operating system gave it; None if the store opens now."""
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
    """The first reason in ML Metadata's log."""
    starts = [match for match in LOG_LINE.finditer(log) if match.group().startswith(("E", "F"))]
    texts = [_text(log, match.end()) for match in starts] + [log.rpartition("RuntimeError:")[2]]
    return next((text for text in map(_plain, texts) if text not in VAGUE), "no reason given")


def _plain(text: str) -> str:
    """The text in one line, without ML Metadata's prefixes and libpq's question, with system errors in words."""
    reason_text = PREFIX.sub("", " ".join(PREFIX.sub("", text).split())).partition(" Is the server running")[0]
    return ERROR_NUMBER.sub(_in_words, reason_text).removesuffix(".")


def _in_words(match: re.Match[str]) -> str:
    number = getattr(errno, match.group(), None)
    return match.group() if number is None else os.strerror(number)


def _text(log: str, start: int) -> str:
    """A log line with its continuation lines."""
    following = re.compile(r"^([IWEF]\d{4} |Traceback )", re.MULTILINE).search(log, start)
    return log[start : following.start() if following else len(log)]


def main() -> None:
    """Opens the store given on standard input and prints nothing; an error ends this process with a traceback."""
    import ml_metadata as mlmd

    mlmd.MetadataStore(mlmd_pb2.ConnectionConfig.FromString(sys.stdin.buffer.read()))


if __name__ == "__main__":
    main()
