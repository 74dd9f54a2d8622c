"""What a task's container runs around its work, and what Kubeflow is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from kfp_standin import PROJECT
from store_builder import StoreBuilder

from pipeline import cli, dag, fingerprint, nodes, recipe
from pipeline import environment as environments
from pipeline.commands import line, node
from pipeline.environment import Environment
from pipeline.kubeflow import outputs, task, tasks
from pipeline.kubeflow.settings import EXIT_TASK, VERDICT_TASK

MILLRACE = """\
#!/bin/sh
for word in "$@"; do echo "$word" >> "$CALLED"; done
exit "$CODE"
"""
SUMMARY = {
    "blessed": True,
    "rows": 4967,
    "metrics": [
        {"name": "AUC", "value": 0.95, "baseline": 0.94, "passed": True, "bar": {"lower_bound": 0.9}},
        {"name": "Undefined", "value": None, "baseline": None, "passed": True, "bar": {}},
    ],
    "slices": [],
}
INSIGHTS = {
    "task": "multiclass",
    "rows": 3,
    "rows_kept": 3,
    "confusion": {"labels": ["cat", "dog"], "counts": [[1, 0], [1, 1]]},
}
RunTask = Callable[..., Result]


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a `millrace` on the PATH writes the words that it was called with; it ends with the exit code CODE."""
    program, log = tmp_path / "bin" / "millrace", tmp_path / "called"
    program.parent.mkdir()
    program.write_text(MILLRACE)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    monkeypatch.setenv("CALLED", str(log))
    monkeypatch.setenv("CODE", "0")
    monkeypatch.delenv(task.ATTEMPT_VARIABLE, raising=False)
    return log


@pytest.fixture
def environment_file(places: Environment, project: Path) -> str:
    path = project / "environments" / "tested.yaml"
    path.write_text(yaml.safe_dump(places.model_dump(mode="json", exclude_none=True)))
    return str(path)


def executor_input(tmp_path: Path, name: str, **parameters: Any) -> str:
    """What Kubeflow's launcher gives to a task: artifacts in its object store, but for one with a path of its own."""
    slots = {**tasks.ARTIFACTS.get(name, {}), **tasks.SHOWN.get(name, {})}
    artifacts = {
        slot: {
            "artifacts": [
                {
                    "name": slot,
                    "uri": f"minio://bucket/{name}/{slot}",
                    "customPath": str(tmp_path / "kfp" / slot),
                    "metadata": {"kept": True},
                }
            ]
        }
        for slot in slots
    }
    awaited = {tasks.OUTCOME: {"outputFile": str(tmp_path / "outcome")}} if name == nodes.PUSHER_NODE else {}
    told = {"artifacts": artifacts, "parameters": awaited, "outputFile": str(tmp_path / "kfp" / "output.json")}
    return json.dumps({"inputs": {"parameterValues": {"run": "one", **parameters}}, "outputs": told})


@pytest.fixture
def run_task(tmp_path: Path, called: Path, environment_file: str) -> RunTask:
    """Runs a task of run `one` as its container would: `run_task("Trainer", set=["a=b"])`."""

    def run(name: str, **parameters: Any) -> Result:
        words = tasks.words(tasks.Work("small", name, "one", environment_file))
        given = executor_input(tmp_path, name, **parameters)
        return CliRunner().invoke(cli.main, ["kubeflow", "task", "--executor-input", given, "--", *words])

    return run


def told(tmp_path: Path) -> dict[str, Any]:
    return dict(json.loads((tmp_path / "kfp" / "output.json").read_text()))


def metadata(tmp_path: Path, slot: str) -> dict[str, Any]:
    (artifact,) = told(tmp_path)["artifacts"][slot]["artifacts"]
    assert artifact["uri"].startswith("minio://")
    return dict(artifact["metadata"])


def test_what_is_told_of_each_node_is_what_it_makes() -> None:
    """The table of outputs, held against the pipeline itself."""
    chosen, environment = recipe.load("taxi", ("tflite.quantization=int8",)), environments.load("local")
    prints = fingerprint.fingerprints(chosen, environment, chosen.find_inputs())
    made = {one.id: set(one.outputs) for one in dag.build(chosen, environment, prints, None).components}
    # The resolver repeats what it was given.
    made[nodes.BASELINE_NODE] = {"model"}
    assert {name: set(found) for name, found in tasks.ARTIFACTS.items()} == made


def test_the_command_gets_the_runs_parameters_as_settings(
    run_task: RunTask, called: Path, environment_file: str, builder: StoreBuilder
) -> None:
    builder.run("one")
    result = run_task("Trainer", span="7", set=["trainer.epochs=3", "label=a b"])
    assert result.exit_code == 0, result.output
    assert called.read_text().splitlines() == [
        *("node", "run", "small", "Trainer", "--run", "one", "--env", environment_file),
        *("--set", "data.span=7", "--set", "trainer.epochs=3", "--set", "label=a b"),
    ]


