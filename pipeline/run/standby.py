"""The process that stays between runs: it has imported TFX and TensorFlow, started neither, and forks runs' workers.

`python -m pipeline.run.standby DESCRIPTOR PATH MINUTES`, started by `pipeline.run.workers`, which also says whether a
later run may use it. It holds a listening socket and nothing else: no lock, no open store, no module of a recipe. It
ends itself when nobody has used it for some minutes.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import sys
import tempfile
import time
from contextlib import suppress
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any

from pipeline.run.folder import RunFolder, redirect_output
from pipeline.run.lean_imports import lean

READY, DISMISSED = b"ready\n", b"dismissed\n"
"""What a connection is greeted with, and what takes the place of a request to end this process."""

LOOK_SECONDS = 30.0
"""How often it looks whether its socket is still where runs look for it."""

LINE_BYTES = 2**20


class Standby:
    """Answers those who connect: forks a worker for a request and tells its process id, then its exit code.

    Whoever asked closes the connection to have the worker killed.

    Args:
        listener: The socket at which runs ask.
        path: Where they find it.
        idle_seconds: After so long without a run it ends.
    """

    def __init__(self, listener: socket.socket, path: str, idle_seconds: float) -> None:
        self._listener = listener
        self._path = path
        self._inode = os.stat(path).st_ino
        self._idle_seconds = idle_seconds
        self._used = time.monotonic()
        self._selector = selectors.DefaultSelector()
        self._workers: dict[int, socket.socket] = {}
        self._dismissed = False
        self._woken, waker = socket.socketpair()
        for end in (self._woken, waker):
            end.setblocking(False)
        self._waker = waker

    def serve(self) -> None:
        """Serves until nobody has asked for long, or until it is dismissed and its last worker has ended."""
        signal.set_wakeup_fd(self._waker.fileno())
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        while not self._is_over():
            for key, _ in self._selector.select(min(LOOK_SECONDS, self._idle_seconds)):
                if key.fileobj is self._listener:
                    connection, _ = self._listener.accept()
                    with suppress(OSError):  # Whoever only dismisses it does not wait for this.
                        connection.sendall(READY)
                    self._selector.register(connection, selectors.EVENT_READ)
                elif key.fileobj is self._woken:
                    self._woken.recv(LINE_BYTES)
                else:
                    self._hear(key.fileobj)  # type: ignore[arg-type]
            self._reap()
        if self._is_at_its_place():
            os.unlink(self._path)

    def _is_over(self) -> bool:
        if self._workers:
            return False
        idle = time.monotonic() - self._used >= self._idle_seconds
        return self._dismissed or idle or not self._is_at_its_place()

    def _is_at_its_place(self) -> bool:
        try:
            return os.stat(self._path).st_ino == self._inode
        except FileNotFoundError:
            return False

    def _hear(self, connection: socket.socket) -> None:
        try:
            line = connection.recv(LINE_BYTES)
            while line and not line.endswith(b"\n"):
                line += connection.recv(LINE_BYTES)
        except ConnectionError:
            line = b""
        pid = next((pid for pid, asked in self._workers.items() if asked is connection), None)
        if pid is not None:
            self._selector.unregister(connection)
            kill_group(pid)
        elif line in (b"", DISMISSED):
            self._dismissed |= line == DISMISSED
            self._selector.unregister(connection)
            connection.close()
        else:
            self._fork(connection, json.loads(line))

    def _fork(self, connection: socket.socket, request: dict[str, Any]) -> None:
        pid = os.fork()
        if pid == 0:
            try:
                code = self._work(request)
            except BaseException:
                code = 1
                sys.excepthook(*sys.exc_info())
            os._exit(code)
        with suppress(OSError):  # The worker does so, too: whoever is first.
            os.setpgid(pid, pid)
        self._workers[pid] = connection
        _tell(connection, pid=pid)

    def _reap(self) -> None:
        for pid in list(self._workers):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                connection = self._workers.pop(pid)
                _tell(connection, code=os.waitstatus_to_exitcode(status))
                with suppress(KeyError):
                    self._selector.unregister(connection)
                connection.close()
                self._used = time.monotonic()

    def _work(self, request: dict[str, Any]) -> int:
        """Becomes the worker of a run: a process like one that was started for it."""
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        os.environ.clear()
        os.environ.update(request["environ"])
        # Both were computed when this process was started.
        tempfile.tempdir = None
        import_module("numpy").random.seed()
        # The folders of modules may have changed since.
        invalidate_caches()
        path = Path(request["request"])
        with redirect_output(RunFolder(path.parent).worker_log):
            try:
                return int(import_module("pipeline.run.worker").run(path))
            except Exception:
                sys.excepthook(*sys.exc_info())
                return 1


def kill_group(pid: int) -> None:
    """Kills a worker and all that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _tell(connection: socket.socket, **message: int) -> None:
    with suppress(OSError):  # Whoever asked may be gone.
        connection.sendall(json.dumps(message).encode() + b"\n")


def main(descriptor: int, path: str, minutes: float) -> None:
    """Imports TFX, then serves."""
    with lean():
        import_module("pipeline.run.tfx_adapter")
        import_module("pipeline.run.worker")
    Standby(socket.socket(fileno=descriptor), path, minutes * 60).serve()
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
