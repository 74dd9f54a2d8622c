"""The worker of a run, seen from the process in front of the user: started for it, or forked from one on standby.

A process on standby (standby.py) is used only if it imported what a new one would: same interpreter, files of
Millrace, packages, environment variables, limits and project. All this is in the name of its socket, so a change of any
finds no process, and begins a new one. Recipes are imported by the forked worker alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import select
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Protocol, cast

from pipeline.plan import project
from pipeline.run.folder import RunFolder
from pipeline.run.standby import DISMISSED, READY, kill_group

TERMINALS = frozenset(("_", "COLUMNS", "LINES", "OLDPWD", "PWD", "SHLVL", "TERM", "TMPDIR", "TMUX", "TMUX_PANE"))
"""Environment variables that nothing reads at import; each run's worker gets its own values of all variables."""

STARTING_SECONDS = 300.0
"""How long a new process may take to import TensorFlow and TFX."""

ANSWER_SECONDS = 10.0
"""How long one that has imported them may take to answer, before a worker of its own is started for the run."""

PAUSE_SECONDS = 0.05

WORKER = (sys.executable, "-W", "ignore", "-m", "pipeline.run.worker")
STANDBY = (sys.executable, "-W", "ignore", "-m", "pipeline.run.standby")

_started: list[subprocess.Popen[bytes]] = []
"""The processes on standby that this one started, which outlive it."""

CONTROL_GROUP = Path("/proc/self/cgroup")

LONGEST_FOLDER = 60
"""Characters; the path of a socket may have a hundred."""


class Worker(Protocol):
    """The worker of a run: a process that imports TFX at once and runs a pipeline when it is told which."""

    @property
    def exit_code(self) -> int:
        """How it ended: its exit code, or minus the number of the signal that ended it."""

    def begin(self, folder: RunFolder) -> None:
        """Has it run the pipeline that the request in a run's folder asks for."""

    def has_ended(self, seconds: float) -> bool:
        """Waits so long for its end; returns whether it has ended."""

    def close(self) -> None:
        """Kills it, and all that it has started, unless it has ended; returns when it is gone."""


