"""The wrapper around a task's work, and what it reports to Kubeflow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from store_builder import StoreBuilder
from task_scene import RunTask, evaluated, executor_input, metadata, written_output

from pipeline import cli
from pipeline.plan import dag, fingerprint, nodes, recipe
from pipeline.plan import environment as environments
from pipeline.schedule.kubeflow import task, tasks


def test_what_is_reported_of_each_node_is_what_it_makes() -> None:
    """The table of outputs, compared with the pipeline itself."""
    chosen, environment = recipe.load("taxi", ("tflite.quantization=int8",)), environments.load("local")
    prints = fingerprint.fingerprints(chosen, environment, chosen.find_inputs())
    outputs = {
        component.id: set(component.outputs)
        for component in dag.build(chosen, environment, prints, None, None).components
    }
    # The resolver repeats what it was given.
    outputs[nodes.BASELINE_NODE] = {"model", "reference_model"}
    assert {name: set(tasks.shown_artifacts(node)) for name, node in nodes.table(chosen).items()} == outputs


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


def test_an_empty_span_passes_no_setting(run_task: RunTask, called: Path, builder: StoreBuilder) -> None:
    builder.run("one")
    run_task("Trainer", span="", set=[])
    assert "--set" not in called.read_text()


def test_a_run_without_a_name_is_called_by_kubeflows_id(
    tmp_path: Path, called: Path, environment_file: str, builder: StoreBuilder
) -> None:
    builder.run("small-0a1b")
    words = tasks.command_words(tasks.Work("small", "Trainer", "", environment_file))

    def run(job: str) -> Result:
        text = executor_input(tmp_path, "Trainer", job=job)
        return CliRunner().invoke(cli.main, ["kubeflow", "task", "--executor-input", text, "--", *words])

    assert run("0a1b").exit_code == 0
    assert called.read_text().splitlines()[4:6] == ["--run", "small-0a1b"]
    for job in ("", "{{$.pipeline_job_uuid}}"):
        refused = run(job)
        assert refused.exit_code == 2
        assert "Use Kubeflow Pipelines 2.5 or newer, or name each run." in refused.stderr


def test_artifacts_are_reported_with_their_place_in_our_store(
    tmp_path: Path, run_task: RunTask, builder: StoreBuilder
) -> None:
    builder.run("one")
    model, logs = builder.artifact("Model", "/mnt/model"), builder.artifact("ModelRun", "/mnt/logs")
    builder.node("Trainer", outputs={"model": model, "model_run": logs})
    assert run_task("Trainer").exit_code == 0
    shown = {"uri": "/mnt/model", "id": model, "type": "Model"}
    assert metadata(tmp_path, "model") == {"kept": True, **shown}
    assert json.loads((tmp_path / "kfp" / "model").read_text()) == shown
    assert written_output(tmp_path)["parameterValues"] == {}


def test_an_output_that_a_node_did_not_make_is_reported_as_such(
    tmp_path: Path, run_task: RunTask, builder: StoreBuilder
) -> None:
    builder.run("one")
    builder.node(nodes.BASELINE_NODE)
    run_task(nodes.BASELINE_NODE)
    assert metadata(tmp_path, "model") == {"kept": True, "made": "nothing"}
    assert not (tmp_path / "kfp" / "model").exists()


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
    assert written_output(tmp_path)["parameterValues"] == {"outcome": outcome}


def test_without_its_outcome_the_pushers_task_fails(run_task: RunTask, called: Path) -> None:
    result = run_task(nodes.PUSHER_NODE)
    assert result.exit_code == 1
    assert "the metadata store is empty." in result.stderr


@pytest.mark.parametrize("listed", ["trainer.epochs=3", [3], {"a": "b"}])
def test_settings_that_are_not_a_list_of_texts_are_refused(run_task: RunTask, called: Path, listed: Any) -> None:
    result = run_task("Trainer", set=listed)
    assert result.exit_code == 2
    assert "the pipeline's parameter set is" in result.stderr
    assert not called.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"outputs": {"artifacts": {"a": {"artifacts": []}}}}'])
def test_anything_but_an_executor_input_is_refused(text: str) -> None:
    words = tasks.command_words(tasks.Work("small", "Trainer", "one", "local"))
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
    message = {"outputs": {"artifacts": {"a": {"artifacts": [{"uri": uri}]}}, "outputFile": "/tmp/o"}}  # noqa: S108
    assert task.ExecutorInput.parse(json.dumps(message)).slots["a"].path == path
