"""The summary of a run: metrics against their bars, slices, what became of the pushed model, and what to do next."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from components.pusher import versions
from components.pusher.versions import Version
from contracts.data_verdict import NOTES_PROPERTY
from contracts.evaluation import Interval, Slice, Summary, read_summary
from contracts.model_reports import REPORT_FILE, InfraReport, TFLiteReport, read_infra_report, read_tflite_report
from metadata.store import ArtifactRecord, NodeRun, Store
from pipeline.plan.nodes import INFRA_NODE, TFLITE_NODE
from pipeline.run.command_lines import display_path

KILO, MEGA = 1e3, 1e6
MAX_SLICES = 12
WIDEST = 1_000
MAX_PROBLEMS = 3


@dataclass(frozen=True)
class PushState:
    """What became of a pushed model.

    Attributes:
        served: The folder of the version that serves it; None if none does.
        why_not: Why none does, as a sentence; None if one does or nothing was pushed.
        restorable: The version that holds the model and could be served again, if none serves it.
    """

    served: Path | None = None
    why_not: str | None = None
    restorable: int | None = None


def push_state(properties: dict[str, Any]) -> PushState:
    """The current state of a push.

    Args:
        properties: Those of its PushedModel; see components/pusher/manifest.py.

    Raises:
        PushError: The serving folder cannot be read.
    """
    if not properties.get("pushed_destination"):
        withdrawn = properties.get("withdrawn_version")
        if withdrawn is None:
            return PushState()
        return PushState(None, f"Not pushed: {properties['not_pushed_reason']}.", withdrawn)
    path = Path(properties["pushed_destination"])
    existing = {version.path: version for version in versions.find_versions(path.parent)}
    served = list(existing.values())[-1] if existing else None
    if served is None or served.path == path:
        return PushState(path)
    pushed = existing.get(path)
    if pushed and pushed.content == served.content:
        return PushState(served.path)
    return PushState(None, _why_not_served(int(path.name), served), int(path.name) if pushed else None)


def _why_not_served(pushed: int, served: Version) -> str:
    start = f"Not served: version {served.number} is"
    rollback = served.manifest.rollback if served.manifest else None
    if rollback and served.manifest:
        when = served.manifest.pushed.astimezone().strftime("%Y-%m-%d %H:%M")
        return (
            f"{start}, the content of version {rollback.restored_version}, since the rollback of {when}; "
            f"this run's model is version {pushed}."
        )
    return f"{start}, which was pushed later; this run's model is version {pushed}."


@dataclass(frozen=True)
class RunSummary:
    """The summary of a run.

    Attributes:
        evaluation: The Evaluator's summary, or None when it did not run.
        pushed_to: The folder that serves the pushed model, or None.
        notes: What the run let pass and the user should know about, one line each.
        tflite: The TF Lite node's report, or None when the run has no such node.
        infra: The InfraValidator's report, or None when it did not run.
        infra_report: Where that report is.
        not_served: Why a good model is not served, or None.
        restorable: The version to roll back to, to serve that model, if `not_served` is given.
        let_pass: How many anomalies the data gate let pass.
    """

    evaluation: Summary | None
    pushed_to: Path | None
    notes: tuple[str, ...] = ()
    tflite: TFLiteReport | None = None
    infra: InfraReport | None = None
    infra_report: Path | None = None
    not_served: str | None = None
    restorable: int | None = None
    let_pass: int = 0

    @property
    def reached_bars(self) -> bool:
        """Whether no bar was missed; a run that did not reach the Evaluator missed none."""
        return self.evaluation is None or self.evaluation.blessed

    @property
    def good_enough(self) -> bool:
        """Whether no bar was missed, and the model server's responses match what the Evaluator saw."""
        return self.reached_bars and (self.infra is None or self.infra.blessed)


