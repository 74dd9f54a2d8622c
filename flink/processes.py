"""Processes that go on when the one that started them ends, known by a file with their id."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SHOWN_LINES = 8
POLL_SECONDS = 0.1
GRACE_SECONDS = 15.0


@dataclass(frozen=True)
class Process:
    """One process of the cluster.

    Attributes:
        name: What it is called here; its log is `NAME.log`.
        folder: Of its log and of the file with its id.
    """

    name: str
    folder: Path

    @property
    def log(self) -> Path:
        """What it prints."""
        return self.folder / f"{self.name}.log"

    @property
    def _pid_file(self) -> Path:
        return self.folder / f"{self.name}.pid"

    def start(self, command: Sequence[str]) -> None:
        """Starts Java with these arguments; its log begins anew."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                [command[0], self._mark, *command[1:]],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._pid_file.write_text(str(process.pid), encoding="ascii")
        # For a moment a new process has no command line yet.
        while self.pid() is None and process.poll() is None:
            time.sleep(POLL_SECONDS)

    @property
    def _mark(self) -> str:
        """A property of the Java machine that tells it from any process that got the same id later."""
        return f"-Dmillrace.process={self.folder.absolute()}/{self.name}"

    def pid(self) -> int | None:
        """Its id while it runs."""
        if not self._pid_file.exists():
            return None
        pid = int(self._pid_file.read_text(encoding="ascii"))
        return pid if self._mark in _command_line(pid) else None

    def stop(self) -> bool:
        """Ends it, by force where it does not end soon; whether it ran."""
        pid = self.pid()
        if pid is not None:
            os.kill(pid, signal.SIGTERM)
            deadline = time.monotonic() + GRACE_SECONDS
            while self.pid() is not None:
                if time.monotonic() > deadline:
                    os.kill(pid, signal.SIGKILL)
                time.sleep(POLL_SECONDS)
        self._pid_file.unlink(missing_ok=True)
        return pid is not None

    def last_lines(self) -> str:
        """The end of its log."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(f"  {line[:300]}" for line in lines[-SHOWN_LINES:]) or "  (it printed nothing)"


def _command_line(pid: int) -> str:
    """A process's command line; empty where there is no such process, or one that has ended."""
    listed = Path(f"/proc/{pid}/cmdline")
    if Path("/proc/self/cmdline").exists():
        try:
            return listed.read_bytes().decode("utf-8", "replace")
        except (FileNotFoundError, ProcessLookupError):
            return ""
    shown = subprocess.run(["ps", "-ww", "-p", str(pid), "-o", "command="], capture_output=True, text=True, check=False)
    return shown.stdout
