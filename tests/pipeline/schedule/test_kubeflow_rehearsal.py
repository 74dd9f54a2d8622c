"""The compiled spec's commands, run locally: their order, their values, and what happens when one fails."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from rich.console import Console

from pipeline import cli
from pipeline.plan import environment as environments
from pipeline.plan import nodes, recipe
from pipeline.plan.environment import Environment
from pipeline.plan.kubeflow_settings import EXIT_TASK, TASKS, VERDICT_TASK
from pipeline.schedule.kubeflow import rehearsal, spec, steps, tasks, watch
from pipeline.schedule.kubeflow.rehearsal import Rehearsal
from pipeline.schedule.kubeflow.steps import Step

# Called as `millrace kubeflow task --executor-input JSON -- millrace node run taxi NODE --run … --env …`: writes what
# it was given to CALLED/<task>-<attempt>, and the outcome, and exits with the code that CODES has for that attempt.
MILLRACE = """\
#!/usr/bin/env python3
import json, os, sys
given = json.loads(sys.argv[4])
words = sys.argv[6:]
name = words[4] if words[1] == "node" else words[2]
attempt = os.environ["KFP_RETRY_INDEX"]
with open(os.path.join(os.environ["CALLED"], f"{name}-{attempt}"), "x") as called:
    json.dump({"words": words, "given": given, "order": len(os.listdir(os.environ["CALLED"]))}, called)
print(name, "says hello")
outcome = json.loads(os.environ["OUTCOME"])
if outcome:
    with open(given["outputs"]["outputFile"], "w") as told:
        json.dump({"artifacts": {}, "parameterValues": {"outcome": outcome}}, told)
