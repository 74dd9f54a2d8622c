"""Flink's jars: of which version of Beam, and when they are downloaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from contracts.errors import MillraceError
from flink import jars

INSTALLED: Mapping[str, str] = {"apache-beam": "2.77.0", "tfx": "1.21.0"}
HAS = """#!/bin/sh
echo "$@" >>{log}
case "$*" in *beam.version=*) {asked} ;; esac
/bin/mkdir -p {folder}
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(jars.metadata, "version", INSTALLED.__getitem__)


def maven(folder: Path, asked: str = "") -> Path:
    """A Maven that makes the folder of the jars; what it does when asked for a version of Beam is given."""
    program = folder / "mvn"
    program.write_text(HAS.format(log=folder / "calls", folder=folder / "jars", asked=asked))
    program.chmod(0o755)
    return folder / "calls"


def test_they_are_brought_once_and_again_when_the_pom_or_beam_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, pom = maven(tmp_path), tmp_path / "pom.xml"
    monkeypatch.setattr(jars, "POM", pom)
    for content, beam, count in (
        ("one", "2.62.0", 1),
        ("one", "2.62.0", 1),
        ("two", "2.62.0", 2),
        ("two", "2.77.0", 3),
    ):
        pom.write_text(content)
        monkeypatch.setattr(jars.metadata, "version", {**INSTALLED, "apache-beam": beam}.__getitem__)
        jars.fetch(tmp_path / "jars")
        assert len(calls.read_text().splitlines()) == count
    assert (
        calls.read_text()
        .splitlines()[-1]
        .endswith(f"-Dbeam.version=2.77.0 dependency:copy-dependencies -DoutputDirectory={tmp_path / 'jars'}")
    )


@pytest.mark.parametrize(
    "says",
    ["Could not find artifact x:2.77.0 in central", "x:2.77.0 was not found in central during a previous attempt"],
)
def test_a_version_that_the_repository_lacks_is_the_poms(tmp_path: Path, says: str) -> None:
    calls = maven(tmp_path, asked=f"echo '[ERROR] {says}'; exit 1")

    jars.fetch(tmp_path / "jars")

    asked, taken = calls.read_text().splitlines()
    assert "-Dbeam.version=2.77.0" in asked
    assert "beam.version" not in taken


def test_what_maven_says_is_told(tmp_path: Path) -> None:
    with pytest.raises(MillraceError, match="there is no mvn in the PATH"):
        jars.fetch(tmp_path / "jars")
    calls = maven(tmp_path, asked="echo '[ERROR] no route to host'; exit 1")
    with pytest.raises(MillraceError, match="no route to host") as caught:
        jars.fetch(tmp_path / "jars")
    assert caught.value.fix is not None
    assert "mirror" in caught.value.fix
    assert len(calls.read_text().splitlines()) == 1
    assert not (tmp_path / "jars").exists()


@pytest.mark.parametrize(
    ("runner", "says"),
    [
        ("2.77.0", "Its runner is Beam 2.77.0's, the version of apache-beam here, 2.77.0 of the set of TFX 1.21.0."),
        (
            "2.62.0",
            "Its runner is Beam 2.62.0's, of flink/pom.xml, as Maven lacks that of apache-beam here, 2.77.0 of the set "
            "of TFX 1.21.0, which it serves, too.",
        ),
    ],
)
def test_it_says_whose_pipelines_they_serve(tmp_path: Path, runner: str, says: str) -> None:
    for name in ("beam-runners-core-java", "beam-runners-flink-1.19", "beam-sdks-java-core"):
        (tmp_path / f"{name}-{runner}.jar").touch()

    assert jars.describe(tmp_path) == says
