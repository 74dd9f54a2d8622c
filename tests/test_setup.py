"""Which set of versions `scripts/setup.sh` takes on which system, and what it says."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
OLDER, NEWER = "requirements.lock", "requirements-tfx-1.21.lock"
TOOLS = ("bash", "cat", "cp", "cut", "dirname", "ls", "mkdir", "rm", "sed", "sha256sum")

# `uv venv --python PATH FOLDER` makes an environment with that Python; the rest is only written down.
UV = """\
echo "$@" >>calls
case "$1 $2" in
  "python find") exit 1 ;;
  "python install") exit 1 ;;
  "venv --quiet") mkdir -p .venv/bin && cp "$5" .venv/bin/python ;;
esac"""


@dataclass(frozen=True)
class System:
    """A system of which only the tools and Pythons that it is given are in the PATH."""

    folder: Path

    def add(self, program: str, script: str) -> None:
        path = self.folder / "bin" / program
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def is_linux(self, glibc: str, machine: str = "x86_64") -> None:
        self.add("uname", f'[ "$1" = -s ] && echo Linux || echo {machine}')
        self.add("getconf", f"echo glibc {glibc}")

    def is_mac(self, version: str, machine: str = "arm64") -> None:
        self.add("uname", f'[ "$1" = -s ] && echo Darwin || echo {machine}')
        self.add("sw_vers", f"echo {version}")
        self.add("getconf", "exit 1")

    def has_pythons(self, *versions: str) -> None:
        for version in versions:
            self.add(f"python{version}", f"echo {version}")

    def set_up(self, **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs setup.sh; its environment has nothing but the PATH and what is given."""
        return subprocess.run(
            ["bash", "scripts/setup.sh"],
            cwd=self.folder,
            env={"PATH": str(self.folder / "bin")} | environment,
            capture_output=True,
            text=True,
        )

    def calls(self) -> str:
        """What uv was called with, since the last time."""
        path = self.folder / "calls"
        calls = path.read_text(encoding="utf-8") if path.exists() else ""
        path.unlink(missing_ok=True)
        return calls


@pytest.fixture
def system(tmp_path: Path) -> System:
    """With uv and without any Python yet; the project's folder has the scripts, both locks and setup.py."""
    scripts, programs = tmp_path / "scripts", tmp_path / "bin"
    scripts.mkdir()
    programs.mkdir()
    for script in ("setup.sh", "system.sh"):
        shutil.copy(PROJECT / "scripts" / script, scripts)
    for text in (OLDER, NEWER, "setup.py"):
        (tmp_path / text).write_text(f"{text}\n", encoding="utf-8")
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found
        (programs / tool).symlink_to(found)
    system = System(tmp_path)
    system.add("uv", UV)
    return system


@pytest.mark.parametrize(
    ("glibc", "pythons", "says", "lock"),
    [
        ("2.41", ("3.13", "3.10"), "TFX 1.21 on Python 3.13, since this system has glibc 2.41", NEWER),
        ("2.39", ("3.12", "3.11"), "TFX 1.21 on Python 3.12, since this system has glibc 2.39", NEWER),
        (
            "2.36",
            ("3.13", "3.10"),
            "TFX 1.16 on Python 3.10, since TFX 1.21's packages need glibc 2.39 and this system has glibc 2.36",
            OLDER,
        ),
        (
            "2.41",
            ("3.14", "3.10"),
            "TFX 1.16 on Python 3.10, since TFX 1.21 needs Python 3.13, 3.12, 3.11, of which there is none",
            OLDER,
        ),
    ],
)
def test_the_newest_set_that_the_system_can_have(
    system: System, glibc: str, pythons: tuple[str, ...], says: str, lock: str
) -> None:
    system.is_linux(glibc)
    system.has_pythons(*pythons)

    ended = system.set_up()

    assert (ended.stderr, ended.returncode) == ("", 0)
    assert ended.stdout == f"setup: {says}\nsetup: making .venv from {lock} (about 3 GB, once)\n"
    assert f"pip sync --quiet --python .venv/bin/python --require-hashes {lock}\n" in system.calls()


def test_a_mac_with_apple_silicon_has_the_newer_set_alone(system: System) -> None:
    system.is_mac("12.6.1")
    system.has_pythons("3.12", "3.10")

    assert system.set_up().stdout.startswith("setup: TFX 1.21 on Python 3.12, since this system has macOS 12.6.1\n")
    assert system.set_up(TFX="1.16").stderr == (
        "setup: TFX 1.16, as asked by TFX=1.16, cannot be had: TFX 1.16 has no packages for Darwin on arm64. Leave "
        "that out for what can be had; docs/sets.md has the systems.\n"
    )


def test_a_mac_with_an_intel_processor_has_the_older_set_alone(system: System) -> None:
    system.is_mac("13.2", machine="x86_64")
    system.has_pythons("3.12", "3.10")

    assert system.set_up().stdout.startswith(
        "setup: TFX 1.16 on Python 3.10, since TFX 1.21 has no packages for Darwin on x86_64\n"
    )


