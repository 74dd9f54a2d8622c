"""The outcome of the run: its verdict, its nodes, and how to serve its model or go back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from contracts import failure
from contracts.content import ContentError
from contracts.failure import Failure
from contracts.model_reports import (
    InfraReport,
    PathDifference,
    TFLiteReport,
    read_infra_report,
    read_tflite_report,
)
from metadata.records import KILLED, QUIET_NODES, STATE_WORDS, NodeRun
from metadata.values import run_values
from ui.charts import Graph, Node
from ui.parts import Bullets, Column, Commands, Facts, Heading, Parts, Table, Text, Verbatim
from ui.report.source import Source, Surroundings
from ui.texts import bold, code, count, line, link, local_time, number, seconds, state

WAITING = "waiting"
NUMBERS_SHOWN = 4


def summary_section(source: Source, surroundings: Surroundings) -> Parts:
    """What a reader wants to know first; the verdict names any file that is missing or broken."""
    run, logs = source.run, surroundings.log_folder
    try:
        failed = failure.read_failure(logs) if logs else None
        verdict, good = _verdict(source, failed)
    except ContentError as error:
        failed, verdict, good = None, f"The outcome is unknown: {error}.", None
    values = run_values(run)
    return [
        Text(line(state(values["state"]), " ", bold(verdict)), "error" if good is False else ""),
        Text(surroundings.served) if surroundings.served else None,
        Facts(
            [
                ("Recipe", run.pipeline),
                ("Started", local_time(run.started)),
                ("Took", seconds(values["seconds"]) or None),
                ("Nodes", f"{values['ran']} ran, {values['cached']} from earlier runs"),
                ("Pushed", f"version {run.pushed_version}" if run.pushed_version else None),
            ]
        ),
        Heading(f"What went wrong in {failed.node}") if failed else None,
        Verbatim("\n\n  ".join([failed.message, *failed.lines])) if failed else None,
        Text(line("Log: ", code(logs / f"{failed.node}.log"))) if failed and logs else None,
    ]


def _verdict(source: Source, failed: Failure | None) -> tuple[str, bool | None]:
    """The outcome in a sentence, and whether it is good; None if that is undecided."""
    run = source.run
    in_state = {state: [node.node for node in run.nodes if node.state == state] for state in STATE_WORDS}
    if run.state == "FAILED" or failed:
        return f"{failed.node if failed else in_state['FAILED'][0]} failed.", False
    if run.state == "CANCELED":
        return f"It was stopped in {', '.join(in_state['CANCELED'])}.", None
    if run.state == KILLED:
        where = f" in {', '.join(in_state[KILLED])}" if run.nodes else " before its first node began"
        return f"It was killed{where}: it never ended, and no process goes on with it.", False
    if run.goes_on:
        running = in_state["NEW"] + in_state["RUNNING"]
        return f"It is running: {', '.join(running)}." if running else "It begins.", None
    if run.pushed_version:
        return f"The model was pushed as version {run.pushed_version}.", True
    return _not_pushed(source)


def _not_pushed(source: Source) -> tuple[str, bool | None]:
    evaluated = source.evaluation
    if evaluated is None:
        return f"It ended after {source.run.nodes[-1].node}; no model was evaluated.", None
    if not evaluated.blessed and evaluated.reason:
        return f"The model was not pushed. {evaluated.reason}", None if evaluated.undecided else False
    if not evaluated.blessed:
        missed = [
            f"{metric.name} is {'not defined' if metric.value is None else f'{metric.value:.{NUMBERS_SHOWN}f}'}, "
            f"expected {metric.bar}"
            for metric in evaluated.missed
        ]
        return f"The model was not pushed: {'; '.join(missed) or 'it did not reach every bar'}.", False
    infra = _infra_report(source)
    if infra and not infra.blessed:
        return "The model was not pushed: the model server does not serve what was evaluated.", False
    pushed = source.artifact("Pusher", "pushed_model")
    if pushed is None:
        return f"The model reached every bar; the run ended after {source.run.nodes[-1].node}.", True
    return f"The model was not pushed: {pushed.properties.get('not_pushed_reason', 'no reason was given')}.", None


def nodes_section(source: Source, surroundings: Surroundings) -> Parts:
    """The nodes with states and times, as a graph and a table, without those that do no work of their own."""
    records, origins, links = source.nodes, _origins(source), surroundings.links
    upstream = _without_quiet(surroundings.graph)
    # Nodes that the recipe's pipeline no longer has come last.
    names = [*upstream, *(name for name in records if name not in {*upstream, *QUIET_NODES})]
    states = {name: STATE_WORDS[records[name].state] if name in records else WAITING for name in names}
    times = {name: _took(records[name]) if name in records else "" for name in names}
    pages = {name: links.node(source.run.id, name) if name in records else "" for name in names}

    def detail(name: str) -> str:
        return f"from {origins[name]}" if name in origins else times[name] or states[name]

    return [
        Graph(
            title="Nodes of the run",
            nodes=[Node(name, name, detail(name), states[name], href=pages[name]) for name in names],
            edges=[(before, name) for name, taken in upstream.items() for before in taken],
        ),
        Table(
            "Nodes",
            names,
            [
                Column("Node", lambda name: link(name, pages[name])),
                Column("State", lambda name: state(states[name])),
                Column("Started", lambda name: local_time(records[name].started) if name in records else ""),
                Column("Time", times.get, "number"),
                Column(
                    "Taken from", lambda name: link(origins[name], links.run(origins[name])) if name in origins else ""
                ),
            ],
        ),
    ]


def _took(node: NodeRun) -> str:
    return "" if node.ended is None or node.state == "CACHED" else seconds(node.seconds)


def _origins(source: Source) -> dict[str, str]:
    """The runs that produced cached nodes' outputs, by node."""
    cached = {
        artifacts[0].id: node.node
        for node in source.run.nodes
        if node.state == "CACHED"
        for artifacts in source.outputs.get(node.node, {}).values()
    }
    producers = source.store.producers(cached) if cached else {}
    node_runs = source.store.node_runs_by_id(producers.values())
    runs = {
        cached[artifact]: node_runs[execution][1].run
        for artifact, execution in producers.items()
        if execution in node_runs
    }
    return {node: run for node, run in runs.items() if run}


