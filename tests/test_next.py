"""When `make test-next` does not test, and what it says then."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
OLD_GLIBC = "TFX 1.21's packages need glibc 2.39 and this system has glibc 2.36"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """The PATH of a system with an old glibc, root, the right to mount, and nothing else."""
    scripts, programs = tmp_path / "scripts", tmp_path / "bin"
    scripts.mkdir()
    programs.mkdir()
    for script in ("test_next.sh", "system.sh"):
        shutil.copy(PROJECT / "scripts" / script, scripts)
    for tool in ("bash", "dirname", "mkdir", "flock", "tail", "rm"):
        found = shutil.which(tool)
        assert found
        (programs / tool).symlink_to(found)
    has(programs, "uname", '[ "$1" = -s ] && echo Linux || echo x86_64')
    has(programs, "getconf", "echo glibc 2.36")
    has(programs, "id", "echo 0")
    has(programs, "git", "exit 0")
    # What is run apart from the system's mounts and processes: here it is run as it is.
    has(programs, "setpriv", 'while [ "$1" != private ]; do shift; done; shift; "$@"')
    has(programs, "true", "exit 0")
    return programs


def has(programs: Path, name: str, script: str) -> None:
    path = programs / name
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def printed(programs: Path) -> str:
    """What it prints; it must end with 0 and have made no root."""
    script = programs.parent / "scripts" / "test_next.sh"
    ended = subprocess.run(["bash", script], env={"PATH": str(programs)}, capture_output=True, text=True)

    assert (ended.stderr, ended.returncode) == ("", 0)
    assert not (programs.parent / ".trixie" / "root").exists()
    return ended.stdout


def test_where_the_newer_set_can_be_had_it_is_make_test(programs: Path) -> None:
    has(programs, "getconf", "echo glibc 2.41")

    assert printed(programs) == "test-next: this system can have TFX 1.21 itself: `make test` tests it.\n"


@pytest.mark.parametrize(
    ("program", "script", "says"),
    [
        ("id", "echo 1000", f"{OLD_GLIBC}, and a Debian 13 for it needs root"),
        (
            "setpriv",
            "exit 1",
            f"{OLD_GLIBC}, and a Debian 13 for it needs the right to mount, which this container lacks",
        ),
        (
            "apt-get",
            "exit 100",
            f"{OLD_GLIBC}, and debootstrap, which makes a Debian 13 for it, is missing and could not be installed",
        ),
        (
            "uname",
            '[ "$1" = -s ] && echo Darwin || echo x86_64',
            "TFX 1.21 has no packages for Darwin on x86_64, and a Debian 13 for it needs Linux on x86-64",
        ),
    ],
)
def test_what_is_missing_is_named(programs: Path, program: str, script: str, says: str) -> None:
    has(programs, program, script)

    assert printed(programs) == f"test-next: skipped: {says}. The tests did not run on TFX 1.21.\n"


def test_a_mirror_that_does_not_answer_is_named(programs: Path) -> None:
    has(programs, "debootstrap", "echo 'E: Failed getting release file'; exit 1")

    assert printed(programs).splitlines()[-1] == (
        "test-next: skipped: a Debian 13 could not be had from Debian's mirror; .trixie/making.log ends: "
        "E: Failed getting release file. The tests did not run on TFX 1.21."
    )
