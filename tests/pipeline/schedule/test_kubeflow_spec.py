"""The output of `millrace kubeflow compile`: the specs of all recipes, and where each setting goes."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import kfp
import pytest
import yaml
from click.testing import CliRunner
from kfp import components

from contracts.errors import SettingsError
from pipeline import cli
from pipeline.plan import environment as environments
from pipeline.plan import nodes, recipe
from pipeline.plan.environment import Environment
from pipeline.plan.kubeflow_settings import EXIT_TASK, TASKS, VERDICT_TASK
from pipeline.schedule.kubeflow import spec, tasks

SPECS = Path(__file__).parent / "specs"
SDK = f"kfp-{'.'.join(kfp.__version__.split('.')[:2])}"


def compiled(environment: Environment, *overrides: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The two documents of the taxi recipe."""
    text = spec.compile_spec(recipe.load("taxi", overrides), environment, "kubeflow", overrides)
    pipeline, platform = yaml.safe_load_all(text)
    return pipeline, platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]


def container(pipeline: dict[str, Any], name: str) -> dict[str, Any]:
    return dict(pipeline["deploymentSpec"]["executors"][f"exec-{tasks.task_key(name)}"]["container"])


def inner(pipeline: dict[str, Any]) -> dict[str, Any]:
    """The tasks within the exit handler."""
    return dict(pipeline["components"]["comp-exit-handler-1"]["dag"]["tasks"])


def assert_has(actual: Any, expected: Any) -> None:
    """Newer SDKs write the same once more in fields of their own, which are not looked at."""
    if isinstance(expected, dict):
        for key, value in expected.items():
            assert_has(actual[key], value)
    else:
        assert actual == expected


