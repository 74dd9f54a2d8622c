"""The wrapper that a task's container runs around its command, and what it reports to Kubeflow's pages.

Kubeflow's launcher passes a container the text of an ExecutorInput, which names its outputs and where they go, and
reads an ExecutorOutput from the file named there; see kubeflow/pipelines, api/v2alpha1/pipeline_spec.proto.
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
"""Where the launcher mounts object stores; the same as in `kfp.dsl.Artifact.path`."""


@dataclass(frozen=True)
class Slot:
    """An output artifact that Kubeflow expects.

    Attributes:
        uri: Where Kubeflow stores it.
        path: Where the launcher uploads it from; None if it uploads nothing.
        metadata: The metadata that Kubeflow already has.
    """

    uri: str
    path: Path | None
    metadata: Mapping[str, Any]


@dataclass(frozen=True)
class ExecutorInput:
    """The input that the launcher passes to a container.

    Attributes:
        parameters: The values of the task's inputs.
        slots: Its output artifacts by name.
        awaited: The names of its output parameters, without which the launcher considers it failed.
        output_file: Where the launcher reads the ExecutorOutput.
    """

    parameters: Mapping[str, Any]
    slots: Mapping[str, Slot]
    awaited: tuple[str, ...]
    output_file: Path

    @classmethod
    def parse(cls, text: str) -> ExecutorInput:
        """Parses an ExecutorInput.

        Raises:
            SettingsError: It is not one.
        """
        try:
            message = json.loads(text)
            outputs = message["outputs"]
            slots = {name: _slot(listed["artifacts"][0]) for name, listed in outputs.get("artifacts", {}).items()}
            parameters = message.get("inputs", {}).get("parameterValues", {})
            return cls(parameters, slots, tuple(outputs.get("parameters", {})), Path(outputs["outputFile"]))
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise SettingsError(
                f"--executor-input: received {text[:80]!r}, expected the JSON that Kubeflow's launcher gives.",
                "This command is the launcher's; run the node itself with: millrace node run",
            ) from error


@dataclass(frozen=True)
class Output:
    """What is reported about an output artifact.

    Attributes:
        metadata: Shown beside it; Kubeflow draws metrics from it.
        content: The contents of its file, if it has one.
    """

    metadata: Mapping[str, Any] = field(default_factory=dict)
    content: bytes | None = None


def _slot(artifact: Mapping[str, Any]) -> Slot:
    uri = artifact["uri"]
    mounted = next(
        (local + uri[len(scheme) :] for scheme, local in LOCAL_ROOTS.items() if uri.startswith(scheme)), None
    )
    path = artifact.get("customPath") or mounted
    return Slot(uri, Path(path) if path else None, artifact.get("metadata", {}))


def collect_outputs(
    store: Store, work: Work, report: Path, slots: Iterable[str] = ()
) -> tuple[dict[str, Output], dict[str, str]]:
    """Collects the outputs of a task that succeeded from the metadata store.

    Args:
        store: The store.
        work: The task's work.
        report: Where the run's report is, if it was written.
        slots: The output artifacts that Kubeflow expects.

    Returns:
        Output artifacts, and output parameters, by name.
    """
    runs = store.node_runs(work.recipe, work.run)
    own = runs.get(work.task)
    artifacts = store.outputs(own.id) if own else {}
    drawn = tasks.SHOWN.get(work.task, {})
    outputs = {name: _pointer(artifacts.get(name, [])) for name in slots if name not in drawn}
    if work.task == "Evaluator" and artifacts.get("evaluation"):
        outputs |= _quality(artifacts["evaluation"][0])
    if tasks.REPORT in drawn and report.exists():
        outputs[tasks.REPORT] = Output(content=report.read_bytes())
    parameters = {}
    if work.task == nodes.PUSHER_NODE:
        parameters[tasks.OUTCOME] = model_outcome(run_summary.read_run_summary(store, runs))
    return outputs, parameters


def model_outcome(result: run_summary.RunSummary) -> str:
    """The outcome for a run's model, in the words that the pipeline spec compares with."""
    if not result.good_enough:
        return tasks.NOT_GOOD_ENOUGH
    return tasks.PUSHED if result.pushed_to else tasks.NOT_SERVED


def _pointer(artifacts: list[ArtifactRecord]) -> Output:
    """A reference to our artifact: Kubeflow's launcher only moves files in its own store."""
    if not artifacts:
        return Output({"made": "nothing"})
    newest = artifacts[-1]
    pushed = newest.properties.get("pushed_destination")
    shown = {"uri": newest.uri, "id": newest.id, "type": newest.type, **({"pushed_to": pushed} if pushed else {})}
    return Output(shown, (json.dumps(shown, indent=2) + "\n").encode())


def _quality(artifact: ArtifactRecord) -> dict[str, Output]:
    summary = evaluation.read_summary(artifact)
    metrics = {metric.name: metric.value for metric in summary.metrics if metric.value is not None}
    outputs = {tasks.METRICS: Output({**metrics, "rows": summary.rows, "good_enough": str(summary.blessed).lower()})}
    insights = evaluation.read_insights(artifact)
    if insights and insights.confusion:
        confusion = insights.confusion
        matrix = {
            "annotationSpecs": [{"displayName": label} for label in confusion.labels],
            "rows": [{"row": row} for row in confusion.counts],
        }
        outputs[tasks.CONFUSION] = Output({"confusionMatrix": matrix})
    return outputs