sys.exit(json.loads(os.environ["CODES"]).get(f"{name}-{attempt}", 0))
"""
Rehearse = Callable[..., list[watch.TaskState]]


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder, program = tmp_path / "called", tmp_path / "bin" / "millrace"
    folder.mkdir()
    program.parent.mkdir()
    program.write_text(MILLRACE)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    monkeypatch.setenv("CALLED", str(folder))
    monkeypatch.setenv("CODES", "{}")
    monkeypatch.setenv("OUTCOME", '"pushed"')
    monkeypatch.setattr(rehearsal, "POLL_SECONDS", 0.01)
    return folder


@cache
def compiled() -> str:
    return spec.compile_spec(recipe.load("taxi"), environments.load("kubeflow"), "kubeflow", ())


def steps_of_taxi(**parameters: Any) -> list[Step]:
    return steps.read_steps(compiled(), {"run": "one", **parameters}, job="job-1")


@pytest.fixture
def rehearse(tmp_path: Path, called: Path) -> Rehearse:
    """Rehearses taxi with a `millrace` that only records how it was called, without waits between attempts."""

    def run(at_once: int = 4) -> list[watch.TaskState]:
        quick = [Step(**{**vars(step), "backoff_seconds": 0.0}) for step in steps_of_taxi()]
        names = {tasks.task_key(task): task for task in TASKS}
        (tmp_path / "logs").mkdir()
        rehearsal = Rehearsal(quick, names, tmp_path / "logs", "here", at_once)
        return rehearsal.run(watch.View(Console(file=io.StringIO()), "taxi"))

    return run


def calls(called: Path) -> dict[str, dict[str, Any]]:
    return {path.name: json.loads(path.read_text()) for path in called.iterdir()}


def ended(states: list[watch.TaskState]) -> dict[str, str]:
    return {task.name: task.state for task in states}


def test_the_steps_of_a_spec_are_its_tasks_after_their_upstream_ones() -> None:
    steps = steps_of_taxi()
    graph = nodes.graph(recipe.load("taxi"))
    by_key = {step.key: step for step in steps}
    for node, upstream in graph.items():
        assert by_key[tasks.task_key(node)].upstream == {tasks.task_key(name) for name in upstream}
    assert by_key["not-good-enough"].upstream == {"pusher"}
    condition = by_key["not-good-enough"].condition
    assert condition is not None
    assert (condition[0].step, condition[0].output, condition[1]) == ("pusher", "outcome", "not good enough")
    last = by_key[tasks.task_key(EXIT_TASK)]
    assert (last.always, last.retries) == (True, 0)
    assert last.upstream == {step.key for step in steps} - {last.key}
    trainer = by_key["trainer"]
    assert (trainer.retries, trainer.backoff_seconds, trainer.backoff_factor) == (2, 30.0, 2.0)


def test_each_step_gets_the_pipelines_parameters(called: Path) -> None:
    step = next(step for step in steps_of_taxi(span="7", set=["a=b"]) if step.key == "trainer")
    values = {name: source.value for name, source in step.inputs.items()}
    assert values == {"run": "one", "span": "7", "set": ["a=b"], "job": "job-1"}
    words = steps.filled_command(step, {"inputs": {"parameterValues": values}})
    assert words[3:5] == ["--executor-input", json.dumps({"inputs": {"parameterValues": values}})]
    assert words[5:] == ["--", "millrace", "node", "run", "taxi", "Trainer", "--run", "one", "--env", "kubeflow"]


def test_every_command_of_the_spec_is_run_with_the_environment_of_this_machine(
    rehearse: Rehearse, called: Path
) -> None:
    states = ended(rehearse())
    wanted = [node for node in nodes.NODES if node != nodes.TFLITE_NODE]
    assert states == dict.fromkeys([*wanted, EXIT_TASK], "done")
    recorded = calls(called)
    assert set(recorded) == {f"{node}-0" for node in wanted} | {"close-0"}
    for node in wanted:
        words = ["millrace", "node", "run", "taxi", node, "--run", "one", "--env", "here"]
        assert recorded[f"{node}-0"]["words"] == words
    order = {name.removesuffix("-0"): call["order"] for name, call in recorded.items()}
    assert order["StatisticsGen"] < order["ExampleValidator"] < order["DataGate"] < order["Transform"]
    assert max(order, key=lambda name: order[name]) == "close"


def test_a_model_that_was_not_good_enough_has_its_own_task(
    rehearse: Rehearse, called: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUTCOME", '"not good enough"')
    assert ended(rehearse())[VERDICT_TASK] == "done"
    assert "verdict-0" in calls(called)


def test_what_comes_after_a_failed_task_is_not_run_but_the_last_task_is(
    rehearse: Rehearse, called: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODES", '{"Transform-0": 1}')
    states = rehearse()
    by_task = ended(states)
    assert (by_task["DataGate"], by_task["Transform"], by_task["Trainer"]) == ("done", "failed", "skipped")
    assert (by_task["Pusher"], by_task[EXIT_TASK]) == ("skipped", "done")
    error = next(task.error for task in states if task.name == "Transform")
    assert error is not None
    assert error.startswith("exit code 1; ")
    assert error.endswith("transform.log\nTransform says hello")
    assert "Transform-1" not in calls(called)


def test_a_step_that_may_succeed_is_retried_as_often_as_the_spec_says(
    rehearse: Rehearse, called: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODES", '{"Trainer-0": 75, "Trainer-1": 143, "Pusher-0": 75, "Pusher-1": 75, "Pusher-2": 75}')
    by_task = ended(rehearse())
    assert (by_task["Trainer"], by_task["Pusher"]) == ("done", "failed")
    assert {"Trainer-2", "Pusher-2"} <= set(calls(called))


def test_a_pusher_that_does_not_say_what_became_of_the_model_has_failed(
    rehearse: Rehearse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUTCOME", "null")
    states = rehearse(at_once=1)
    error = next(task.error for task in states if task.name == "Pusher")
    assert error == "its output parameters are missing"


def test_rehearse_reports_failures_and_how_to_go_on(
    called: Path, places: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "here.yaml"
    path.write_text(yaml.safe_dump(places.model_dump(mode="json", exclude_none=True)))
    monkeypatch.setenv("CODES", '{"ExampleGen-0": 2}')
    result = CliRunner().invoke(cli.main, ["kubeflow", "rehearse", "taxi", "--run", "one", "--on", str(path)])
    assert result.exit_code == 1
    log = places.log_root / "one" / "kubeflow" / "example-gen.log"
    assert f"error: ExampleGen failed: exit code 2; {log}\nExampleGen says hello\nGo on:  " in result.stderr
    assert result.stderr.endswith(f"kubeflow rehearse taxi --run one --on {path}\n")
    assert "  ExampleGen        failed" in result.stdout
    assert calls(called)["ExampleGen-0"]["words"][-1] == str(path)
