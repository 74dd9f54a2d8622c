"""What a task's container runs around the command that does its work, and what it tells Kubeflow's pages.

Kubeflow's launcher gives a container the text of an ExecutorInput, which names its outputs and their places, and reads
an ExecutorOutput from the file that is named there; see kubeflow/pipelines, api/v2alpha1/pipeline_spec.proto.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

import click

from contracts import evaluation
from contracts.content import ContentError
from contracts.errors import MillraceError, SettingsError
from metadata.records import ArtifactRecord
from metadata.store import Store
from pipeline.plan import nodes
from pipeline.plan.kubeflow_settings import VERDICT_TASK
from pipeline.run import run_summary, warm
from pipeline.run.workplace import Workplace
from pipeline.schedule.kubeflow import tasks
from pipeline.schedule.kubeflow.tasks import Work

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


def collect_outputs(
    store: Store, work: Work, report: Path, slots: Iterable[str] = ()
) -> tuple[dict[str, Output], dict[str, str]]:
    """What the metadata store knows of a task that ended well.

    Args:
        store: The store.
        work: What the task worked on.
        report: Where the run's report lies, if it was written.
        slots: The output artifacts that Kubeflow expects.

    Returns:
        Output artifacts, and output parameters, by name.
    """
    runs = store.node_runs(work.recipe, work.run)
    own = runs.get(work.task)
    made = store.outputs(own.id) if own else {}
    drawn = tasks.SHOWN.get(work.task, {})
    outputs = {name: _pointer(made.get(name, [])) for name in slots if name not in drawn}
    if work.task == "Evaluator" and made.get("evaluation"):
        outputs |= _quality(made["evaluation"][0])
    if tasks.REPORT in drawn and report.exists():
        outputs[tasks.REPORT] = Output(content=report.read_bytes())
    parameters = {}
    if work.task == nodes.PUSHER_NODE:
        parameters[tasks.OUTCOME] = what_became(run_summary.read_run_summary(store, runs))
    return outputs, parameters


def what_became(result: run_summary.RunSummary) -> str:
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
    summary = evaluation.read_summary(made)
    metrics = {metric.name: metric.value for metric in summary.metrics if metric.value is not None}
    outputs = {tasks.METRICS: Output({**metrics, "rows": summary.rows, "good_enough": str(summary.blessed).lower()})}
    insights = evaluation.read_insights(made)
    if insights and insights.confusion:
        confusion = insights.confusion
        matrix = {
            "annotationSpecs": [{"displayName": label} for label in confusion.labels],
            "rows": [{"row": row} for row in confusion.counts],
        }
        outputs[tasks.CONFUSION] = Output({"confusionMatrix": matrix})
    return outputs


def write_outputs(given: ExecutorInput, outputs: Mapping[str, Output], parameters: Mapping[str, str]) -> None:
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


ATTEMPT_VARIABLE = "KFP_RETRY_INDEX"
"""0 at a task's first attempt; Kubeflow Pipelines sets it from 2.17 on."""

SIGNALLED = 128
EXIT_KILLED = SIGNALLED + signal.SIGKILL
EXIT_AGAIN = {75, 130, 143, EXIT_KILLED}
"""Of `millrace node run`, where another attempt may succeed: the store was away, or the task was stopped or killed."""


def run_task(executor_input: str, command: Sequence[str]) -> int:
    """Runs the command, and tells Kubeflow of what was made.

    Args:
        executor_input: The text that Kubeflow's launcher gives.
        command: What `tasks.words` made; the settings that were given to the run follow it.

    Returns:
        The command's exit code.

    Raises:
        SettingsError: One of these is not what Kubeflow's launcher gives.
    """
    given = ExecutorInput.parse(executor_input)
    work = _named(tasks.parse_command(command), given)
    workplace = Workplace.load(work.environment)
    given_up = workplace.run_folder(work.run).path / f"{work.task}.given_up.json"
    if (before := _given_up(given_up)) is not None:
        click.echo(f"Not tried again: it cannot help. The first attempt ended with exit code {before}.", err=True)
        return before
    settings = _settings(given) if work.task != VERDICT_TASK else []
    code = _call([*tasks.command_words(work), *settings])
    if code == 0:
        _tell(given, work, workplace)
    elif code not in EXIT_AGAIN:
        # Kubeflow knows no exit codes, and would try again whatever they say.
        given_up.parent.mkdir(parents=True, exist_ok=True)
        given_up.write_text(json.dumps({"exit_code": code}), encoding="utf-8")
    return code


def _call(words: Sequence[str]) -> int:
    """Runs a command to its end, which a signal to this process asks it for."""
    process = warm.start(words, os.environ)

    def hand_on(number: int, _frame: FrameType | None) -> None:
        # A terminal sends Ctrl-C to both.
        if number != signal.SIGINT:
            process.send_signal(number)

    before = {number: signal.signal(number, hand_on) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        code = process.wait()
        # As a shell tells the signal that ended a command.
        return code if code >= 0 else SIGNALLED - code
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _named(work: Work, given: ExecutorInput) -> Work:
    """The work, in a run that has a name."""
    if work.run:
        return work
    job = str(given.parameters.get(tasks.JOB_PARAMETER, ""))
    if not job or "{{" in job:
        raise SettingsError(
            f"the run has no name: the pipeline's parameter {tasks.RUN_PARAMETER} is empty, and Kubeflow Pipelines "
            f"gives {job!r} for the run's id.",
            "Use Kubeflow Pipelines 2.5 or newer, or name each run.",
        )
    return replace(work, run=tasks.default_run_name(work.recipe, job))


def _given_up(path: Path) -> int | None:
    """The exit code of an earlier attempt of this very task that cannot succeed when it is repeated."""
    if int(os.environ.get(ATTEMPT_VARIABLE) or 0) == 0 or not path.exists():
        return None
    return int(json.loads(path.read_text(encoding="utf-8"))["exit_code"])


def _settings(given: ExecutorInput) -> list[str]:
    """The words for the run's parameters."""
    listed: Any = given.parameters.get(tasks.SET_PARAMETER, [])
    if not isinstance(listed, list) or not all(isinstance(override, str) for override in listed):
        raise SettingsError(
            f"the pipeline's parameter {tasks.SET_PARAMETER} is {listed!r}, expected a list of texts KEY=VALUE.",
            'Write for example ["trainer.epochs=3"].',
        )
    span = given.parameters.get(tasks.SPAN_PARAMETER, "")
    overrides = [*([f"data.span={span}"] if span else []), *listed]
    return [word for override in overrides for word in ("--set", override)]


def _tell(given: ExecutorInput, work: Work, workplace: Workplace) -> None:
    """Tells Kubeflow what was made; the work is done, and no fault in telling what nobody waits for undoes it."""
    try:
        store = workplace.open_store()
        if store is None:
            raise MillraceError("the metadata store is empty.")
        found, parameters = collect_outputs(store, work, workplace.run_folder(work.run).report_path, given.slots)
        write_outputs(given, found, parameters)
    except (MillraceError, ContentError, OSError) as error:
        if given.awaited:
            raise
        click.echo(f"Done, but Kubeflow's pages will not show what was made: {error}", err=True)
