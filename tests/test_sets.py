"""docs/sets.md says what the locks, setup.py and set-up are; and the locks say what setup.py asks for."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parent.parent
PAGE = (PROJECT / "docs" / "sets.md").read_text(encoding="utf-8")
SETUP = (PROJECT / "setup.py").read_text(encoding="utf-8")
SYSTEM = (PROJECT / "scripts" / "system.sh").read_text(encoding="utf-8")
OLDER, NEWER = 0, 1
SETS = pytest.mark.parametrize("which", [OLDER, NEWER])


def rows() -> dict[str, tuple[str, str]]:
    """The page's table: what a row is about -> the older set's, the newer set's."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line[:1] == "|"]
    return {name: (older, newer) for name, older, newer in cells[2:]}


def assigned(name: str) -> Any:
    """The literal that setup.py assigns to a name."""
    [node] = [
        node.value
        for node in ast.parse(SETUP).body
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [name]
    ]
    return ast.literal_eval(node)


def locked(which: int) -> dict[str, str]:
    """Package -> version in the lock that the page names."""
    text = (PROJECT / rows()["Lock"][which].strip("`")).read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9][a-z0-9.-]*)==([^\s;]+)", text, re.MULTILINE))


@SETS
def test_the_tables_versions_are_the_locks(which: int) -> None:
    versions = {name: pair[which] for name, pair in rows().items() if re.fullmatch("[a-z-]+", name)}

    assert {"tfx", "tensorflow", "apache-beam", "kfp", "protobuf", "numpy"} <= versions.keys()
    assert {name: locked(which)[name] for name in versions} == versions


@SETS
def test_the_locks_are_of_the_releases_that_setup_py_asks_for(which: int) -> None:
    asked = {name.partition("[")[0]: pair[which] for name, pair in assigned("SETS").items()}

    assert {name: ".".join(locked(which)[name].split(".")[:2]) for name in asked} == asked


def test_the_tables_pythons_are_setup_pys_and_set_ups() -> None:
    older, newer = ([tuple(map(int, version.split("."))) for version in cell.split(", ")] for cell in rows()["Python"])
    [lowest, above] = re.findall(r'python_requires=">=3\.(\d+),<3\.(\d+)"', SETUP)[0]

    assert sorted(older + newer) == [(3, minor) for minor in range(int(lowest), int(above))]
    assert all(version < (3, 11) for version in older)
    assert all(version >= (3, 11) for version in newer)
    [taken] = re.findall(r'if \[ "\$1" = 1\.16 \]; then echo ([\d. ]+); else echo ([\d. ]+); fi', SYSTEM)
    assert tuple(taken) == tuple(cell.replace(",", "") for cell in rows()["Python"])


def test_the_tables_systems_are_set_ups() -> None:
    older, newer = rows()["Linux on x86-64"]

    for tfx, cell in (("1.16", older), ("1.21", newer)):
        [needed] = re.findall(rf'"{re.escape(tfx)} Linux on x86_64"\) needed="(.+)"', SYSTEM)
        assert cell.partition(":")[0] == needed
    [macos] = re.findall(r'"1\.21 Darwin on arm64" \| "1\.16 Darwin on x86_64"\) needed="macOS (\d+)\.0"', SYSTEM)
    assert rows()["macOS"] == (f"{macos}, on Intel", f"{macos}, on Apple Silicon")