class OwnWorker:
    """A process started for one run.

    Args:
        temporary: The folder for its temporary files. We remove them, because it exits without Python's cleanup.
    """

    def __init__(self, temporary: Path) -> None:
        self._log = temporary / "worker.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                WORKER,
                cwd=project.root(),
                env={**os.environ, "TMPDIR": str(temporary)},
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=log,
                # In a process group of its own: Ctrl-C reaches this process first, which then kills the whole group.
                start_new_session=True,
            )

    @property
    def exit_code(self) -> int:
        """See `Worker`."""
        return int(self._process.returncode)

    def begin(self, folder: RunFolder) -> None:
        """See `Worker`."""
        self._folder = folder
        with suppress(BrokenPipeError), cast(IO[bytes], self._process.stdin) as told:
            # If it has ended, its exit code and log tell why.
            told.write(f"{folder.request_path}\n".encode())

    def has_ended(self, seconds: float) -> bool:
        """See `Worker`."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        # What it said before it knew of the run's folder.
        if (said := self._log.read_bytes()) and self.exit_code:
            with self._folder.worker_log.open("ab") as log:
                log.write(said)
        return True

    def close(self) -> None:
        """See `Worker`."""
        if self._process.poll() is None:
            kill_group(self._process.pid)
            self._process.wait()
        cast(IO[bytes], self._process.stdin).close()


class ForkedWorker:
    """A worker that a process on standby forks.

    Args:
        connection: To that process.
        temporary: The folder for its temporary files.
        patience: How many seconds that process may take to answer.
    """

    def __init__(self, connection: socket.socket, temporary: Path, patience: float) -> None:
        self._connection = connection
        self._temporary = temporary
        self._patience = patience
        self._pid: int | None = None
        self._exit_code: int | None = None
        self._own: OwnWorker | None = None

    @property
    def exit_code(self) -> int:
        """See `Worker`."""
        return self._own.exit_code if self._own else int(self._exit_code or 0)

    def begin(self, folder: RunFolder) -> None:
        """See `Worker`; if no process on standby answers, it starts one for this run."""
        request = {"request": str(folder.request_path), "environ": {**os.environ, "TMPDIR": str(self._temporary)}}
        try:
            self._connection.settimeout(self._patience)
            if self._line() != READY:
                raise ConnectionError
            self._connection.sendall(json.dumps(request).encode() + b"\n")
        except OSError:
            self._connection.close()
            self._own = OwnWorker(self._temporary)
            self._own.begin(folder)
            return
        self._connection.settimeout(None)
        self._pid = json.loads(self._line() or b'{"pid": null}')["pid"]

    def has_ended(self, seconds: float) -> bool:
        """See `Worker`."""
        if self._own is not None:
            return self._own.has_ended(seconds)
        if self._exit_code is not None:
            return True
        if not select.select([self._connection], [], [], seconds)[0]:
            return False
        line = self._line()
        if not line:
            # The process on standby was ended, and its workers end with it.
            self._await_end()
        self._exit_code = json.loads(line)["code"] if line else -signal.SIGKILL
        return True

    def close(self) -> None:
        """See `Worker`."""
        if self._own is not None:
            self._own.close()
        elif self._pid is not None and self._exit_code is None:
            # It is killed by its parent, which knows best whether it still is there.
            self._connection.shutdown(socket.SHUT_WR)
            if not self.has_ended(ANSWER_SECONDS):
                self._await_end()
            self._exit_code = -signal.SIGKILL
        self._connection.close()

    def _line(self) -> bytes:
        """The next line of the process on standby; empty if it has none, because it is gone."""
        line = b""
        with suppress(ConnectionError):
            while not line.endswith(b"\n") and (byte := self._connection.recv(1)):
                line += byte
        return line

    def _await_end(self) -> None:
        while self._pid is not None and _is_group(self._pid):
            kill_group(self._pid)
            time.sleep(PAUSE_SECONDS)


def _is_group(pid: int) -> bool:
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    return True


def start(temporary: Path, stay_minutes: float) -> Worker:
    """Starts the worker of a run, which imports TFX meanwhile, or finds a process on standby that has.

    Args:
        temporary: The folder for its temporary files.
        stay_minutes: How long a process on standby stays after this run; with 0 none is looked for, and none stays.
    """
    folder = _sockets() if stay_minutes else None
    if folder is None:
        return OwnWorker(temporary)
    own, others = _names()
    path = folder / f"{others}-{own}.sock"
    connection = _connected(path)
    if connection is not None:
        return ForkedWorker(connection, temporary, ANSWER_SECONDS)
    for other in folder.glob(f"{others}-*.sock"):
        dismiss(other)
    _start_standby(path, stay_minutes)
    connection = _connected(path)
    return ForkedWorker(connection, temporary, STARTING_SECONDS) if connection else OwnWorker(temporary)


def dismiss(path: Path) -> None:
    """Has a process on standby end, after the runs that it is running."""
    connection = _connected(path)
    if connection is not None:
        with connection, suppress(OSError):
            connection.sendall(DISMISSED)
    path.unlink(missing_ok=True)


def _start_standby(path: Path, minutes: float) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        # Under a name of its own first: of two that begin at once, the last is found from now on.
        new = path.with_suffix(f".{os.getpid()}")
        new.unlink(missing_ok=True)
        listener.bind(str(new))
        listener.listen()
        os.replace(new, path)
        process = subprocess.Popen(
            [*STANDBY, str(listener.fileno()), str(path), str(minutes)],
            cwd=project.root(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=(listener.fileno(),),
        )
    _started.append(process)


def _connected(path: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        return None
    return connection


def _sockets() -> Path | None:
    """This user's folder for sockets; None if it is not this user's alone, or its path is too long for a socket."""
    folder = Path(tempfile.gettempdir(), f"millrace-standby-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    private = status.st_uid == os.getuid() and stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077
    return folder if private and len(str(folder)) <= LONGEST_FOLDER else None


def _names() -> tuple[str, str]:
    """Two digests: of all that a process on standby has imported, and of whom it is for."""
    place = [str(project.root()), str(project.ENGINE), sys.executable]
    limits = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    imported = [
        *place,
        sys.version,
        sys.path,
        [_states(project.ENGINE / package, ".py") for package in project.PACKAGES],
        [_states(Path(folder), ".dist-info", deep=False) for folder in sys.path if folder],
        sorted(item for item in os.environ.items() if item[0] not in TERMINALS),
        # What a process inherits.
        [resource.getrlimit(getattr(resource, name)) for name in limits],
        sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [],
        os.getpriority(os.PRIO_PROCESS, 0),
        CONTROL_GROUP.read_text() if CONTROL_GROUP.exists() else "",
    ]
    return _digest(imported), _digest(place)


def _states(folder: Path, ending: str, deep: bool = True) -> list[tuple[str, int, int]]:
    """The path, size and modification time of the entries in a folder whose names end so."""
    states = []
    waiting = [str(folder)] if folder.is_dir() else []
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(ending):
                    status = entry.stat()
                    states.append((entry.path, status.st_size, status.st_mtime_ns))
                elif deep and entry.is_dir() and entry.name != "__pycache__":
                    waiting.append(entry.path)
    return sorted(states)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:12]