def test_the_newest_span_is_none_in_particular(run_task: RunTask, called: Path, builder: StoreBuilder) -> None:
    builder.run("one")
    run_task("Trainer", span="", set=[])
    assert "--set" not in called.read_text()


def test_a_run_without_a_name_is_called_by_kubeflows_id(
    tmp_path: Path, called: Path, environment_file: str, builder: StoreBuilder
) -> None:
    builder.run("small-0a1b")
    words = tasks.words(tasks.Work("small", "Trainer", "", environment_file))

    def run(job: str) -> Result:
        given = executor_input(tmp_path, "Trainer", job=job)
        return CliRunner().invoke(cli.main, ["kubeflow", "task", "--executor-input", given, "--", *words])

    assert run("0a1b").exit_code == 0
    assert called.read_text().splitlines()[4:6] == ["--run", "small-0a1b"]
    for job in ("", "{{$.pipeline_job_uuid}}"):
        refused = run(job)
        assert refused.exit_code == 2
        assert "Use Kubeflow Pipelines 2.5 or newer, or name each run." in refused.stderr


def test_artifacts_are_told_with_their_place_in_our_store(
    tmp_path: Path, run_task: RunTask, builder: StoreBuilder
) -> None:
    builder.run("one")
    model, logs = builder.artifact("Model", "/mnt/model"), builder.artifact("ModelRun", "/mnt/logs")
    builder.node("Trainer", outputs={"model": model, "model_run": logs})
    assert run_task("Trainer").exit_code == 0
    shown = {"uri": "/mnt/model", "id": model, "type": "Model"}
    assert metadata(tmp_path, "model") == {"kept": True, **shown}
    assert json.loads((tmp_path / "kfp" / "model").read_text()) == shown
    assert told(tmp_path)["parameterValues"] == {}


def test_an_output_that_a_node_did_not_make_is_told_as_such(
    tmp_path: Path, run_task: RunTask, builder: StoreBuilder
) -> None:
    builder.run("one")
    builder.node(nodes.BASELINE_NODE)
    run_task(nodes.BASELINE_NODE)
    assert metadata(tmp_path, "model") == {"kept": True, "made": "nothing"}
    assert not (tmp_path / "kfp" / "model").exists()


def evaluated(tmp_path: Path, builder: StoreBuilder, **changes: Any) -> None:
    folder = tmp_path / "evaluation"
    folder.mkdir()
    (folder / "summary.json").write_text(json.dumps(SUMMARY | changes))
    (folder / "insights.json").write_text(json.dumps(INSIGHTS))
    builder.node("Evaluator", outputs={"evaluation": builder.artifact("ModelEvaluation", folder)})


def test_the_evaluators_metrics_and_confusion_are_kubeflows_own(
    tmp_path: Path, run_task: RunTask, builder: StoreBuilder
) -> None:
    builder.run("one")
    evaluated(tmp_path, builder)
    assert run_task("Evaluator").exit_code == 0
    assert metadata(tmp_path, "metrics") == {"kept": True, "AUC": 0.95, "rows": 4967, "good_enough": "true"}
    assert metadata(tmp_path, "confusion")["confusionMatrix"] == {
        "annotationSpecs": [{"displayName": "cat"}, {"displayName": "dog"}],
        "rows": [{"row": [1, 0]}, {"row": [1, 1]}],
    }


def test_metrics_that_cannot_be_read_do_not_undo_the_work(
    tmp_path: Path, run_task: RunTask, builder: StoreBuilder
) -> None:
    builder.run("one")
    evaluated(tmp_path, builder)
    (tmp_path / "evaluation" / "summary.json").write_text("{")
    result = run_task("Evaluator")
    assert result.exit_code == 0
    assert result.stderr.startswith("Done, but Kubeflow's pages will not show what was made: ")
    assert "summary.json" in result.stderr


@pytest.mark.parametrize(("blessed", "outcome"), [(True, "not served"), (False, "not good enough")])
def test_the_pusher_says_what_became_of_the_model(
    tmp_path: Path, run_task: RunTask, builder: StoreBuilder, blessed: bool, outcome: str
) -> None:
    builder.run("one")
    evaluated(tmp_path, builder, blessed=blessed)
    builder.node(nodes.PUSHER_NODE)
    assert run_task(nodes.PUSHER_NODE).exit_code == 0
    assert told(tmp_path)["parameterValues"] == {"outcome": outcome}


def test_without_its_outcome_the_pushers_task_fails(run_task: RunTask, called: Path) -> None:
    result = run_task(nodes.PUSHER_NODE)
    assert result.exit_code == 1
    assert "the metadata store is empty." in result.stderr


