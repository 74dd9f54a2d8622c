"""Runs our own commands in processes that have already imported TFX.

A rehearsal runs a dozen of them on one machine, and importing TFX would take each of them several seconds. Here they
are forked from a process that has imported it, Python's fork server; from there on they do what the command line does.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Literal, Protocol, cast

PROGRAM = "millrace"

ENTRY = "pipeline.cli"
"""The program's module, imported by name because this room may not import the command line above it."""

PRELOADED = "pipeline.commands.warm_imports"

_method: Literal["fork", "forkserver"] | None = None
"""How this process starts warm ones, by multiprocessing's names; None if it cannot."""


class Command(Protocol):
    """A running command."""

    def send_signal(self, number: int) -> None:
        """Sends it a signal."""

    def wait(self) -> int:
        """Waits for its end; returns its exit code, or minus the number of the signal that ended it."""


class _Forked:
    """A forked process, with the interface of `subprocess.Popen`."""

    def __init__(self, process: BaseProcess) -> None:
        self._process = process
        process.start()

    def send_signal(self, number: int) -> None:
        if self._process.is_alive() and self._process.pid is not None:
            os.kill(self._process.pid, number)

    def wait(self) -> int:
        self._process.join()
        return cast(int, self._process.exitcode)


def prepare() -> None:
    """Starts the process that others are forked from; it imports TFX in the background."""
    global _method
    multiprocessing.get_context("forkserver").set_forkserver_preload([PRELOADED])
    forkserver.ensure_running()
    _method = "forkserver"


def start(words: Sequence[str], environ: Mapping[str, str], log: Path | None = None) -> Command:
    """Starts a command; warm if it is ours and this process is warm itself or has called `prepare`.

    Args:
        words: The command.
        environ: Its environment.
        log: The file to which its output is appended; None: the output of this process.
    """
    if _method is None or not _is_ours(words[0]):
        with ExitStack() as stack:
            output = stack.enter_context(log.open("ab")) if log else None
            return subprocess.Popen(words, env=environ, stdout=output, stderr=output)
    arguments = (list(words[1:]), dict(environ), log)
    if _method == "fork":
        return _Forked(multiprocessing.get_context("fork").Process(target=_work, args=arguments))
    return _Forked(multiprocessing.get_context("forkserver").Process(target=_work, args=arguments))


def _is_ours(program: str) -> bool:
    """Whether a command is this program, and not another that comes before it on the user's PATH."""
    path = shutil.which(program)
    return program == PROGRAM and (path is None or Path(path).parent == Path(sys.executable).parent)


def _work(arguments: list[str], environ: dict[str, str], log: Path | None) -> None:
    """Runs the command in the forked process, and exits as the worker does, without Python's cleanup."""
    # Not the handlers of the process that forked this one.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    global _method
    _method = "fork"
    os.environ.clear()
    os.environ.update(environ)
    if log is not None:
        output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(output, sys.stdout.fileno())
        os.dup2(output, sys.stderr.fileno())
    code = _called(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _called(arguments: list[str]) -> int:
    try:
        import_module(ENTRY).main(arguments, prog_name=PROGRAM)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except Exception:
        traceback.print_exc()
    return 1