def _without_quiet(graph: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    """The graph without quiet nodes; edges from one lead from its upstream nodes instead."""

    def upstream(node: str) -> list[str]:
        return [name for taken in graph[node] for name in (upstream(taken) if taken in QUIET_NODES else [taken])]

    return {node: list(dict.fromkeys(upstream(node))) for node in graph if node not in QUIET_NODES}


def serving_section(source: Source, surroundings: Surroundings) -> Parts:
    """How to serve the model and go back, and how it did in the model server and as a TF Lite model."""
    tflite = source.artifact("TFLite", "tflite_model")
    return [
        Text(surroundings.served) if surroundings.served else None,
        Commands(surroundings.commands) if surroundings.commands else None,
        *_infra(_infra_report(source)),
        *_tflite(read_tflite_report(tflite) if tflite else None),
    ]


def _infra_report(source: Source) -> InfraReport | None:
    """The report of the model server's trial; None if there was none."""
    blessing = source.artifact("InfraValidator", "blessing")
    return read_infra_report(blessing) if blessing else None


def _infra(report: InfraReport | None) -> Parts:
    if report is None:
        return []
    heading = Heading("In the model server's own code")
    if report.skipped:
        return [heading, Text(f"It was not tried: {report.skipped}.")]
    table = _paths(report.paths) if report.paths else None
    if not report.blessed:
        return [heading, Text("It does not answer as it was evaluated.", "error"), Bullets(report.problems), table]
    asked = f": {count(report.rows, 'row')}, in every way in which it can be asked" if report.rows is not None else ""
    took = f", loaded and asked in {seconds(report.seconds)}" if report.seconds is not None else ""
    return [heading, Text(line(state("passed"), f" It answers as it was evaluated{asked}{took}.")), table]


def _paths(paths: Sequence[PathDifference]) -> Table:
    """The largest difference of each way to ask, and the row and the feature that cause it."""
    return Table(
        "Served against evaluated and trained",
        paths,
        [
            Column("Asked", lambda path: path.path),
            Column("Rows", lambda path: path.rows, "number"),
            Column("Largest difference", _difference, "number"),
            Column("Allowed", lambda path: f"{path.tolerance.absolute:.1g}", "number"),
            Column("Of", lambda path: path.output),
            Column("In row", lambda path: "" if path.row is None else path.row, "number"),
            Column("By feature", lambda path: path.feature or ""),
        ],
    )


def _difference(path: PathDifference) -> str:
    return "not a number" if path.difference is None else f"{path.difference:.2g}"


def _tflite(report: TFLiteReport | None) -> Parts:
    """The verdict on the TF Lite model, and its measurements; without a size, none was made."""
    if report is None:
        return []
    verdict = line(state("passed"), " It may be pushed") if report.blessed else "Not pushed"
    measured = Facts(
        [
            ("Quantization", report.quantization),
            (
                "Size",
                f"{number(report.size_bytes)} bytes; the SavedModel's variables are {number(report.variables_bytes)}",
            ),
            (
                "Accuracy",
                f"{number(report.accuracy)} on {number(report.rows)} rows; "
                f"the SavedModel's is {number(report.saved_model_accuracy)}",
            ),
            ("Latency", f"{number(report.latency_ms, 3)} ms a row"),
            *(
                (output, f"differs by {number(difference.mean)} in the mean, {number(difference.max)} at most")
                for output, difference in report.differences.items()
            ),
        ]
    )
    refused = f": {report.refused}" if report.refused else ""
    return [
        Heading("TF Lite"),
        Text(line(verdict, refused, "."), "" if report.blessed else "error"),
        measured if report.size_bytes is not None else None,
    ]