def test_a_failing_command_ends_the_task_with_its_exit_code(
    tmp_path: Path, run_task: RunTask, called: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODE", "2")
    assert run_task("Trainer").exit_code == 2
    assert not (tmp_path / "kfp").exists()


def test_what_cannot_help_is_not_tried_again_by_kubeflow_but_is_by_the_user(
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
def test_what_may_help_is_tried_again(
    run_task: RunTask, called: Path, builder: StoreBuilder, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    builder.run("one")
    monkeypatch.setenv("CODE", str(code))
    assert run_task("Trainer").exit_code == code
    monkeypatch.setenv("CODE", "0")
    monkeypatch.setenv(task.ATTEMPT_VARIABLE, "1")
    assert run_task("Trainer").exit_code == 0


@pytest.mark.parametrize("listed", ["trainer.epochs=3", [3], {"a": "b"}])
def test_settings_that_are_no_list_of_texts_are_refused(run_task: RunTask, called: Path, listed: Any) -> None:
    result = run_task("Trainer", set=listed)
    assert result.exit_code == 2
    assert "the pipeline's parameter set is" in result.stderr
    assert not called.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"outputs": {"artifacts": {"a": {"artifacts": []}}}}'])
def test_what_is_no_executor_input_is_refused(text: str) -> None:
    words = tasks.words(tasks.Work("small", "Trainer", "one", "local"))
    result = CliRunner().invoke(cli.main, ["kubeflow", "task", "--executor-input", text, "--", *words])
    assert result.exit_code == 2
    assert "expected the JSON that Kubeflow's launcher gives." in result.stderr


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("gs://bucket/a", Path("/gcs/bucket/a")),
        ("s3://bucket/a", Path("/s3/bucket/a")),
        ("minio://bucket/a", Path("/minio/bucket/a")),
        ("oci://registry/a", None),
    ],
)
def test_the_launcher_takes_an_artifact_from_where_its_uri_says(uri: str, path: Path | None) -> None:
    given = {"outputs": {"artifacts": {"a": {"artifacts": [{"uri": uri}]}}, "outputFile": "/tmp/o"}}  # noqa: S108
    assert outputs.ExecutorInput.parse(json.dumps(given)).slots["a"].path == path


def test_closing_a_run_cancels_what_its_tasks_left_and_writes_the_report(
    tmp_path: Path, places: Environment, environment_file: str, builder: StoreBuilder
) -> None:
    builder.run("one")
    builder.node("ExampleGen")
    left = builder.node("Trainer", state="RUNNING")
    begun = places.pipeline_root / "small" / "Trainer" / "model" / str(left)
    begun.mkdir(parents=True)
    places.log_root.joinpath("one").mkdir(parents=True)
    words = tasks.words(tasks.Work("small", EXIT_TASK, "one", environment_file))
    result = CliRunner().invoke(cli.main, words[1:])
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == "Trainer: its task ended before it did; cancelled."
    (execution,) = builder.store.get_executions_by_id([left])
    assert execution.last_known_state == execution.CANCELED
    assert not begun.exists()
    report = places.log_root / "one" / "report.html"
    slots = outputs.ExecutorInput.parse(executor_input(tmp_path, EXIT_TASK))
    from pipeline import stores

    store = stores.opened(places)
    assert store is not None
    found, _ = outputs.collect(store, tasks.Work("small", EXIT_TASK, "one", environment_file), report)
    outputs.write(slots, found, {})
    assert (tmp_path / "kfp" / "report").read_bytes() == report.read_bytes()
    assert b"<html" in report.read_bytes()


def test_the_verdict_shows_the_bars_that_were_missed(
    tmp_path: Path, environment_file: str, builder: StoreBuilder
) -> None:
    builder.run("one")
    bar = {"lower_bound": 0.9, "upper_bound": None, "max_loss": None}
    missed = {"name": "AUC", "value": 0.5, "baseline": None, "passed": False, "bar": bar}
    evaluated(tmp_path, builder, blessed=False, metrics=[missed])
    words = tasks.words(tasks.Work("small", VERDICT_TASK, "one", environment_file))
    result = CliRunner().invoke(cli.main, words[1:])
    assert result.exit_code == 0
    assert "Not pushed: the model did not reach every bar." in result.stdout
    assert "0.5000" in result.stdout


def test_the_codes_that_are_tried_again_are_those_of_millrace_node_run() -> None:
    codes = {node.EXIT_TRY_AGAIN, node.EXIT_TERMINATED, line.EXIT_INTERRUPTED}
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
    words = tasks.words(tasks.Work("small", "Trainer", "one", environment_file))
    given = executor_input(tmp_path, "Trainer")
    process = subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", "kubeflow", "task", "--executor-input", given, "--", *words],
        cwd=PROJECT,
        env={**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGTERM)
    # The shell looks at its signals between two lines.
    assert process.communicate("\n", timeout=30)[0] == ""
    assert process.returncode == 143
