"""The jars that run Flink: Beam's Flink runner and what it needs, by Maven."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

from contracts.errors import MillraceError

POM = Path(__file__).with_name("pom.xml")
GOAL = "dependency:copy-dependencies"
STAMP = "pom.sha256"
GET_MAVEN = "Install it: apt-get install maven (Debian), brew install maven (macOS)."
NOT_THERE = ("Could not find artifact", "was not found in")
"""What Maven says of a version that the repository does not have, or not whole: the first time, and again."""


def fetch(folder: Path) -> None:
    """Downloads the jars into a folder, unless they are already there.

    They are those of the installed apache-beam's version where Maven's repository has them all, else of the pom's.

    Raises:
        MillraceError: There is no Maven, or it failed.
    """
    stamp, wanted = folder / STAMP, metadata.version("apache-beam")
    digest = hashlib.sha256(POM.read_bytes() + wanted.encode()).hexdigest()
    if stamp.exists() and stamp.read_text(encoding="ascii") == digest:
        return
    maven = shutil.which("mvn")
    if maven is None:
        raise MillraceError("Flink's jars are downloaded with Maven; there is no mvn in the PATH.", GET_MAVEN)
    print("flink: downloading Flink's jars with Maven (about 150 MB, once)", flush=True)
    errors = _copy(maven, folder, f"-Dbeam.version={wanted}")
    if any(words in errors for words in NOT_THERE):
        errors = _copy(maven, folder)
    if errors:
        raise MillraceError(
            f"Maven could not download the jars of {POM}:\n{errors}",
            "Check the network, or name a mirror in ~/.m2/settings.xml, and try again.",
        )
    stamp.write_text(digest, encoding="ascii")


def _copy(maven: str, folder: Path, *properties: str) -> str:
    """Has Maven copy the jars into a folder, which is emptied before; returns its errors, empty if it did."""
    shutil.rmtree(folder, ignore_errors=True)
    ended = subprocess.run(
        [
            maven,
            "--quiet",
            "--batch-mode",
            "--file",
            str(POM),
            *properties,
            GOAL,
            f"-DoutputDirectory={folder.absolute()}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in (ended.stdout + ended.stderr).splitlines() if "ERROR" in line]
    return ("\n".join(errors[:3]) or f"exit code {ended.returncode}") if ended.returncode else ""


def describe(folder: Path) -> str:
    """One line on whose pipelines the jars in a folder serve, and why."""
    prefix = "beam-runners-core-java-"
    [jar] = folder.glob(f"{prefix}*.jar")
    runner, installed = jar.stem.removeprefix(prefix), metadata.version("apache-beam")
    here = f"apache-beam here, {installed} of the set of TFX {metadata.version('tfx')}"
    if runner == installed:
        return f"Its runner is Beam {runner}'s, the version of {here}."
    return f"Its runner is Beam {runner}'s, of flink/pom.xml, as Maven lacks that of {here}, which it serves, too."