def edited(tmp_path: Path, *changes: tuple[str, str]) -> Environment:
    """environments/kubeflow.yaml with changes."""
    text = (Path("environments") / "kubeflow.yaml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "kubeflow.yaml"
    path.write_text(text)
    return environments.load(str(path))


@pytest.fixture
def kubeflow() -> Environment:
    return environments.load("kubeflow")


@pytest.mark.usefixtures("compiles_anew")
@pytest.mark.parametrize("name", recipe.names())
def test_the_spec_of_each_recipe_is_the_one_that_was_reviewed(name: str, kubeflow: Environment) -> None:
    """To accept a difference: `millrace kubeflow compile NAME -o tests/pipeline/schedule/specs/SDK/NAME.yaml`."""
    path = SPECS / SDK / f"{name}.yaml"
    compiled_text = spec.compile_spec(recipe.load(name), kubeflow, "kubeflow", ())
    reviewed = path.read_text() if path.exists() else ""
    assert not list(
        difflib.unified_diff(reviewed.splitlines(), compiled_text.splitlines(), str(path), "compiled now", lineterm="")
    )


@pytest.mark.parametrize("path", sorted(SPECS.glob("kfp-*/*.yaml")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_either_sdk_compiled_is_accepted_by_the_one_that_is_here(path: Path) -> None:
    loaded = components.load_component_from_file(str(path)).pipeline_spec
    executors = loaded.deployment_spec.fields["executors"].struct_value.fields
    assert set(executors) == set(yaml.safe_load(path.read_text().split("---")[0])["deploymentSpec"]["executors"])


def test_each_node_is_a_task_that_runs_millrace_node_run(kubeflow: Environment) -> None:
    pipeline, _ = compiled(kubeflow)
    for node in nodes.names(recipe.load("taxi")):
        args = container(pipeline, node)["args"]
        assert container(pipeline, node)["command"] == ["millrace"]
        assert args[: args.index("--")] == ["kubeflow", "task", "--executor-input", "{{$}}"]
        run = "{{$.inputs.parameters['run']}}"
        words = ["millrace", "node", "run", "taxi", node, "--run", run, "--env", "kubeflow"]
        assert args[args.index("--") + 1 :] == words


def test_tasks_depend_on_what_their_nodes_take_and_on_nothing_else(kubeflow: Environment) -> None:
    pipeline, _ = compiled(kubeflow, "tflite.quantization=int8")
    dependencies = {key: set(task.get("dependentTasks", [])) for key, task in inner(pipeline).items()}
    graph = nodes.graph(recipe.load("taxi", ("tflite.quantization=int8",)))
    assert {tasks.task_key(node) for node in graph} | {"condition-2"} == set(dependencies)
    for node, upstream in graph.items():
        assert dependencies[tasks.task_key(node)] == {tasks.task_key(name) for name in upstream}
    assert dependencies["example-gen"] == dependencies["schema-gen"] == set()
    assert dependencies["condition-2"] == {"pusher"}


def test_no_task_is_cached_by_kubeflow(kubeflow: Environment) -> None:
    pipeline, _ = compiled(kubeflow)
    verdict = pipeline["components"]["comp-condition-2"]["dag"]["tasks"]
    all_tasks = {**inner(pipeline), **verdict, "close-run": pipeline["root"]["dag"]["tasks"]["close-run"]}
    cached = {key: task.get("cachingOptions") for key, task in all_tasks.items() if key != "condition-2"}
    assert set(cached) == {tasks.task_key(name) for name in TASKS if name != nodes.TFLITE_NODE}
    assert all(options == {} for options in cached.values())


def test_run_span_and_set_are_the_pipelines_parameters_and_reach_every_task(kubeflow: Environment) -> None:
    pipeline, _ = compiled(kubeflow, "trainer.train_steps=7")
    parameters = pipeline["root"]["inputDefinitions"]["parameters"]
    assert parameters["run"]["parameterType"] == "STRING"
    assert (parameters["run"]["defaultValue"], parameters["run"]["isOptional"]) == ("", True)
    assert (parameters["span"]["defaultValue"], parameters["span"]["parameterType"]) == ("", "STRING")
    assert (parameters["set"]["defaultValue"], parameters["set"]["parameterType"]) == (
        ["trainer.train_steps=7"],
        "LIST",
    )
    for key, task in inner(pipeline).items():
        wanted = {name: f"pipelinechannel--{name}" for name in ("run", "span", "set")}
        inputs = task["inputs"]["parameters"]
        names = {name: inputs[name]["componentInputParameter"] for name in wanted} if key != "condition-2" else wanted
        assert names == wanted
        if key != "condition-2":
            assert inputs["job"] == {"runtimeValue": {"constant": "{{$.pipeline_job_uuid}}"}}


def test_the_last_task_closes_the_run_however_it_ended_and_shows_the_report(kubeflow: Environment) -> None:
    pipeline, _ = compiled(kubeflow)
    last = pipeline["root"]["dag"]["tasks"]["close-run"]
    assert last["triggerPolicy"] == {"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"}
    assert last["dependentTasks"] == ["exit-handler-1"]
    outputs = pipeline["components"]["comp-close-run"]["outputDefinitions"]["artifacts"]
    assert outputs["report"]["artifactType"]["schemaTitle"] == "system.HTML"
    assert container(pipeline, EXIT_TASK)["args"][5:8] == ["millrace", "kubeflow", "close"]


def test_a_task_of_its_own_runs_only_after_a_model_that_was_not_good_enough(kubeflow: Environment) -> None:
    pipeline, _ = compiled(kubeflow)
    condition = inner(pipeline)["condition-2"]
    wanted = "inputs.parameter_values['pipelinechannel--pusher-outcome'] == 'not good enough'"
    assert " ".join(condition["triggerPolicy"]["condition"].split()) == wanted
    outcome = {"taskOutputParameter": {"outputParameterKey": "outcome", "producerTask": "pusher"}}
    assert condition["inputs"]["parameters"]["pipelinechannel--pusher-outcome"] == outcome
    assert container(pipeline, VERDICT_TASK)["args"][5:8] == ["millrace", "kubeflow", "verdict"]


def test_metrics_and_artifacts_are_outputs_of_their_tasks(kubeflow: Environment) -> None:
    pipeline, _ = compiled(kubeflow)

    def shown(name: str) -> dict[str, str]:
        artifacts = pipeline["components"][f"comp-{tasks.task_key(name)}"]["outputDefinitions"]["artifacts"]
        return {key: artifact["artifactType"]["schemaTitle"] for key, artifact in artifacts.items()}

    assert shown("Trainer") == {"model": "system.Model", "model_run": "system.Artifact"}
    assert shown("Evaluator") == {
        "evaluation": "system.Artifact",
        "blessing": "system.Artifact",
        "metrics": "system.Metrics",
        "confusion": "system.ClassificationMetrics",
    }


def test_resources_are_the_defaults_with_a_nodes_own_over_them(tmp_path: Path) -> None:
    gpu = '      cpu: "2"\n      cpu_limit: 3500m\n      accelerator: {type: nvidia.com/gpu, count: 2}\n'
    pipeline, _ = compiled(edited(tmp_path, ('      cpu: "2"\n', gpu)))
    assert_has(
        container(pipeline, "Trainer")["resources"],
        {
            "cpuRequest": 2.0,
            "cpuLimit": 3.5,
            "memoryRequest": 8.589934592,
            "memoryLimit": 8.589934592,
            "accelerator": {"type": "nvidia.com/gpu", "count": "2"},
        },
    )
    plain = {"cpuRequest": 1.0, "memoryRequest": 4.294967296, "memoryLimit": 4.294967296}
    assert_has(container(pipeline, "Transform")["resources"], plain)
    assert "accelerator" not in container(pipeline, "Transform")["resources"]


def test_retries_wait_longer_each_time_and_zero_is_none(tmp_path: Path) -> None:
    own = "    BaselineModel: {cpu: 250m, retries: {count: 0}, "
    pipeline, _ = compiled(edited(tmp_path, ("    BaselineModel: {cpu: 250m, ", own)))
    assert inner(pipeline)["trainer"]["retryPolicy"] == {
        "maxRetryCount": 2,
        "backoffDuration": "30s",
        "backoffFactor": 2.0,
        "backoffMaxDuration": "3600s",
    }
    assert "retryPolicy" not in inner(pipeline)["baseline-model"]


def test_secrets_volumes_time_limits_and_the_image_reach_every_task(tmp_path: Path) -> None:
    changes = (
        ("  image: registry.example.com/millrace:0.1.0\n", "  image: r.io:5000/m@sha256:" + "a" * 64 + "\n"),
        ("  service_account:", "  image_pull_policy: Always\n  image_pull_secrets: [registry]\n  service_account:"),
    )
    pipeline, platform = compiled(edited(tmp_path, *changes))
    assert set(platform) == set(pipeline["deploymentSpec"]["executors"])
    for name in (name for name in TASKS if name != nodes.TFLITE_NODE):
        executor = platform[f"exec-{tasks.task_key(name)}"]
        variable = {"envVar": "MILLRACE_METADATA_PASSWORD", "secretKey": "password"}
        [secret], [volume], [pull_secret] = (executor[key] for key in ("secretAsEnv", "pvcMount", "imagePullSecret"))
        assert_has(secret, {"secretName": "millrace-metadata", "keyToEnv": [variable]})
        assert_has(volume, {"constant": "millrace", "mountPath": "/mnt/millrace"})
        assert_has(pull_secret, {"secretName": "registry"})
        assert executor["imagePullPolicy"] == "Always"
        assert executor["podMetadata"] == {"labels": {"millrace/recipe": "taxi", "millrace/node": name}}
        assert container(pipeline, name)["image"] == "r.io:5000/m@sha256:" + "a" * 64
    assert platform["exec-trainer"]["activeDeadlineSeconds"] == "43200"
    assert platform["exec-transform"]["activeDeadlineSeconds"] == "7200"


def test_node_selectors_and_tolerations_are_written_as_the_backend_reads_them(tmp_path: Path) -> None:
    own = (
        '      cpu: "2"\n'
        "      node_selector: {pool: gpu}\n"
        "      tolerations:\n"
        "        - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}\n"
        "        - {key: spot, value: 'true', effect: NoExecute, toleration_seconds: 60}\n"
    )
    _, platform = compiled(edited(tmp_path, ('      cpu: "2"\n', own)))
    assert platform["exec-trainer"]["nodeSelector"] == {"labels": {"pool": "gpu"}}
    assert platform["exec-trainer"]["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "spot", "operator": "Equal", "value": "true", "effect": "NoExecute", "tolerationSeconds": "60"},
    ]
    assert not {"nodeSelector", "tolerations"} & set(platform["exec-transform"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("memory: 8Gi", "memory: 8GiB", "received '8GiB', expected a whole number above 0 with a unit"),
        ('cpu: "2"', 'cpu: "two"', "received 'two', expected cores above 0, such as 2, 0.5 or 500m"),
        (
            'cpu: "2"',
            'cpu: "2"\n      cpu_limit: 500m',
            "received for Trainer cpu_limit 500m and cpu 2, expected a limit",
        ),
        ("    Trainer:", "    Trainr:", "received settings for 'Trainr', which is no node: did you mean Trainer?"),
        ("millrace:0.1.0", "millrace:latest", "expected a tag other than latest, or @sha256:…"),
        ("millrace:0.1.0", "millrace", "expected a tag other than latest, or @sha256:…"),
        ("host: http://localhost:8080", "host: localhost", "received 'localhost', expected http://… or https://…"),
        ("  namespace:", "  namespaces:", "unknown key kubeflow.namespaces. Did you mean kubeflow.namespace?"),
    ],
)
def test_wrong_settings_are_reported_with_their_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        edited(tmp_path, (old, new))
    assert message in str(caught.value)
    assert f"{tmp_path / 'kubeflow.yaml'}:" in str(caught.value)


def test_a_store_in_a_file_cannot_be_shared() -> None:
    with pytest.raises(SettingsError, match="has no section `kubeflow:`"):
        tasks.check_environment(environments.load("local"), "local")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("      variables: {MILLRACE_METADATA_PASSWORD:", "      variables: {OTHER:", "which no secret under"),
        (
            "    - claim: millrace\n      path: /mnt/millrace",
            "    - claim: m\n      path: /mnt/other",
            "is on no volume",
        ),
        ("log_root: /mnt/millrace/logs", "log_root: artifacts/logs", "has log_root"),
    ],
)
def test_what_pods_cannot_share_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        tasks.check_environment(edited(tmp_path, (old, new)), "kubeflow")


def test_an_sqlite_store_is_refused(tmp_path: Path) -> None:
    text = (Path("environments") / "kubeflow.yaml").read_text()
    begin, end = text.index("  postgresql:"), text.index("# Folders of the volume")
    changed = edited(tmp_path, (text[begin:end], "  sqlite: /mnt/millrace/metadata.sqlite\n"))
    with pytest.raises(SettingsError, match="which pods on several machines cannot share safely; expected postgresql"):
        tasks.check_environment(changed, "kubeflow")


def test_an_environment_outside_the_project_is_not_in_the_image(tmp_path: Path) -> None:
    assert tasks.environment_in_image("environments/kubeflow.yaml") == "environments/kubeflow.yaml"
    with pytest.raises(SettingsError, match="and so not in the image that the tasks run"):
        tasks.environment_in_image(str(tmp_path / "mine.yaml"))


@pytest.mark.parametrize("task", ["Trainer", VERDICT_TASK, EXIT_TASK])
def test_a_command_is_parsed_to_its_work(task: str) -> None:
    work = tasks.Work("taxi", task, "taxi-1", "kubeflow")
    assert tasks.parse_command(tasks.command_words(work)) == work


def test_a_command_that_is_not_ours_is_refused() -> None:
    with pytest.raises(SettingsError, match="expected 'millrace node run RECIPE NODE"):
        tasks.parse_command(["millrace", "run", "taxi", "--run", "r", "--env", "e"])


@pytest.mark.usefixtures("compiles_anew")
def test_compile_prints_the_spec_or_writes_it(tmp_path: Path, kubeflow: Environment) -> None:
    whole = spec.compile_spec(recipe.load("taxi"), kubeflow, "kubeflow", ())
    printed = CliRunner().invoke(cli.main, ["kubeflow", "compile", "taxi"])
    assert (printed.exit_code, printed.stdout) == (0, whole)
    path = tmp_path / "taxi.yaml"
    written = CliRunner().invoke(cli.main, ["kubeflow", "compile", "taxi", "-o", str(path)])
    assert (written.stdout, path.read_text()) == (f"{path}\n", whole)
    refused = CliRunner().invoke(cli.main, ["kubeflow", "compile", "taxi", "-o", str(tmp_path / "no" / "x.yaml")])
    assert refused.exit_code == 1
    assert "cannot be written: No such file or directory." in refused.stderr
