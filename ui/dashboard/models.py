"""The models, their metrics, and which versions are served."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath
from typing import Any

from markupsafe import Markup

from metadata.queries import INPUTS, OUTPUTS, Queries
from metadata.records import ArtifactRecord, Deployment, MadeArtifact
from metadata.values import artifact_values
from ui.dashboard.artifacts import ARTIFACT, IN_RUN, MADE, empty_note, page_of
from ui.dashboard.files import metrics_of
from ui.dashboard.page import Ask, Page, metric_columns, paging, run_link
from ui.links import URLS
from ui.parts import Column, Commands, Heading, Parts, Section, Table, Text
from ui.texts import Inline, count, line, link, listed, state

MOST_VERSIONS = 25
SERVED, REPLACED, ROLLED_BACK, REMOVED = "served", "replaced", "rolled back", "removed"


@dataclass(frozen=True)
class Version:
    """A pushed version.

    Attributes:
        number: Its number.
        folder: The folder that holds all versions.
        artifact: The id of its PushedModel.
        model: The id of its Model; None if the push did not record it.
        state: `served`; `replaced` by a later push; `rolled back`; or `removed` from the disk.
        restored: The version that a rollback restored as this one, or None.
    """

    number: int
    folder: str
    artifact: int
    model: int | None
    state: str
    restored: str | None


def models_page(store: Queries, ask: Ask) -> Page:
    """A page of models, newest first, and the newest versions."""
    before = ask.number("before")
    shown, older = page_of(store, "Model", before)
    pushed_versions = versions(store.pushed())
    judged = _judged(store, [entry.artifact.id for entry in shown])
    pipelines, deployed = store.pipelines(), store.deployed()

    def metrics(entry: MadeArtifact) -> dict[str, Any]:
        return judged.get(entry.artifact.id, ({}, None))[0]

    def blessed(entry: MadeArtifact) -> bool | None:
        return judged.get(entry.artifact.id, ({}, None))[1]

    def versions_of(entry: MadeArtifact) -> list[Version]:
        return [version for version in pushed_versions if version.model == entry.artifact.id]

    def values(entry: MadeArtifact) -> dict[str, Any]:
        numbers = [{"version": version.number, "state": version.state} for version in versions_of(entry)]
        return artifact_values(entry) | {"metrics": metrics(entry), "blessed": blessed(entry), "versions": numbers}

    def show() -> Parts:
        columns = [
            ARTIFACT._replace(title="Model"),
            MADE,
            IN_RUN._replace(title="By run"),
            *metric_columns(shown, metrics),
            Column("Bars", lambda entry: {True: "reached", False: "missed", None: ""}[blessed(entry)]),
            Column("Versions", lambda entry: listed(map(_numbered, versions_of(entry)), Markup("<br>"))),
        ]
        parts = [
            Table("models", shown, columns, sortable=True) if shown else empty_note(before),
            paging("models", URLS.models(), URLS.models(before=older) if older else None, before),
        ]
        served = [part for each in deployed for part in _served(ask, each, pipelines)]
        return [
            Section("served", "Served", served or [Text("Nothing was pushed yet.")]),
            Section("list", "Models, newest first", parts),
            Section("versions", "Versions, newest push first", _versions_shown(pushed_versions))
            if pushed_versions
            else None,
        ]

    newest = [asdict(version) for version in pushed_versions[:MOST_VERSIONS]]
    return Page("Models", show, {"models": list(map(values, shown)), "versions": newest}, section="Models")


def _served(ask: Ask, deployed: Deployment, pipelines: list[str]) -> Parts:
    """A served version: where it comes from, and the commands that serve it and go back."""
    recipe = PurePath(deployed.folder).name
    origin: Inline = ""
    if deployed.restored:
        origin = f"A rollback to version {deployed.restored}"
    elif deployed.pushed_by and deployed.pushed_by.run:
        origin = line("Pushed by ", run_link(deployed.pushed_by.run))
    model = line(": ", _model_link(deployed.model)) if deployed.model else ""
    lineage = link("lineage", URLS.lineage(deployed.pushed.id))
    commands = [("Serve it", ask.site.command("serve", recipe)), ("Go back", ask.site.command("rollback", recipe))]
    return [
        Heading(f"{recipe}: version {deployed.version}"),
        Text(line(origin, model, ", ", lineage, ".")),
        Text(f"{deployed.folder}/{deployed.version}", "path"),
        Commands(commands if recipe in pipelines else [], compact=True),
    ]


def _numbered(version: Version) -> Inline:
    return line(f"{version.number} ", _state_shown(version))


def _state_shown(version: Version) -> Inline:
    return state(version.state, {SERVED: "good", ROLLED_BACK: "warning"}.get(version.state, ""))


def _model_link(model: int | None) -> Inline:
    return "" if model is None else link(f"Model {model}", URLS.artifact(model))


def _versions_shown(pushed_versions: list[Version]) -> Parts:
    columns = [
        Column("Version", lambda version: link(version.number, URLS.artifact(version.artifact))),
        Column("State", _state_shown),
        Column("Of", lambda version: PurePath(version.folder).name),
        Column("Model", lambda version: _model_link(version.model)),
        Column("Restored", lambda version: version.restored or ""),
    ]
    older = count(len(pushed_versions) - MOST_VERSIONS, "older version")
    return [
        Table("versions", pushed_versions[:MOST_VERSIONS], columns),
        Text(link(older, URLS.artifacts(type="PushedModel"))) if len(pushed_versions) > MOST_VERSIONS else None,
    ]


def versions(pushed: Iterable[ArtifactRecord]) -> list[Version]:
    """The state of every pushed version, newest push first."""
    by_folder: dict[str, list[ArtifactRecord]] = {}
    for artifact in pushed:
        by_folder.setdefault(str(PurePath(artifact.properties["pushed_destination"]).parent), []).append(artifact)
    all_versions = [
        version for folder, artifacts in by_folder.items() for version in _folder_versions(folder, artifacts)
    ]
    return sorted(all_versions, key=lambda version: -version.artifact)


def _folder_versions(folder: str, artifacts: list[ArtifactRecord]) -> list[Version]:
    served = max(artifacts, key=_number)
    withdrawn = {str(a.properties["rolled_back_from"]) for a in artifacts if "rolled_back_from" in a.properties}
    return [
        Version(
            number=_number(artifact),
            folder=folder,
            artifact=artifact.id,
            model=artifact.properties.get("current_model_id"),
            state=_state(artifact, served, withdrawn),
            restored=_text(artifact.properties.get("restored_version")),
        )
        for artifact in artifacts
    ]


def _state(artifact: ArtifactRecord, served: ArtifactRecord, withdrawn: set[str]) -> str:
    if artifact is served:
        return SERVED
    if str(_number(artifact)) in withdrawn:
        return ROLLED_BACK
    return REPLACED if Path(artifact.properties["pushed_destination"]).exists() else REMOVED


def _number(artifact: ArtifactRecord) -> int:
    return int(artifact.properties["pushed_version"])


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _judged(store: Queries, models: list[int]) -> dict[int, tuple[dict[str, Any], bool | None]]:
    """By model, its newest evaluation's metrics and whether the model was blessed."""
    events = store.events_of(store.consumers(models))
    judging = {
        event.artifact_id: execution
        for execution in sorted(events)
        for event in events[execution]
        if event.type in INPUTS and event.path.steps[0].key == "model" and _puts_out(events[execution], "evaluation")
    }
    outputs = store.outputs_of(judging.values())
    return {model: _verdict(outputs.get(execution, {})) for model, execution in judging.items()}


def _puts_out(events: Iterable[Any], name: str) -> bool:
    return any(event.type in OUTPUTS and event.path.steps[0].key == name for event in events)


def _verdict(outputs: dict[str, list[ArtifactRecord]]) -> tuple[dict[str, Any], bool | None]:
    metrics = {
        name: value for artifact in outputs.get("evaluation", []) for name, value in metrics_of(artifact).items()
    }
    [blessed] = [artifact.properties.get("blessed") for artifact in outputs.get("blessing", [])[:1]] or [None]
    return metrics, None if blessed is None else bool(blessed)
