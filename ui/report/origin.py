"""Where the model comes from: its lineage up to the raw files, the settings, and the versions of packages and code."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from contracts.fingerprints import Fingerprint
from metadata import lineage
from metadata.lineage import Step
from metadata.records import QUIET_NODES, ArtifactRecord
from metadata.values import fingerprint_of
from ui.charts import Graph, Node
from ui.links import Links
from ui.parts import Bullets, Column, Heading, Parts, Table, Text
from ui.report.source import Source, Surroundings
from ui.texts import Inline, code, count, dim, line, link, listed, state

MOST_FILES_DRAWN = 5


def lineage_section(source: Source, surroundings: Surroundings) -> Parts:
    """What the model was made from: the node runs that contributed to it, oldest first, and the raw files."""
    links = surroundings.links
    model = source.artifact("Trainer", "model")
    traced = None if model is None else lineage.trace(source.store, model.id)
    if model is None or traced is None:
        return []
    steps = [step for _id, step in sorted(traced.steps.items()) if step.place.node not in QUIET_NODES]
    needed = {number for step in steps for ids in step.inputs.values() for number in ids} | {model.id}
    artifacts = {number: artifact for number, artifact in traced.artifacts.items() if number in needed}
    files = [(file, step.place, digest) for step in steps for file, digest in _fingerprint(step).files.items()]
    model_link = link(model.id, links.lineage(model.id))

    def named(ids: dict[str, tuple[int, ...]]) -> Inline:
        shown = [(name, number) for name, numbers in ids.items() for number in numbers if number in artifacts]
        return listed(link(f"{name} {number}", links.artifact(number)) for name, number in shown)

    return [
        Text(line("Model ", model_link, " in ", code(model.uri), ", and everything that it was made from.")),
        lineage_graph("What the model was made from", artifacts, steps, model.id, links.artifact, links, files=True),
        Table(
            "What the model was made from",
            steps,
            [
                Column("Node", lambda step: step.place.node),
                Column("Run", lambda step: link(step.place.run or "", links.run(step.place.run or ""))),
                Column("Took", lambda step: named(step.inputs)),
                Column("Made", lambda step: named(step.outputs)),
                Column("Code", lambda step: _code(_fingerprint(step))),
                Column("Packages", lambda step: ", ".join(map(" ".join, _fingerprint(step).packages.items()))),
            ],
        ),
        *(_raw_files(files) if files else []),
        None if traced.whole else Text("There is more: the walk ended here."),
    ]


def lineage_graph(
    title: str,
    artifacts: dict[int, ArtifactRecord],
    steps: Iterable[Step],
    current: int,
    page: Callable[[int], str],
    links: Links,
    *,
    files: bool = False,
    states: dict[str, str] | None = None,
) -> Graph:
    """Artifacts and node runs as a graph, in the direction in which the data flowed.

    Args:
        title: What it shows.
        artifacts: The artifacts to draw, by id.
        steps: The node runs to draw.
        current: The id of the artifact that the page is about.
        page: The address of an artifact.
        links: Links to node runs.
        files: Whether to draw the raw files that node runs read, too.
        states: Words for the states of node runs; None: no states are shown.
    """
    nodes = [
        Node(f"a{number}", artifact.type, str(number), shape="artifact", href=page(number), current=number == current)
        for number, artifact in artifacts.items()
    ]
    edges: list[tuple[str, str]] = []
    for step in steps:
        name, node, run = f"n{step.node_run.id}", step.place.node, step.place.run or ""
        word = states[step.node_run.state] if states else ""
        nodes.append(Node(name, node, run, word, href=links.node(run, node) if run else ""))
        edges += [(f"a{number}", name) for ids in step.inputs.values() for number in ids if number in artifacts]
        edges += [(name, f"a{number}") for ids in step.outputs.values() for number in ids if number in artifacts]
        read = _file_nodes(step) if files else []
        nodes += read
        edges += [(file.id, name) for file in read]
    return Graph(title, nodes, list(dict.fromkeys(edges)))


def _file_nodes(step: Step) -> list[Node]:
    """The raw files that a node run read; if there are many, only their number."""
    files = _fingerprint(step).files
    execution = step.node_run.id
    if len(files) > MOST_FILES_DRAWN:
        return [Node(f"f{execution}", count(len(files), "file"), shape="artifact")]
    return [
        Node(f"f{execution}.{place}", path.rpartition("/")[2], digest[:16], shape="artifact")
        for place, (path, digest) in enumerate(files.items())
    ]


def _raw_files(files: list[Any]) -> Parts:
    columns = [
        Column("File", lambda row: row[0]),
        Column("Read by", lambda row: f"{row[1].node} of {row[1].run or ''}"),
        Column("SHA-256", lambda row: code(row[2])),
    ]
    return [Heading("Raw files"), Table("Raw files", files, columns)]


def _fingerprint(step: Step) -> Fingerprint:
    return fingerprint_of(step.node_run) or Fingerprint()


def _code(made_with: Fingerprint) -> Inline:
    return line(code(made_with.code_digest), " ", count(len(made_with.code), "file")) if made_with.code else ""


@dataclass(frozen=True)
class Setting:
    """A setting.

    Attributes:
        key: Its dotted key.
        value: As JSON; None if only the previous run has it.
        before: The value in the previous run; None if only this run has it.
        differs: Whether these differ; False if there is no previous run.
    """

    key: str
    value: str | None
    before: str | None
    differs: bool


def settings_section(source: Source, surroundings: Surroundings) -> Parts:
    """The run's settings by key, those that differ from the previous run's first."""
    before = source.previous.fingerprints if source.previous else {}
    settings: dict[str, Setting] = {}
    for node, fingerprint in source.fingerprints.items():
        # A node that the previous run did not reach has no settings there, which does not count as a change.
        earlier = before[node].settings if node in before else None
        settings |= {setting.key: setting for setting in _compared(fingerprint.settings, earlier)}
    if not settings:
        return []
    different = sum(setting.differs for setting in settings.values())

    def earlier_value(setting: Setting) -> Inline:
        return line(_value(setting.before), " ", state("differs", "warning")) if setting.differs else ""

    return [
        Text(_difference(source, different, surroundings.links)),
        Table(
            "Settings",
            sorted(settings.values(), key=lambda setting: (not setting.differs, setting.key)),
            [
                Column("Setting", lambda setting: setting.key),
                Column("Value", lambda setting: _value(setting.value)),
                Column("In the run before", earlier_value, when=bool(different)),
            ],
            filter="settings",
        ),
    ]


def _difference(source: Source, different: int, links: Links) -> Inline:
    if source.previous is None:
        return "It is the first run."
    run, previous = source.run.id, source.previous.run.id
    if not different:
        return line("No setting differs from ", link(f"run {previous}", links.run(previous)), ".")
    differ = count(different, "setting differs", "settings differ")
    return line(differ, " from ", link(f"run {previous}", links.difference(previous, run)), ".")


def _value(value: str | None) -> Inline:
    return dim("not there") if value is None else code(value)


def _compared(now: dict[str, Any], before: dict[str, Any] | None) -> list[Setting]:
    if before is None:
        return [Setting(key, _text(value), None, differs=False) for key, value in now.items()]
    keys = [*now, *(key for key in before if key not in now)]
    return [
        Setting(
            key,
            _text(now[key]) if key in now else None,
            _text(before[key]) if key in before else None,
            differs=key not in now or key not in before or now[key] != before[key],
        )
        for key in keys
    ]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def versions_section(source: Source, _surroundings: Surroundings) -> Parts:
    """The versions of the packages and the code that did the run's work."""
    if not source.fingerprints:
        return []
    before = source.previous
    previous = before.run.id if before else ""
    packages, earlier = _packages(source), _packages(before) if before else {}
    newer = {name for name, version in packages.items() if earlier.get(name, version) != version}
    changed = _changed_files(source, before) if before else []

    def version_before(name: str) -> Inline:
        return line(earlier[name], " ", state("differs", "warning")) if name in newer else ""

    return [
        Table(
            "Packages",
            sorted(packages, key=str.lower),
            [
                Column("Package", str),
                Column("Version", packages.get),
                Column(f"In {previous}", version_before, when=bool(newer)),
            ],
        ),
        Heading("Code"),
        Table(
            "Code by node",
            [(node, made_with) for node, made_with in source.fingerprints.items() if made_with.code],
            [
                Column("Node", lambda row: row[0]),
                Column("Digest", lambda row: code(row[1].code_digest)),
                Column("Files", lambda row: len(row[1].code), "number"),
            ],
        ),
        Heading(f"Source files that differ from {previous}") if changed else None,
        Bullets(changed) if changed else None,
    ]


def _packages(source: Source) -> dict[str, str]:
    """The packages that nodes depend on, and those recorded in the model's card."""
    recorded = [each.packages for each in source.fingerprints.values()]
    recorded += [source.card.versions] if source.card else []
    # `-` and `_` are the same in a distribution's name.
    return {name.replace("_", "-"): version for each in recorded for name, version in each.items()}


def _changed_files(now: Source, before: Source) -> list[Inline]:
    """The source files that differ, of nodes that both runs reached."""
    changes: dict[str, str] = {}
    for node in now.fingerprints.keys() & before.fingerprints.keys():
        new, old = now.fingerprints[node].code, before.fingerprints[node].code
        for name in new.keys() | old.keys():
            if old.get(name) != new.get(name):
                changes[name] = ", new" if name not in old else ", no longer used" if name not in new else ""
    return [line(code(name), changes[name]) for name in sorted(changes)]
