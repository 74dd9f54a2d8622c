"""The jars that the cluster runs, brought by Maven once, and the Java that runs them."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

from components.errors import MillraceError

POM = Path(__file__).with_name("pom.xml")
GOAL = "dependency:copy-dependencies"
STAMP = "pom.sha256"
LEAST_JAVA, MOST_JAVA = 11, 17
GET_JAVA = "Install one: apt-get install openjdk-17-jre-headless (Debian), brew install openjdk@17 (macOS)."
GET_MAVEN = "Install it: apt-get install maven (Debian), brew install maven (macOS)."


def java() -> str:
    """The path of Java.

    Raises:
        MillraceError: There is none, or Flink does not run on it.
    """
    path = shutil.which("java")
    said = _output([path, "-version"]) if path else ""
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    if path is None or found is None:
        raise MillraceError("Flink needs Java 17; there is no java in the PATH that starts.", GET_JAVA)
    if not LEAST_JAVA <= int(found[1]) <= MOST_JAVA:
        raise MillraceError(f"Flink 1.19 runs on Java 11 to 17; {path} is Java {found[1]}.", GET_JAVA)
    return path


def fetch(folder: Path) -> None:
    """Brings the jars into a folder, unless they are there.

    Raises:
        MillraceError: There is no Maven, or it failed.
    """
    digest = hashlib.sha256(POM.read_bytes()).hexdigest()
    stamp = folder / STAMP
    if stamp.exists() and stamp.read_text(encoding="ascii") == digest:
        return
    maven = shutil.which("mvn")
    if maven is None:
        raise MillraceError("Flink's jars come by Maven; there is no mvn in the PATH.", GET_MAVEN)
    print("flink: bringing Flink's jars by Maven (about 150 MB, once)", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    ended = subprocess.run(
        [maven, "--quiet", "--batch-mode", "--file", str(POM), GOAL, f"-DoutputDirectory={folder.absolute()}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        errors = [line for line in (ended.stdout + ended.stderr).splitlines() if "ERROR" in line]
        shown = "\n".join(errors[:3]) or f"exit code {ended.returncode}"
        raise MillraceError(
            f"Maven could not bring the jars of {POM}:\n{shown}",
            "Check the network, or name a mirror in ~/.m2/settings.xml, and try again.",
        )
    stamp.write_text(digest, encoding="ascii")


def _output(command: list[str]) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.stdout + ended.stderr
