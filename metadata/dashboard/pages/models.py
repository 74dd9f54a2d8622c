"""The models, what they are worth, and which version of which is served."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath
from typing import Any

from metadata.dashboard.contents import metrics_of
from metadata.dashboard.links import URLS
from metadata.dashboard.page import Ask, Page
from metadata.queries import INPUTS, OUTPUTS, PAGE, Queries
from metadata.records import ArtifactRecord
from metadata.values import artifact_values

MOST_VERSIONS = 25
SERVED, REPLACED, ROLLED_BACK, REMOVED = "served", "replaced", "rolled back", "removed"


@dataclass(frozen=True)
class Version:
    """A version that was pushed.

    Attributes:
        number: Its number.
        folder: The folder of all versions.
        artifact: The id of its PushedModel.
        model: The id of its Model; None where the push did not record it.
        state: `served`; `replaced` by a later push; `rolled back`; or `removed` from the disk.
        restored: The version that a rollback restored as this one, or None.
    """

    number: int
    folder: str
    artifact: int
    model: int | None
    state: str
    restored: str | None


def page(store: Queries, ask: Ask) -> Page:
    """A page of models, newest first, and the newest versions."""
    before = ask.number("before")
    found = store.artifacts("Model", PAGE + 1, before)
    shown = found[:PAGE]
    known = versions(store.pushed())
    by_model: dict[int, list[Version]] = {}
    for version in known:
        if version.model is not None:
            by_model.setdefault(version.model, []).append(version)
    judged = _judged(store, [made.artifact.id for made in shown])
    rows: list[dict[str, Any]] = [
        {
            "made": made,
            "metrics": judged.get(made.artifact.id, ({}, None))[0],
            "blessed": judged.get(made.artifact.id, ({}, None))[1],
            "versions": by_model.get(made.artifact.id, []),
        }
        for made in shown
    ]
    older = shown[-1].artifact.id if len(found) > PAGE else None
    pipelines = store.pipelines()
    deployed = store.deployed()
    return Page(
        "models.html",
        "Models",
        lambda: {
            "rows": rows,
            "metric_names": list(dict.fromkeys(name for row in rows for name in row["metrics"])),
            "deployed": deployed,
            "commands": {d.folder: _commands(ask, d.folder, pipelines) for d in deployed},
            "versions": known[:MOST_VERSIONS],
            "older_versions": max(len(known) - MOST_VERSIONS, 0),
            "before": before,
            "older": older and URLS.models(before=older),
        },
        {"models": [_twin(row) for row in rows], "versions": [asdict(version) for version in known[:MOST_VERSIONS]]},
        section="Models",
    )


def _commands(ask: Ask, folder: str, pipelines: list[str]) -> list[tuple[str, str]]:
    recipe = PurePath(folder).name
    if recipe not in pipelines:
        return []
    return [("Serve it", ask.site.command("serve", recipe)), ("Go back", ask.site.command("rollback", recipe))]


def _twin(row: dict[str, Any]) -> dict[str, Any]:
    numbers = [{"version": version.number, "state": version.state} for version in row["versions"]]
    return artifact_values(row["made"]) | {key: row[key] for key in ("metrics", "blessed")} | {"versions": numbers}


def versions(pushed: Iterable[ArtifactRecord]) -> list[Version]:
    """What became of every version that was pushed, newest push first."""
    by_folder: dict[str, list[ArtifactRecord]] = {}
    for artifact in pushed:
        by_folder.setdefault(str(PurePath(artifact.properties["pushed_destination"]).parent), []).append(artifact)
    found = [version for folder, artifacts in by_folder.items() for version in _of_folder(folder, artifacts)]
    return sorted(found, key=lambda version: -version.artifact)


def _of_folder(folder: str, artifacts: list[ArtifactRecord]) -> list[Version]:
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
    """By model: the Evaluator's values, and whether it blessed the model; of the newest evaluation of each."""
    events = store.events_of(store.takers(models))
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
    metrics = {name: value for found in outputs.get("evaluation", []) for name, value in metrics_of(found).items()}
    [blessed] = [found.properties.get("blessed") for found in outputs.get("blessing", [])[:1]] or [None]
    return metrics, None if blessed is None else bool(blessed)
