"""The versions of everything that did the run's work: packages, and the project's own code."""

from __future__ import annotations

from dataclasses import dataclass

from metadata.differences import Change
from metadata.report.source import Source, Surroundings


@dataclass(frozen=True)
class Package:
    """An installed package.

    Attributes:
        name: Its name.
        version: Its version.
        before: Its version in the run before, where that was another one; else empty.
    """

    name: str
    version: str
    before: str


@dataclass(frozen=True)
class Code:
    """The project's code that a node reached.

    Attributes:
        node: The node.
        digest: One digest for all its files.
        files: How many these are.
    """

    node: str
    digest: str
    files: int


@dataclass(frozen=True)
class Versions:
    """What did the work.

    Attributes:
        packages: By name.
        code: By node, in the order they began.
        changed: Source files that differ from the run before, with their digests.
        previous: The id of the run before; empty where there is none.
    """

    packages: list[Package]
    code: list[Code]
    changed: list[Change]
    previous: str


def read(source: Source, _surroundings: Surroundings) -> Versions | None:
    """Reads them; None where no node recorded any."""
    if not source.fingerprints:
        return None
    before = source.previous
    packages, earlier = _packages(source), _packages(before) if before else {}
    return Versions(
        packages=[
            Package(name, version, earlier[name] if earlier.get(name, version) != version else "")
            for name, version in sorted(packages.items(), key=lambda found: found[0].lower())
        ],
        code=[
            Code(node, found.code_digest, len(found.code)) for node, found in source.fingerprints.items() if found.code
        ],
        changed=_changed(source, before) if before else [],
        previous=before.run.id if before else "",
    )


def _packages(source: Source) -> dict[str, str]:
    """Those that nodes rest on, and those that the model's card tells of."""
    found = [each.packages for each in source.fingerprints.values()]
    found += [source.card.versions] if source.card else []
    # A distribution has one name, however it is written.
    return {name.replace("_", "-"): version for each in found for name, version in each.items()}


def _changed(now: Source, before: Source) -> list[Change]:
    """The files that differ, of nodes that both runs came to."""
    found: dict[str, Change] = {}
    for node in now.fingerprints.keys() & before.fingerprints.keys():
        new, old = now.fingerprints[node].code, before.fingerprints[node].code
        names = new.keys() | old.keys()
        found |= {name: Change(name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)}
    return [found[name] for name in sorted(found)]
