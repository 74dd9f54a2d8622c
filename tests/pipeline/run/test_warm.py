"""Commands in processes forked from one that has already imported what they need."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.plan.project import ENGINE
from pipeline.run import warm

SCRIPT = """
import json, os, sys
from pathlib import Path
from pipeline.run import warm
warm.PRELOADED = "colorsys"
warm.prepare()
print(json.dumps([warm.start(words, {"PATH": os.environ["PATH"], "GIVEN": "1"}, Path(sys.argv[1])).wait() for words in (
    ["millrace", "recipes"], ["millrace", "show", "nowhere"], ["sh", "-c", "echo not ours $GIVEN; exit 7"],
)]))
"""


def test_commands_of_ours_are_forked_and_others_are_not(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "log")],
        cwd=ENGINE,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[0, 2, 7]\n", "")
    log = (tmp_path / "log").read_text()
    assert log.startswith("cifar10  ")
    assert "error: no recipe named 'nowhere'" in log
    assert log.endswith("not ours 1\n")


def test_without_a_process_to_fork_from_it_is_a_process_of_its_own(tmp_path: Path) -> None:
    stopped = warm.start(["sh", "-c", "kill -TERM $$"], os.environ)
    assert stopped.wait() == -signal.SIGTERM
    log = tmp_path / "log"
    log.write_text("before\n")
    assert warm.start(["sh", "-c", "echo out; echo error >&2; exit 3"], os.environ, log).wait() == 3
    assert log.read_text() == "before\nout\nerror\n"


def test_a_millrace_that_comes_first_on_the_path_is_the_one_that_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "millrace"
    program.write_text("#!/bin/sh\nexit 9\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(warm, "_method", "fork")
    assert warm.start(["millrace", "recipes"], os.environ).wait() == 9
