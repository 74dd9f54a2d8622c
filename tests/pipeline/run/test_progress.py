"""The live view of a run, in a terminal and elsewhere."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from metadata.store import NodeRun
from pipeline.plan import nodes
from pipeline.run import progress
from pipeline.run.folder import RunFolder
from pipeline.run.progress import View


def node_run(node: str, state: str, seconds: float = 2.5) -> NodeRun:
    return NodeRun(1, node, state, 1_000, 1_000 + int(seconds * 1000), {})


class Recorded:
    """A view whose output can be read; a terminal is redrawn, otherwise there is a line per change."""

    def __init__(self, terminal: bool, title: str = "small: is it [big]?") -> None:
        self.file = io.StringIO()
        console = Console(
            file=self.file, width=100, height=40, force_terminal=terminal, no_color=True, legacy_windows=False
        )
        self.view = View(console, title, nodes.NODES)

    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.file.getvalue().splitlines()]


def test_plain_a_line_whenever_a_state_changes(tmp_path: Path) -> None:
    recorded = Recorded(terminal=False)
    with recorded.view as view:
        view.update({}, RunFolder(tmp_path))
        view.update({"ExampleGen": node_run("ExampleGen", "RUNNING")}, RunFolder(tmp_path))
        view.update({"ExampleGen": node_run("ExampleGen", "RUNNING")}, RunFolder(tmp_path))
        done = {"ExampleGen": node_run("ExampleGen", "COMPLETE"), "StatisticsGen": node_run("StatisticsGen", "FAILED")}
        view.update(done, RunFolder(tmp_path))
        view.update(done, RunFolder(tmp_path))
    assert recorded.lines() == [
        "small: is it [big]?",
        "  ExampleGen        running",
        "  ExampleGen        done       2.5 s",
        "  StatisticsGen     failed     2.5 s",
    ]


def test_plain_a_look_that_sees_nothing_changes_nothing(tmp_path: Path) -> None:
    recorded = Recorded(terminal=False)
    with recorded.view as view:
        view.update({"ExampleGen": node_run("ExampleGen", "RUNNING")}, RunFolder(tmp_path))
        view.update({}, RunFolder(tmp_path))
        view.update({"ExampleGen": node_run("ExampleGen", "COMPLETE")}, RunFolder(tmp_path))
    assert recorded.lines()[1:] == ["  ExampleGen        running", "  ExampleGen        done       2.5 s"]


def test_terminal_a_table_of_all_nodes(tmp_path: Path) -> None:
    RunFolder(tmp_path).progress_path("Trainer").write_text(
        json.dumps({"epoch": 2, "epochs": 5, "metrics": {"loss": 0.25, "val_loss": 0.5}, "note": "bfloat16"})
    )
    recorded = Recorded(terminal=True)
    with recorded.view as view:
        recorded.file.truncate(0)
        view.update(
            {
                "ExampleGen": node_run("ExampleGen", "CACHED"),
                "Transform": node_run("Transform", "COMPLETE"),
                "Trainer": node_run("Trainer", "RUNNING"),
            },
            RunFolder(tmp_path),
        )
        text = Text.from_ansi(recorded.file.getvalue()).plain
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.split()}
    assert "small: is it [big]?" in text
    assert rows["ExampleGen"] == ["cached"]
    assert rows["Transform"] == ["done", "2.5", "s"]
    assert rows["Trainer"][0] == "running"
    assert rows["Trainer"][-5:] == ["epoch", "2/5", "loss", "0.2500", "bfloat16"]
    assert rows["Pusher"] == ["waiting"]
    assert "BaselineModel" not in text
    assert "starting TensorFlow" not in text


def test_terminal_says_that_it_is_starting_until_there_is_a_node() -> None:
    recorded = Recorded(terminal=True)
    with recorded.view:
        assert "starting TensorFlow, TFX and Beam" in recorded.file.getvalue()


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ("NEW", "running"),
        ("RUNNING", "running"),
        ("COMPLETE", "done"),
        ("CACHED", "cached"),
        ("FAILED", "failed"),
        ("CANCELED", "stopped"),
    ],
)
def test_states_in_the_users_words(state: str, word: str) -> None:
    assert progress.state_of(node_run("Trainer", state)) == word
    assert word in progress.STYLES


def test_a_node_without_a_record_waits() -> None:
    assert progress.state_of(None) == "waiting"


def test_there_is_no_note_without_a_progress_file(tmp_path: Path) -> None:
    assert progress.progress_note(RunFolder(tmp_path), "Trainer") == ""


def write_rows(folder: Path, rows: int, total: int | None, share: float, seconds: float) -> None:
    counted = {"rows": rows, "total": total, "share": share, "seconds": seconds}
    RunFolder(folder).progress_path("StatisticsGen").write_text(json.dumps(counted))


@pytest.mark.parametrize(
    ("rows", "total", "share", "seconds", "note"),
    [
        (0, 3_000_400, 0.0, 0.0, ""),
        (750_100, 3_000_400, 0.25, 10.0, "750,100 of 3,000,400 rows  75,010 rows/s  30 s left"),
        (300_040, 3_000_400, 0.1, 20.0, "300,040 of 3,000,400 rows  15,002 rows/s  3 min left"),
        (3_000_400, 3_000_400, 1.0, 40.0, "3,000,400 of 3,000,400 rows  75,010 rows/s"),
        (500, None, 0.5, 2.0, "500 rows (50%)  250 rows/s  2 s left"),
        (500, None, 0.0, 2.0, "500 rows  250 rows/s"),
    ],
)
def test_rows_rate_and_time_left(
    tmp_path: Path, rows: int, total: int | None, share: float, seconds: float, note: str
) -> None:
    write_rows(tmp_path, rows, total, share, seconds)
    assert progress.progress_note(RunFolder(tmp_path), "StatisticsGen") == note


def test_plain_a_long_node_says_now_and_then_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    running = {"StatisticsGen": node_run("StatisticsGen", "RUNNING")}
    recorded = Recorded(terminal=False)
    with recorded.view as view:
        view.update(running, RunFolder(tmp_path))
        write_rows(tmp_path, 1_000, 4_000, 0.25, 25.0)
        for seconds in (25, 10, 10, 25):
            now[0] += seconds
            view.update(running, RunFolder(tmp_path))
    assert recorded.lines() == [
        "small: is it [big]?",
        "  StatisticsGen     running",
        "  StatisticsGen     running  1,000 of 4,000 rows  40 rows/s  1 min left",
        "  StatisticsGen     running  1,000 of 4,000 rows  40 rows/s  1 min left",
    ]