def read_run_summary(store: Store, nodes: Mapping[str, NodeRun]) -> RunSummary:
    """Reads the summary of the run with these node runs.

    Raises:
        ContentError: One of their files is missing or broken.
        PushError: The serving folder cannot be read.
    """

    def last(node: str, output: str) -> ArtifactRecord | None:
        return next(reversed(_outputs(store, nodes, node, output)), None)

    notes, let_pass = _data_notes(store, nodes)
    evaluated = last("Evaluator", "evaluation")
    tflite, blessing = last(TFLITE_NODE, "tflite_model"), last(INFRA_NODE, "blessing")
    pushed = last("Pusher", "pushed_model")
    state = push_state(pushed.properties) if pushed else PushState()
    return RunSummary(
        evaluation=read_summary(evaluated) if evaluated else None,
        pushed_to=state.served,
        notes=notes,
        tflite=read_tflite_report(tflite) if tflite else None,
        infra=read_infra_report(blessing) if blessing else None,
        infra_report=blessing.file(REPORT_FILE) if blessing else None,
        not_served=state.why_not,
        restorable=state.restorable,
        let_pass=let_pass,
    )


def _data_notes(store: Store, nodes: Mapping[str, NodeRun]) -> tuple[tuple[str, ...], int]:
    """What data were set aside or let pass, one line each; and how many anomalies were let pass."""
    notes, let_pass = [], 0
    for artifact in _outputs(store, nodes, "ExampleGen", "examples"):
        notes += [f"Data       {note}" for note in json.loads(artifact.properties.get(NOTES_PROPERTY, "[]"))]
    for artifact in _outputs(store, nodes, "ExampleGen", "rejected_rows"):
        if count := artifact.properties.get("num_rows", 0):
            rows = _counted(count, "row", "rows")
            notes.append(f"Set aside  {rows}, with the reason for each, in {display_path(artifact.uri)}")
    for artifact in _outputs(store, nodes, "DataGate", "verdict"):
        if count := artifact.properties.get("num_anomalies", 0):
            let_pass += count
            anomalies = _counted(count, "anomaly", "anomalies")
            notes.append(f"Let pass   {anomalies} in the data, listed in {display_path(artifact.uri)}")
    return tuple(notes), let_pass


def _counted(count: int, singular: str, plural: str) -> str:
    return f"{count:,} {singular if count == 1 else plural}"


def _outputs(store: Store, nodes: Mapping[str, NodeRun], node: str, name: str) -> list[ArtifactRecord]:
    return store.outputs(nodes[node].id).get(name, []) if node in nodes else []


def show_run_summary(console: Console, summary: RunSummary) -> None:
    """Prints the summary."""
    for note in summary.notes:
        console.print(Text(note, style="yellow"), soft_wrap=True)
    if summary.evaluation is None:
        return
    console.print()
    console.print(_metrics_table(summary.evaluation))
    slices = summary.evaluation.slices
    if slices:
        console.print()
        table = _slices_table(slices)
        needed = console.measure(table, options=console.options.update(max_width=WIDEST)).maximum
        console.print(table if needed <= console.width else _slices_table(slices, between="\n"))
        if len(slices) > MAX_SLICES:
            console.print(Text(f"… and {len(slices) - MAX_SLICES} smaller slices", style="dim"))
    console.print()
    if summary.evaluation.reason:
        console.print(Text(f"Verdict    {summary.evaluation.reason}"), soft_wrap=True)
    for sentence in summary.evaluation.not_judged:
        console.print(Text(f"           {sentence}", style="dim"), soft_wrap=True)
    if summary.tflite:
        console.print(_tflite_line(summary.tflite), soft_wrap=True)
    _show_push(console, summary)


def _show_push(console: Console, summary: RunSummary) -> None:
    if summary.pushed_to:
        console.print(Text.assemble(("Pushed to  ", "bold green"), display_path(summary.pushed_to)), soft_wrap=True)
    elif not summary.reached_bars and summary.evaluation and summary.evaluation.undecided:
        console.print(Text("Not pushed: too few rows to tell whether the model is good enough.", style="bold yellow"))
    elif not summary.reached_bars:
        console.print(Text("Not pushed: the model did not reach every bar.", style="bold red"))
    elif not summary.good_enough and summary.infra:
        _show_problems(console, summary.infra.problems, summary.infra_report)
    elif summary.not_served:
        console.print(Text(summary.not_served, style="bold yellow"), soft_wrap=True)


