"""A TensorBoard that runs beside the dashboard and ends with it, however that ends."""

from __future__ import annotations

import ctypes
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import IO

PR_SET_PDEATHSIG = 1
ADDRESS = re.compile(r"http://\S+/")


class TensorBoardProcess:
    """Starts TensorBoard on a free port of this machine; it takes some seconds until it answers.

    Args:
        folder: The folder whose runs it shows.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = ""
        command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(folder), "--host", "localhost"]
        self._process = subprocess.Popen(
            [*command, "--port", "0"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            # Should the dashboard be killed, nobody else would end it.
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
        )
        assert self._process.stderr is not None  # noqa: S101 - it is a pipe
        threading.Thread(target=self._read, args=(self._process.stderr,), daemon=True).start()

    def __enter__(self) -> TensorBoardProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # It only reads: there is nothing that it would have to finish, and nobody to wait for it.
        self._process.kill()
        self._process.wait()

    def _read(self, lines: IO[str]) -> None:
        # To the end, for a full pipe would stop it.
        for line in lines:
            found = ADDRESS.search(line)
            if found and not self.url:
                self.url = found.group()
        self.url = ""


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
