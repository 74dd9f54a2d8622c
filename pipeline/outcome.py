"""What came out of a run: metrics against their bars, slices, where the model was pushed, and what to do next."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from components.evaluation.settings import SUMMARY_FILE
from components.infra_validator import settings as infra_validator
from components.tflite.settings import REPORT_FILE
from metadata import files
from metadata.store import ArtifactRecord, NodeRun, Store
from pipeline import serving_state
from pipeline.nodes import INFRA_NODE, TFLITE_NODE

KILO, MEGA = 1e3, 1e6
MAX_SLICES = 12
WIDEST = 1_000
MAX_PROBLEMS = 3


@dataclass(frozen=True)
class Result:
    """The end of a run.

    Attributes:
        evaluation: The Evaluator's summary (see components/evaluation/summary.py), or None when it did not run.
        pushed_to: The folder that serves the pushed model, or None.
        notes: What the run let pass and the user should know, a line each.
        tflite: The TF Lite node's report (see components/tflite/executor.py), or None when the run has no such node.
        infra: The InfraValidator's report (see components/infra_validator/executor.py), or None when it did not run.
        infra_report: Where that report is.
        not_served: Why a good model is not served, or None.
        restorable: The version that would be served by a rollback to it, where `not_served` says why it is not.
        let_pass: How many anomalies the data gate let pass.
    """

    evaluation: dict[str, Any] | None
    pushed_to: Path | None
    notes: tuple[str, ...] = ()
    tflite: dict[str, Any] | None = None
    infra: dict[str, Any] | None = None
    infra_report: Path | None = None
    not_served: str | None = None
    restorable: int | None = None
    let_pass: int = 0

    @property
    def reached_bars(self) -> bool:
        """Whether no bar was missed; a run that did not get as far as the Evaluator missed none."""
        return self.evaluation is None or bool(self.evaluation["blessed"])

    @property
    def good_enough(self) -> bool:
        """Whether no bar was missed, and the model answers in the model server as the Evaluator saw it."""
        return self.reached_bars and (self.infra is None or bool(self.infra["blessed"]))


def read(store: Store, nodes: Mapping[str, NodeRun]) -> Result:
    """The result of the run with these node runs."""
    evaluation, tflite, infra, infra_report, notes = None, None, None, None, []
    let_pass = 0
    state = serving_state.State()
    for artifact in _outputs(store, nodes, "ExampleGen", "rejected_rows"):
        if count := artifact.properties.get("num_rows", 0):
            rows = _counted(count, "row", "rows")
            notes.append(f"Set aside  {rows}, with the reason of each, in {shown(artifact.uri)}")
    for artifact in _outputs(store, nodes, "DataGate", "verdict"):
        if count := artifact.properties.get("num_anomalies", 0):
            let_pass += count
            anomalies = _counted(count, "anomaly", "anomalies")
            notes.append(f"Let pass   {anomalies} of the data, listed in {shown(artifact.uri)}")
    for artifact in _outputs(store, nodes, "Evaluator", "evaluation"):
        evaluation = json.loads(artifact.file(SUMMARY_FILE).read_text(encoding="utf-8"))
    for artifact in _outputs(store, nodes, TFLITE_NODE, "tflite_model"):
        tflite = json.loads(artifact.file(REPORT_FILE).read_text(encoding="utf-8"))
    for artifact in _outputs(store, nodes, INFRA_NODE, "blessing"):
        infra_report = artifact.file(infra_validator.REPORT_FILE)
        infra = json.loads(infra_report.read_text(encoding="utf-8"))
    for artifact in _outputs(store, nodes, "Pusher", "pushed_model"):
        state = serving_state.of(artifact.properties)
    return Result(
        evaluation=evaluation,
        pushed_to=state.served,
        notes=tuple(notes),
        tflite=tflite,
        infra=infra,
        infra_report=infra_report,
        not_served=state.why_not,
        restorable=state.restorable,
        let_pass=let_pass,
    )


def shown(location: Path | str) -> str:
    """A path as the user would write it: relative where it is below the working folder; a URI as it is."""
    if isinstance(location, str) and files.is_elsewhere(location):
        return location
    path = Path(location)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _outputs(store: Store, nodes: Mapping[str, NodeRun], node: str, name: str) -> list[ArtifactRecord]:
    return store.outputs(nodes[node].id).get(name, []) if node in nodes else []


def show(console: Console, result: Result) -> None:
    """Prints the result."""
    for note in result.notes:
        console.print(Text(note, style="yellow"), soft_wrap=True)
    if result.evaluation is None:
        return
    console.print()
    console.print(_metrics_table(result.evaluation))
    slices = result.evaluation["slices"]
    if slices:
        console.print()
        table = _slices_table(slices)
        needed = console.measure(table, options=console.options.update(max_width=WIDEST)).maximum
        console.print(table if needed <= console.width else _slices_table(slices, between="\n"))
        if len(slices) > MAX_SLICES:
            console.print(Text(f"… and {len(slices) - MAX_SLICES} smaller slices", style="dim"))
    console.print()
    if result.tflite:
        console.print(_tflite_line(result.tflite), soft_wrap=True)
    if result.pushed_to:
        console.print(Text.assemble(("Pushed to  ", "bold green"), shown(result.pushed_to)), soft_wrap=True)
    elif not result.reached_bars:
        console.print(Text("Not pushed: the model did not reach every bar.", style="bold red"))
    elif not result.good_enough and result.infra:
        _show_problems(console, result.infra["problems"], result.infra_report)
    elif result.not_served:
        console.print(Text(result.not_served, style="bold yellow"), soft_wrap=True)


def _show_problems(console: Console, problems: list[str], report: Path | None) -> None:
    console.print(Text("Not pushed: the model server does not serve what was evaluated.", style="bold red"))
    for problem in problems[:MAX_PROBLEMS]:
        console.print(Text(f"  {problem}"), soft_wrap=True)
    if report:
        console.print(Text(f"Report     {shown(report)}"), soft_wrap=True)


def _tflite_line(report: Mapping[str, Any]) -> Text:
    """What became of the TF Lite model; without a size there is none."""
    if "size_bytes" not in report:
        return Text(f"TF Lite    not made: {report['refused']}.", style="yellow")
    ratio = report["variables_bytes"] / report["size_bytes"]
    measured = (
        f"{report['quantization']}, {_size(report['size_bytes'])}, {ratio:.1f} x smaller than the SavedModel's "
        f"variables; accuracy {report['accuracy']:.4f} (SavedModel {report['saved_model_accuracy']:.4f}); "
        f"{report['latency_ms']:.3g} ms a row"
    )
    if report["blessed"]:
        return Text(f"TF Lite    {measured}")
    return Text(f"TF Lite    not pushed: {report['refused']}; {measured}", style="bold red")


def _size(size: int) -> str:
    return f"{size / KILO:.0f} kB" if size < MEGA else f"{size / MEGA:.1f} MB"


def _metrics_table(evaluation: dict[str, Any]) -> Table:
    table = _table(f"Evaluation on {evaluation['rows']:,} rows")
    for heading in ("Metric", "Value", "95 %", "Bar", "Baseline", ""):
        table.add_column(
            heading,
            header_style="dim",
            style="dim" if heading == "95 %" else "",
            justify="right" if heading in {"Value", "Baseline"} else "left",
            # In a narrow terminal names and bars are broken into lines, and no number is cut.
            no_wrap=heading not in {"Metric", "Bar"},
            overflow="fold",
        )
    for metric in evaluation["metrics"]:
        bars = _bars(metric["bar"])
        verdict = Text("passed", style="green") if metric["passed"] else Text("missed", style="bold red")
        baseline = "" if metric["baseline"] is None else _number(metric["baseline"])
        sure = _interval(metric.get("interval"))
        table.add_row(metric["name"], _number(metric["value"]), sure, bars, baseline, verdict if bars else "")
    return table


def _interval(interval: Mapping[str, Any] | None) -> str:
    """Where a metric's true value likely is; evaluations of older versions do not say."""
    return f"({interval['low']:.3f}\N{EN DASH}{interval['high']:.3f})" if interval else ""


