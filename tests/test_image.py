"""The image: its sources exist and are pinned, and it starts the command that it is given."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
DOCKERFILE = (PROJECT / "Dockerfile").read_text(encoding="utf-8")
ENTRYPOINT = PROJECT / "scripts" / "entrypoint.sh"
PINNED = re.compile(r"^([a-z0-9][a-z0-9.-]*==\S+)(?: ; [^\\]+)? \\((?:\n    --hash=\S+(?: \\)?)+)", re.MULTILINE)


def pinned(lock: str) -> dict[str, set[str]]:
    """Package and version -> its hashes."""
    text = (PROJECT / lock).read_text(encoding="utf-8")
    return {match[1]: set(re.findall(r"sha256:\w+", match[2])) for match in PINNED.finditer(text)}


def test_its_packages_are_the_locked_ones_without_those_of_development() -> None:
    everything, runtime = pinned("requirements-tfx-1.21.lock"), pinned("requirements.runtime.lock")

    assert runtime.items() <= everything.items()
    names = {package.partition("==")[0] for package in runtime}
    assert {"tfx", "tensorflow", "apache-beam", "kfp"} <= names
    assert not names & {"pytest", "playwright", "ruff", "uv"}


def test_what_it_copies_is_there_and_not_kept_back() -> None:
    ignore = (PROJECT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = [
        source
        for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE)
        for source in line.split()[:-1]
    ]

    assert [source for source in copied if not (PROJECT / source).exists()] == []
    assert "*" in ignore
    assert [source for source in copied if f"!{source}" not in ignore] == []


def test_it_has_all_rooms_of_the_project() -> None:
    rooms = {path.parent.name for path in PROJECT.glob("*/__init__.py")} - {"benchmarks", "tests"}

    assert rooms
    assert [room for room in rooms if f"COPY {room} {room}\n" not in DOCKERFILE] == []


def test_its_bases_are_one_python_of_the_newer_set_and_its_beam() -> None:
    [beam] = [
        package.partition("==")[2]
        for package in pinned("requirements.runtime.lock")
        if package.startswith("apache-beam==")
    ]
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    stages = set(re.findall(r"^FROM \S+ AS (\S+)", DOCKERFILE, re.MULTILINE))
    workers, builder, slim = [base for base in bases if base not in stages]

    # Debian 13, whose glibc the newer set's packages need.
    python = re.fullmatch(r"python:(3\.1[123])\.\d+-slim-trixie", slim)
    assert python is not None
    assert builder == slim.replace("-slim", "")
    assert workers == f"apache/beam_python{python[1]}_sdk:{beam}"


def test_it_runs_as_nobody_special() -> None:
    *_, engine, project = DOCKERFILE.split("\nFROM ")

    assert re.findall(r"^USER (.+)$", engine, re.MULTILINE) == ["1000:1000"]
    assert engine.index("USER 1000:1000") > engine.rindex("\nRUN ")
    assert project.startswith("engine\n")
    assert "RUN " not in project
    assert "USER " not in project


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (("--id=1-1", "--control_endpoint=a b"), "boot|--id=1-1|--control_endpoint=a b|"),
        (("--worker_pool",), "boot|--worker_pool|"),
        (("printf", "%s|", "node", "run it"), "node|run it|"),
    ],
)
def test_beams_flags_start_beams_worker_and_words_are_a_command(
    tmp_path: Path, words: tuple[str, ...], printed: str
) -> None:
    boot = tmp_path / "boot"
    boot.write_text("#!/bin/sh\nprintf '%s|' boot \"$@\"\n", encoding="utf-8")
    boot.chmod(0o755)

    ended = subprocess.run(
        [ENTRYPOINT, *words], env={"PATH": "/usr/bin:/bin", "BEAM_BOOT": str(boot)}, capture_output=True, text=True
    )

    assert (ended.stdout, ended.stderr, ended.returncode) == (printed, "", 0)


def test_an_exit_code_is_the_commands_own() -> None:
    assert subprocess.run([ENTRYPOINT, "sh", "-c", "exit 75"]).returncode == 75