def test_a_system_with_no_packages_is_told_so(system: System) -> None:
    system.is_linux("2.41", machine="aarch64")
    system.has_pythons("3.12")

    ended = system.set_up()

    assert ended.returncode == 1
    assert ended.stderr == (
        "setup: neither set of versions can be had: TFX 1.21 has no packages for Linux on aarch64; TFX 1.16 has no "
        "packages for Linux on aarch64. docs/sets.md has the systems.\n"
    )


@pytest.mark.parametrize(
    ("environment", "tfx", "version"),
    [
        ({"TFX": "1.16"}, "1.16", "3.10"),
        ({"PYTHON": "3.10"}, "1.16", "3.10"),
        ({"PYTHON": "3.11"}, "1.21", "3.11"),
        ({"PYTHON": "bin/python3.11"}, "1.21", "3.11"),
        ({"TFX": "1.21", "PYTHON": "3.11"}, "1.21", "3.11"),
    ],
)
def test_what_is_asked_for_is_taken(system: System, environment: dict[str, str], tfx: str, version: str) -> None:
    system.is_linux("2.41")
    system.has_pythons("3.13", "3.11", "3.10")
    asked = " ".join(f"{name}={value}" for name, value in environment.items())

    assert system.set_up(**environment).stdout.startswith(
        f"setup: TFX {tfx} on Python {version}, as asked by {asked}\n"
    )


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        (
            {"TFX": "1.17"},
            "received TFX=1.17; expected 1.16, 1.21, or nothing for the newest that this system can have.",
        ),
        (
            {"PYTHON": "3.12"},
            "received PYTHON=3.12, and there is no such Python in the PATH, in pyenv or from uv. "
            "Install it, or give its path.",
        ),
        (
            {"PYTHON": "nowhere"},
            "received PYTHON=nowhere; expected a version, such as 3.12, or the path of a Python that runs.",
        ),
        (
            {"PYTHON": "python3.9"},
            "received PYTHON=python3.9, which is Python 3.9; expected 3.13, 3.12, 3.11 (TFX 1.21) or 3.10 (TFX 1.16).",
        ),
        (
            {"TFX": "1.21", "PYTHON": "3.10"},
            "received TFX=1.21 and PYTHON=3.10, which is Python 3.10; TFX 1.21 needs "
            "Python 3.13, 3.12, 3.11. Leave one of them out.",
        ),
        (
            {"PYTHON": "3.11"},
            "TFX 1.21, as asked by PYTHON=3.11, cannot be had: TFX 1.21's packages need glibc 2.39 and "
            "this system has glibc 2.36. Leave that out for what can be had; docs/sets.md has the systems.",
        ),
    ],
)
def test_what_cannot_be_is_refused(system: System, environment: dict[str, str], says: str) -> None:
    system.is_linux("2.36")
    system.has_pythons("3.11", "3.10", "3.9")

    ended = system.set_up(**environment)

    assert (ended.stdout, ended.stderr, ended.returncode) == ("", f"setup: {says}\n", 1)
    assert "pip" not in system.calls()


def test_without_any_python_it_says_what_to_install(system: System) -> None:
    system.is_linux("2.36")

    assert system.set_up().stderr.startswith(
        "setup: TFX 1.16 needs Python 3.10, of which there is none in the PATH, in pyenv or from uv. Install one "
    )


def test_an_environment_is_kept_until_its_lock_changes_or_another_is_asked_for(system: System) -> None:
    system.is_linux("2.41")
    system.has_pythons("3.13", "3.12", "3.10")
    assert system.set_up(TFX="1.16").returncode == 0

    # Neither a newer system nor the other lock is a reason.
    (system.folder / NEWER).write_text("new\n", encoding="utf-8")
    assert [system.set_up(**given).stdout for given in ({}, {"TFX": "1.16"}, {"PYTHON": "3.10"})] == ["", "", ""]

    assert system.set_up(PYTHON="3.12").stdout.startswith("setup: TFX 1.21 on Python 3.12")
    assert system.set_up(TFX="1.21").stdout == ""
    assert system.set_up(TFX="1.16").stdout.startswith("setup: TFX 1.16 on Python 3.10")
    (system.folder / OLDER).write_text("new\n", encoding="utf-8")
    assert system.set_up().stdout.startswith("setup: TFX 1.21 on Python 3.13")


def test_pythons_that_pyenv_hides_are_found(system: System) -> None:
    system.is_linux("2.41")
    shims, version = system.folder / "pyenv" / "shims", system.folder / "pyenv" / "versions" / "3.12.4" / "bin"
    shims.mkdir(parents=True)
    version.mkdir(parents=True)
    (shims / "python3").write_text("#!/bin/sh\nexit 127\n", encoding="utf-8")
    (version / "python").write_text("#!/bin/sh\necho 3.12\n", encoding="utf-8")
    for program in (shims / "python3", version / "python"):
        program.chmod(0o755)

    ended = system.set_up(PATH=f"{shims}:{system.folder / 'bin'}")

    assert ended.stdout.startswith("setup: TFX 1.21 on Python 3.12, ")