def _show_problems(console: Console, problems: Sequence[str], report: Path | None) -> None:
    console.print(Text("Not pushed: the model server does not serve what was evaluated.", style="bold red"))
    for problem in problems[:MAX_PROBLEMS]:
        console.print(Text(f"  {problem}"), soft_wrap=True)
    if report:
        console.print(Text(f"Report     {display_path(report)}"), soft_wrap=True)


def _tflite_line(report: TFLiteReport) -> Text:
    """The line about the TF Lite model; a report without a size means that none was made."""
    if report.size_bytes is None or report.variables_bytes is None:
        return Text(f"TF Lite    not made: {report.refused}.", style="yellow")
    ratio = report.variables_bytes / report.size_bytes
    measured = (
        f"{report.quantization}, {_size(report.size_bytes)}, {ratio:.1f} x smaller than the SavedModel's "
        f"variables; accuracy {report.accuracy:.4f} (SavedModel {report.saved_model_accuracy:.4f}); "
        f"{report.latency_ms:.3g} ms a row"
    )
    if report.blessed:
        return Text(f"TF Lite    {measured}")
    return Text(f"TF Lite    not pushed: {report.refused}; {measured}", style="bold red")


def _size(size: int) -> str:
    return f"{size / KILO:.0f} kB" if size < MEGA else f"{size / MEGA:.1f} MB"


def _metrics_table(summary: Summary) -> Table:
    table = _table(f"Evaluation on {summary.rows:,} rows")
    for heading in ("Metric", "Value", "95 %", "Bar", "Baseline", ""):
        table.add_column(
            heading,
            header_style="dim",
            style="dim" if heading == "95 %" else "",
            justify="right" if heading in {"Value", "Baseline"} else "left",
            # In a narrow terminal, names and bars wrap, and numbers are never cut off.
            no_wrap=heading not in {"Metric", "Bar"},
            overflow="fold",
        )
    for metric in summary.metrics:
        bar = str(metric.bar)
        verdict = Text("passed", style="green") if metric.passed else Text("missed", style="bold red")
        if metric.undecided:
            verdict = Text("cannot tell", style="bold yellow")
        baseline = "" if metric.baseline is None else _number(metric.baseline)
        interval = _interval(metric.interval) or _shortly(metric.no_interval)
        table.add_row(metric.name, _number(metric.value), interval, bar, baseline, verdict if bar else "")
    return table


def _interval(interval: Interval | None) -> str:
    """A metric's confidence interval; evaluations by older versions have none."""
    return f"({interval.low:.3f}\N{EN DASH}{interval.high:.3f})" if interval else ""


def _shortly(reason: str | None) -> str:
    """Why there is no interval, without the numbers, which the report has."""
    return reason.partition(" (")[0] if reason else ""


def _slices_table(slices: Sequence[Slice], between: str = " ") -> Table:
    """Slices with their metrics; `between` separates a number from its interval."""
    table = _table("Slices")
    shown = slices[:MAX_SLICES]
    columns = []
    table.add_column("Slice", header_style="dim", overflow="fold")
    table.add_column("Rows", justify="right", header_style="dim", no_wrap=True)
    for name in slices[0].metrics:
        table.add_column(name, header_style="dim", overflow="fold")
        columns.append(_slice_cells(shown, name, between))
    for part, *values in zip(shown, *columns, strict=True):
        table.add_row(Text(part.slice), f"{part.rows:,}", *values)
    return table


def _slice_cells(slices: Sequence[Slice], metric: str, between: str) -> list[Text]:
    """The values of a metric with their intervals, a cell per slice, with the numbers aligned."""
    numbers = [_number(part.metrics[metric]) for part in slices]
    width = max(map(len, numbers))
    cells = []
    for number, part in zip(numbers, slices, strict=True):
        interval = _interval(part.intervals.get(metric)) or _shortly(part.no_intervals.get(metric))
        missed = " missed" if metric in part.missed else ""
        cells.append(
            Text.assemble(
                f"{number:>{width}}", (f"{between}{interval}" if interval else "", "dim"), (missed, "bold red")
            )
        )
    return cells


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
