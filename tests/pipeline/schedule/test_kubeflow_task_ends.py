"""How a task ends: its exit code, what is retried, and what the last tasks of a run do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from kfp_standin import PROJECT
from store_builder import StoreBuilder
from task_scene import MILLRACE, RunTask, evaluated, executor_input

from pipeline import cli
from pipeline.commands import node, options
from pipeline.plan.environment import Environment
from pipeline.plan.kubeflow_settings import EXIT_TASK, VERDICT_TASK
from pipeline.run.workplace import Workplace
from pipeline.schedule.kubeflow import task, tasks


def test_a_failing_command_ends_the_task_with_its_exit_code(
    tmp_path: Path, run_task: RunTask, called: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODE", "2")
    assert run_task("Trainer").exit_code == 2
    assert not (tmp_path / "kfp").exists()


def test_a_lasting_failure_is_not_retried_by_kubeflow_but_can_be_by_the_user(
    run_task: RunTask, called: Path, builder: StoreBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder.run("one")
    monkeypatch.setenv("CODE", "1")
    monkeypatch.setenv(task.ATTEMPT_VARIABLE, "0")
    assert run_task("Trainer").exit_code == 1
    called.unlink()
    monkeypatch.setenv("CODE", "0")
    monkeypatch.setenv(task.ATTEMPT_VARIABLE, "1")
    again = run_task("Trainer")
    assert (again.exit_code, again.stderr) == (
        1,
        "Not tried again: it cannot help. The first attempt ended with exit code 1.\n",
    )
    assert not called.exists()
    monkeypatch.setenv(task.ATTEMPT_VARIABLE, "0")
    assert run_task("Trainer").exit_code == 0


@pytest.mark.parametrize("code", [75, 143])
def test_a_passing_failure_is_retried(
    run_task: RunTask, called: Path, builder: StoreBuilder, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    builder.run("one")
    monkeypatch.setenv("CODE", str(code))
    assert run_task("Trainer").exit_code == code
    monkeypatch.setenv("CODE", "0")
    monkeypatch.setenv(task.ATTEMPT_VARIABLE, "1")
    assert run_task("Trainer").exit_code == 0


def test_closing_a_run_cancels_what_its_tasks_left_and_writes_the_report(
    tmp_path: Path, places: Environment, environment_file: str, builder: StoreBuilder
) -> None:
    builder.run("one")
    builder.node("ExampleGen")
    left = builder.node("Trainer", state="RUNNING")
    begun = places.pipeline_root / "small" / "Trainer" / "model" / str(left)
    begun.mkdir(parents=True)
    places.log_root.joinpath("one").mkdir(parents=True)
    words = tasks.command_words(tasks.Work("small", EXIT_TASK, "one", environment_file))
    result = CliRunner().invoke(cli.main, words[1:])
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == "Trainer: its task ended before it did; cancelled."
    (execution,) = builder.store.get_executions_by_id([left])
    assert execution.last_known_state == execution.CANCELED
    assert not begun.exists()
    report = places.log_root / "one" / "report.html"
    slots = task.ExecutorInput.parse(executor_input(tmp_path, EXIT_TASK))

    store = Workplace(places).open_store()
    assert store is not None
    outputs, _ = task.collect_outputs(store, tasks.Work("small", EXIT_TASK, "one", environment_file), report)
    task.write_outputs(slots, outputs, {})
    assert (tmp_path / "kfp" / "report").read_bytes() == report.read_bytes()
    assert b"<html" in report.read_bytes()


def test_the_verdict_shows_the_bars_that_were_missed(
    tmp_path: Path, environment_file: str, builder: StoreBuilder
) -> None:
    builder.run("one")
    bar = {"lower_bound": 0.9, "upper_bound": None, "max_loss": None}
    missed = {"name": "AUC", "value": 0.5, "baseline": None, "passed": False, "bar": bar}
    evaluated(tmp_path, builder, blessed=False, metrics=[missed])
    words = tasks.command_words(tasks.Work("small", VERDICT_TASK, "one", environment_file))
    result = CliRunner().invoke(cli.main, words[1:])
    assert result.exit_code == 0
    assert "Not pushed: the model did not reach every bar." in result.stdout
    assert "0.5000" in result.stdout


def test_the_codes_that_are_tried_again_are_those_of_millrace_node_run() -> None:
    codes = {node.EXIT_TRY_AGAIN, node.EXIT_TERMINATED, options.EXIT_INTERRUPTED}
    assert task.EXIT_AGAIN - {task.EXIT_KILLED} == codes


def test_a_command_that_was_killed_is_tried_again(
    run_task: RunTask, called: Path, builder: StoreBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder.run("one")
    program = Path(os.environ["PATH"].split(os.pathsep)[0]) / "millrace"
    program.write_text("#!/bin/sh\nkill -9 $$\n")
    assert run_task("Trainer").exit_code == 137
    program.write_text(MILLRACE)
    monkeypatch.setenv(task.ATTEMPT_VARIABLE, "1")
    assert run_task("Trainer").exit_code == 0


def test_a_task_that_is_asked_to_end_asks_its_command(tmp_path: Path, environment_file: str) -> None:
    program = tmp_path / "end" / "millrace"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\ntrap 'exit 143' TERM\necho begun\nwhile :; do read line; done\n")
    program.chmod(0o755)
    words = tasks.command_words(tasks.Work("small", "Trainer", "one", environment_file))
    text = executor_input(tmp_path, "Trainer")
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", "kubeflow", "task", "--executor-input", text, "--", *words],
        cwd=PROJECT,
        env={**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGTERM)
    # The shell handles signals between two lines.
    assert process.communicate("\n", timeout=30)[0] == ""
    assert process.returncode == 143
