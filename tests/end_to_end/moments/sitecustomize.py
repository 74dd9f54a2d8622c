"""Python loads this at the start of each process of a disturbed run: it notes the moments at which it writes.

A moment is something that the process is about to do to a file in the run's folder, or before or after a call that
changes the metadata store. Its name holds no run's own numbers, and how often the process has had it before. At the
moment of the name in `CHAOS_KILL` all processes of the run are killed.
"""

import os
import re
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

FOLDER = os.environ.get("CHAOS_FOLDER", "")
NOTES = Path(os.environ.get("CHAOS_NOTES", "."))
KILL = os.environ.get("CHAOS_KILL")

CHANGES = ("os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.link", "os.symlink", "os.truncate")
STORE = "ml_metadata.metadata_store.metadata_store"
WRITING = os.O_WRONLY | os.O_RDWR
HEXADECIMAL = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{16,}")
NUMBER = re.compile(r"\d+")


class Moments:
    """Notes the moments of one process."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._noting = False
        first = "CHAOS_FIRST" not in os.environ
        os.environ.setdefault("CHAOS_FIRST", str(os.getpid()))
        self._process = "front" if first else "worker"
        with (NOTES / "processes").open("a") as processes:
            processes.write(f"{os.getpid()}\n")

    def heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Python's audit hook."""
        if self._noting:
            return
        self._noting = True
        try:
            self._wrap_store()
            if event in CHANGES or (event == "open" and arguments[2] & WRITING):
                path = os.fsdecode(arguments[0]) if isinstance(arguments[0], str | bytes) else ""
                if path.startswith(FOLDER):
                    self._note(f"{event} {os.path.relpath(path, FOLDER)}")
        finally:
            self._noting = False

    def _wrap_store(self) -> None:
        module = sys.modules.get(STORE)
        store = getattr(module, "MetadataStore", None)
        if store is None or hasattr(store, "_call_unheard"):
            return
        store._call_unheard = store._call

        def call(that: Any, method: str, *rest: Any, **options: Any) -> Any:
            changes = method.startswith("Put")
            if changes:
                self._note(f"before {method}")
            answer = that._call_unheard(method, *rest, **options)
            if changes:
                self._note(f"after {method}")
            return answer

        store._call = call

    def _note(self, what: str) -> None:
        name = f"{self._process} {NUMBER.sub('N', HEXADECIMAL.sub('X', what))}"
        self._seen[name] += 1
        moment = f"{name} #{self._seen[name]}"
        with (NOTES / "moments").open("a") as moments:
            moments.write(f"{moment}\n")
        if moment == KILL:
            kill_all()


def kill_all() -> None:
    """Kills the process groups of all processes of the run, this one's last."""
    own = os.getpgid(0)
    groups = {os.getpgid(pid) for pid in map(int, (NOTES / "processes").read_text().split()) if _is_alive(pid)}
    for group in sorted(groups - {own}):
        os.killpg(group, signal.SIGKILL)
    os.killpg(own, signal.SIGKILL)


def _is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


if FOLDER:
    sys.addaudithook(Moments().heard)