def _bars(bar: Mapping[str, Any]) -> str:
    parts = []
    if bar["lower_bound"] is not None:
        parts.append(f"≥ {bar['lower_bound']:g}")
    if bar["upper_bound"] is not None:
        parts.append(f"≤ {bar['upper_bound']:g}")
    if bar["max_loss"] is not None:
        parts.append(f"loses ≤ {bar['max_loss']:g}")
    return ", ".join(parts)


def _slices_table(slices: list[dict[str, Any]], between: str = " ") -> Table:
    """Slices with their metrics; `between` is what parts a number from its interval."""
    table = _table("Slices")
    shown = slices[:MAX_SLICES]
    columns = []
    table.add_column("Slice", header_style="dim", overflow="fold")
    table.add_column("Rows", justify="right", header_style="dim", no_wrap=True)
    for name in slices[0]["metrics"]:
        table.add_column(name, header_style="dim", overflow="fold")
        columns.append(_slice_cells(shown, name, between))
    for entry, *values in zip(shown, *columns, strict=True):
        table.add_row(Text(entry["slice"]), f"{entry['rows']:,}", *values)
    return table


def _slice_cells(slices: list[dict[str, Any]], metric: str, between: str) -> list[Text]:
    """A metric of each slice with its interval; the numbers stand below each other."""
    numbers = [_number(entry["metrics"][metric]) for entry in slices]
    width = max(map(len, numbers))
    intervals = [_interval(entry.get("intervals", {}).get(metric)) for entry in slices]
    return [
        Text.assemble(f"{number:>{width}}", (f"{between}{interval}" if interval else "", "dim"))
        for number, interval in zip(numbers, intervals, strict=True)
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
