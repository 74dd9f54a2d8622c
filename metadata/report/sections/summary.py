"""What became of the run, in a sentence."""

from __future__ import annotations

from dataclasses import dataclass

from metadata.contents import failure, places, reading
from metadata.contents.failure import Failure
from metadata.contents.inspection import InfraReport
from metadata.contents.reading import ContentError
from metadata.records import KILLED, QUIET_NODES, STATE_WORDS, RunRecord
from metadata.report.source import Source, Surroundings

MILLISECONDS = 1000
NUMBERS_SHOWN = 4


@dataclass(frozen=True)
class Summary:
    """What a reader wants to know first.

    Attributes:
        run: The run.
        state: Its state in a word.
        verdict: What became of it, as a sentence.
        good: Whether it went well; None where that is not decided.
        seconds: How long it took; None while it goes on, and where it was killed.
        ran: How many nodes were run.
        cached: How many took their results from earlier runs.
        served: What became of the pushed model since, or an empty text.
        failure: What stopped it, or None.
        log: The log of the node that failed, or None.
    """

    run: RunRecord
    state: str
    verdict: str
    good: bool | None
    seconds: float | None
    ran: int
    cached: int
    served: str
    failure: Failure | None
    log: str | None


def read(source: Source, surroundings: Surroundings) -> Summary:
    """Reads it; a file that is missing or broken is named in the verdict."""
    run, logs = source.run, surroundings.log_folder
    try:
        failed = failure.of(logs) if logs else None
        verdict, good = _verdict(source, failed)
    except ContentError as error:
        failed, verdict, good = None, f"What came out of it cannot be told: {error}.", None
    counted = [node for node in run.nodes if node.node not in QUIET_NODES]
    return Summary(
        run=run,
        state="starting" if run.state == "NEW" else STATE_WORDS[run.state],
        verdict=verdict,
        good=good,
        seconds=None if run.ended is None else (run.ended - run.started) / MILLISECONDS,
        ran=sum(node.state == "COMPLETE" for node in counted),
        cached=sum(node.state == "CACHED" for node in counted),
        served=surroundings.served,
        failure=failed,
        log=str(logs / f"{failed.node}.log") if logs and failed else None,
    )


def _verdict(source: Source, failed: Failure | None) -> tuple[str, bool | None]:
    """The sentence, and whether it is good news."""
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
        return f"It goes on: {', '.join(running)}." if running else "It begins.", None
    if run.pushed_version:
        return f"The model was pushed as version {run.pushed_version}.", True
    return _not_pushed(source)


def _not_pushed(source: Source) -> tuple[str, bool | None]:
    evaluated = source.evaluation
    if evaluated is None:
        return f"It ended after {source.run.nodes[-1].node}; no model was evaluated.", None
    if not evaluated.blessed:
        missed = [
            f"{metric.name} is {'not defined' if metric.value is None else f'{metric.value:.{NUMBERS_SHOWN}f}'}, "
            f"expected {metric.bar}"
            for metric in evaluated.missed
        ]
        return f"The model was not pushed: {'; '.join(missed) or 'it did not reach every bar'}.", False
    blessing = source.artifact("InfraValidator", "blessing")
    if blessing and not reading.record(blessing.file(places.INFRA_REPORT_FILE), InfraReport).blessed:
        return "The model was not pushed: the model server does not serve what was evaluated.", False
    pushed = source.artifact("Pusher", "pushed_model")
    if pushed is None:
        return f"The model reached every bar; the run ended after {source.run.nodes[-1].node}.", True
    return f"The model was not pushed: {pushed.properties.get('not_pushed_reason', 'no reason was given')}.", None