def write_outputs(executor_input: ExecutorInput, outputs: Mapping[str, Output], parameters: Mapping[str, str]) -> None:
    """Writes the artifacts' files and the ExecutorOutput, leaving out what Kubeflow does not expect.

    Raises:
        OSError: A file cannot be written.
    """
    artifacts = {}
    for name, slot in executor_input.slots.items():
        output = outputs.get(name, Output())
        if output.content is not None and slot.path:
            slot.path.parent.mkdir(parents=True, exist_ok=True)
            slot.path.write_bytes(output.content)
        entry = {"name": name, "uri": slot.uri, "metadata": {**slot.metadata, **output.metadata}}
        artifacts[name] = {"artifacts": [entry]}
    executor_input.output_file.parent.mkdir(parents=True, exist_ok=True)
    executor_output = {"artifacts": artifacts, "parameterValues": dict(parameters)}
    executor_input.output_file.write_text(json.dumps(executor_output), encoding="utf-8")


ATTEMPT_VARIABLE = "KFP_RETRY_INDEX"
"""0 in a task's first attempt; Kubeflow Pipelines sets it from version 2.17 on."""

SIGNALLED = 128
EXIT_KILLED = SIGNALLED + signal.SIGKILL
EXIT_AGAIN = {75, 130, 143, EXIT_KILLED}
"""Exit codes of `millrace node run` after which another attempt may succeed: a store was down, or the task killed."""


def run_task(executor_input: str, command: Sequence[str]) -> int:
    """Runs the command, and reports its outputs to Kubeflow.

    Args:
        executor_input: The text that Kubeflow's launcher passes.
        command: The command as `tasks.command_words` made it; the run's settings are appended to it.

    Returns:
        The command's exit code.

    Raises:
        SettingsError: One of these is not what Kubeflow's launcher passes.
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
        _report_outputs(given, work, workplace)
    elif code not in EXIT_AGAIN:
        # Kubeflow ignores exit codes and would retry whatever they are.
        given_up.parent.mkdir(parents=True, exist_ok=True)
        given_up.write_text(json.dumps({"exit_code": code}), encoding="utf-8")
    return code


def _call(words: Sequence[str]) -> int:
    """Runs a command to its end, forwarding signals to it."""
    process: warm.Command | None = None
    early: list[int] = []

    def hand_on(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            return  # A terminal sends Ctrl-C to both.
        if process is None:
            early.append(number)
        else:
            process.send_signal(number)

    # Before the command starts, or a signal that comes right after would end this process alone.
    before = {number: signal.signal(number, hand_on) for number in (signal.SIGTERM, signal.SIGINT)}
    process = warm.start(words, os.environ)
    for number in early:
        process.send_signal(number)
    try:
        code = process.wait()
        # As a shell reports the signal that ended a command.
        return code if code >= 0 else SIGNALLED - code
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _named(work: Work, executor_input: ExecutorInput) -> Work:
    """The work with the run's name filled in."""
    if work.run:
        return work
    job = str(executor_input.parameters.get(tasks.JOB_PARAMETER, ""))
    if not job or "{{" in job:
        raise SettingsError(
            f"the run has no name: the pipeline's parameter {tasks.RUN_PARAMETER} is empty, and Kubeflow Pipelines "
            f"gives {job!r} for the run's id.",
            "Use Kubeflow Pipelines 2.5 or newer, or name each run.",
        )
    return replace(work, run=tasks.default_run_name(work.recipe, job))


def _given_up(path: Path) -> int | None:
    """The exit code of an earlier attempt of this task that failed for good; None if there is none."""
    if int(os.environ.get(ATTEMPT_VARIABLE) or 0) == 0 or not path.exists():
        return None
    return int(json.loads(path.read_text(encoding="utf-8"))["exit_code"])


def _settings(executor_input: ExecutorInput) -> list[str]:
    """The command-line words for the run's parameters."""
    listed: Any = executor_input.parameters.get(tasks.SET_PARAMETER, [])
    if not isinstance(listed, list) or not all(isinstance(override, str) for override in listed):
        raise SettingsError(
            f"the pipeline's parameter {tasks.SET_PARAMETER} is {listed!r}, expected a list of texts KEY=VALUE.",
            'Write for example ["trainer.epochs=3"].',
        )
    span = executor_input.parameters.get(tasks.SPAN_PARAMETER, "")
    overrides = [*([f"data.span={span}"] if span else []), *listed]
    return [word for override in overrides for word in ("--set", override)]


def _report_outputs(executor_input: ExecutorInput, work: Work, workplace: Workplace) -> None:
    """Reports the outputs to Kubeflow. The work is done, so an error fails the task only if outputs are awaited."""
    try:
        store = workplace.open_store()
        if store is None:
            raise MillraceError("the metadata store is empty.")
        outputs, parameters = collect_outputs(
            store, work, workplace.run_folder(work.run).report_path, executor_input.slots
        )
        write_outputs(executor_input, outputs, parameters)
    except (MillraceError, ContentError, OSError) as error:
        if executor_input.awaited:
            raise
        click.echo(f"Done, but Kubeflow's pages will not show what was made: {error}", err=True)
