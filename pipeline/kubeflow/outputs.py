"""What Kubeflow's pages show of a task: read from our metadata store, written as its launcher reads it.

The launcher gives a container the text of an ExecutorInput, which names its outputs and their places, and reads an
ExecutorOutput from the file that is named there; see kubeflow/pipelines, api/v2alpha1/pipeline_spec.proto.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from components.errors import SettingsError
from metadata.contents import evaluation
from metadata.records import ArtifactRecord
from metadata.store import Store
from pipeline import nodes, outcome
from pipeline.kubeflow import tasks
from pipeline.kubeflow.tasks import Work

LOCAL_ROOTS = {"gs://": "/gcs/", "s3://": "/s3/", "minio://": "/minio/"}
"""Where the launcher puts what lies in an object store; `kfp.dsl.Artifact.path` says the same."""


@dataclass(frozen=True)
class Slot:
    """An output artifact that Kubeflow expects.

    Attributes:
        uri: Where Kubeflow keeps it.
        path: Where the launcher takes it from; None where it takes nothing.
        metadata: What Kubeflow knows of it already.
    """

    uri: str
    path: Path | None
    metadata: Mapping[str, Any]


@dataclass(frozen=True)
class ExecutorInput:
    """What the launcher tells a container.

    Attributes:
        parameters: The values of the task's inputs.
        slots: Its output artifacts by name.
        awaited: The names of its output parameters, without which the launcher takes it for failed.
        output_file: Where the ExecutorOutput is read from.
    """

    parameters: Mapping[str, Any]
    slots: Mapping[str, Slot]
    awaited: tuple[str, ...]
    output_file: Path

    @classmethod
    def parse(cls, text: str) -> ExecutorInput:
        """Reads an ExecutorInput.

        Raises:
            SettingsError: It is none.
        """
        try:
            given = json.loads(text)
            outputs = given["outputs"]
            slots = {name: _slot(listed["artifacts"][0]) for name, listed in outputs.get("artifacts", {}).items()}
            parameters = given.get("inputs", {}).get("parameterValues", {})
            return cls(parameters, slots, tuple(outputs.get("parameters", {})), Path(outputs["outputFile"]))
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise SettingsError(
                f"--executor-input: received {text[:80]!r}, expected the JSON that Kubeflow's launcher gives.",
                "This command is the launcher's; run the node itself with: millrace node run",
            ) from error


@dataclass(frozen=True)
class Output:
    """What is told of an output artifact.

    Attributes:
        metadata: Shown beside it; Kubeflow draws metrics from it.
        content: Its file, where it has one.
    """

    metadata: Mapping[str, Any] = field(default_factory=dict)
    content: bytes | None = None


def _slot(given: Mapping[str, Any]) -> Slot:
    uri = given["uri"]
    known = next((local + uri[len(scheme) :] for scheme, local in LOCAL_ROOTS.items() if uri.startswith(scheme)), None)
    path = given.get("customPath") or known
    return Slot(uri, Path(path) if path else None, given.get("metadata", {}))


def collect(store: Store, work: Work, report: Path) -> tuple[dict[str, Output], dict[str, str]]:
    """What the metadata store knows of a task that ended well.

    Args:
        store: The store.
        work: What the task worked on.
        report: Where the run's report lies, if it was written.

    Returns:
        Output artifacts, and output parameters, by name.
    """
    runs = store.node_runs(work.recipe, work.run)
    own = runs.get(work.task)
    made = store.outputs(own.id) if own else {}
    found = {name: _pointer(made.get(name, [])) for name in tasks.ARTIFACTS.get(work.task, {})}
    if work.task == "Evaluator" and made.get("evaluation"):
        found |= _quality(made["evaluation"][0])
    if tasks.REPORT in tasks.SHOWN.get(work.task, {}) and report.exists():
        found[tasks.REPORT] = Output(content=report.read_bytes())
    parameters = {}
    if work.task == nodes.PUSHER_NODE:
        parameters[tasks.OUTCOME] = what_became(outcome.read(store, runs))
    return found, parameters


def what_became(result: outcome.Result) -> str:
    """What became of a run's model, in the words that the pipeline spec compares with."""
    if not result.good_enough:
        return tasks.NOT_GOOD_ENOUGH
    return tasks.PUSHED if result.pushed_to else tasks.NOT_SERVED


def _pointer(artifacts: list[ArtifactRecord]) -> Output:
    """Names our artifact; Kubeflow's own one is but a note, for its launcher moves only what lies in its own store."""
    if not artifacts:
        return Output({"made": "nothing"})
    newest = artifacts[-1]
    pushed = newest.properties.get("pushed_destination")
    shown = {"uri": newest.uri, "id": newest.id, "type": newest.type, **({"pushed_to": pushed} if pushed else {})}
    return Output(shown, (json.dumps(shown, indent=2) + "\n").encode())


def _quality(made: ArtifactRecord) -> dict[str, Output]:
    summary = evaluation.summary(made)
    metrics = {metric.name: metric.value for metric in summary.metrics if metric.value is not None}
    found = {tasks.METRICS: Output({**metrics, "rows": summary.rows, "good_enough": str(summary.blessed).lower()})}
    insights = evaluation.insights(made)
    if insights and insights.confusion:
        confusion = insights.confusion
        matrix = {
            "annotationSpecs": [{"displayName": label} for label in confusion.labels],
            "rows": [{"row": row} for row in confusion.counts],
        }
        found[tasks.CONFUSION] = Output({"confusionMatrix": matrix})
    return found


def write(given: ExecutorInput, outputs: Mapping[str, Output], parameters: Mapping[str, str]) -> None:
    """Writes the artifacts' files and the ExecutorOutput; what Kubeflow does not expect is left out.

    Raises:
        OSError: A file cannot be written.
    """
    artifacts = {}
    for name, slot in given.slots.items():
        output = outputs.get(name, Output())
        if output.content is not None and slot.path:
            slot.path.parent.mkdir(parents=True, exist_ok=True)
            slot.path.write_bytes(output.content)
        entry = {"name": name, "uri": slot.uri, "metadata": {**slot.metadata, **output.metadata}}
        artifacts[name] = {"artifacts": [entry]}
    given.output_file.parent.mkdir(parents=True, exist_ok=True)
    told = {"artifacts": artifacts, "parameterValues": dict(parameters)}
    given.output_file.write_text(json.dumps(told), encoding="utf-8")
