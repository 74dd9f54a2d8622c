"""Training in a TFJob: the job itself, how it is watched, what goes wrong, and that nothing of it remains."""

from __future__ import annotations

import difflib
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from kubernetes_standin import JOBS, KubernetesStandin, check_pods

from components.trainer import processes
from components.trainer.job import Failure
from components.trainer.processes import Launch
from components.trainer.settings import TrainerSettings
from contracts.errors import ClusterError, SettingsError, TrainingError
from pipeline.commands import node as command
from pipeline.plan import environment as environments
from pipeline.plan import recipe
from pipeline.plan.kubeflow_settings import KubeflowSettings
from pipeline.plan.project import ENGINE
from pipeline.run import node
from pipeline.run.context import RunContext
from pipeline.run.folder import Request
from pipeline.run.workplace import Workplace
from pipeline.schedule.kubeflow import tasks, training, training_api, training_job
from pipeline.schedule.kubeflow.training import Owner
from pipeline.schedule.kubeflow.training_job import TrainingJob

JOB = training.job_name("taxi", "taxi-1")
WAITS = "exec sleep 60"
GPUS = {"accelerator": {"type": "nvidia.com/gpu", "count": 2}}


@dataclass(frozen=True)
class Script(Launch):
    """Processes that run a shell script, by name; those without one wait until they are stopped."""

    scripts: tuple[tuple[str, str], ...] = ()

    @property
    def command(self) -> list[str]:
        cases = [f"""*'"type": "{name[:-2]}", "index": {name[-1]}'*) {script};;""" for name, script in self.scripts]
        return ["sh", "-c", f'case "$TF_CONFIG" in {" ".join(cases)} *) {WAITS};; esac']


@pytest.fixture
def settings() -> KubeflowSettings:
    section = environments.load("kubeflow").kubeflow
    assert section is not None
    return section


@pytest.fixture
def standin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubernetesStandin]:
    monkeypatch.setattr(training_api, "POLL_SECONDS", 0.02)
    server = KubernetesStandin(tmp_path).start()
    yield server
    server.stop()


Train = Callable[..., None]


@pytest.fixture
def train(standin: KubernetesStandin, settings: KubeflowSettings, tmp_path: Path) -> Train:
    """Trains with scripts by the process's name: `train(chief_0="true")`."""

    def run(**scripts: str) -> None:
        named = tuple((name.replace("_", "-"), script) for name, script in scripts.items())
        launch = Script(tmp_path, {"chief": 1, "worker": 2}, None, named)
        TrainingJob("taxi", "taxi-1", settings, standin.core)(launch)

    return run


def changed(settings: KubeflowSettings, **trainer: Any) -> KubeflowSettings:
    """The settings with changes for the Trainer, and a registry's secret."""
    document = settings.model_dump(exclude_unset=True)
    document["nodes"]["Trainer"] |= trainer
    return KubeflowSettings.model_validate(document | {"image_pull_secrets": ["registry"]})


def test_the_tfjob_is_the_one_that_was_reviewed(settings: KubeflowSettings) -> None:
    """specs/tfjob.yaml: parameter servers, GPUs, a taint, a selector; local paths are replaced by placeholders."""
    toleration = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute", "toleration_seconds": 60}
    changed_settings = changed(settings, **GPUS, node_selector={"pool": "gpu"}, tolerations=[toleration], cpu_limit="4")
    launch = Launch(Path("/mnt/millrace/logs/taxi-1/x"), {"chief": 1, "worker": 2, "ps": 1}, "/mnt/millrace/p.json")
    manifest = training.job_manifest("taxi", "taxi-1", changed_settings, launch, Owner("taxi-1-trainer-7", "1234"))
    check_pods(manifest)
    text = yaml.safe_dump(manifest, sort_keys=False)
    text = text.replace(launch.command[0], "python").replace(str(ENGINE), "/millrace")
    path = Path(__file__).parent / "specs" / "tfjob.yaml"
    reviewed = path.read_text() if path.exists() else ""
    assert not list(difflib.unified_diff(reviewed.splitlines(), text.splitlines(), str(path), "made now", lineterm=""))


def test_names_are_labels_of_dns() -> None:
    long = training.job_name("my_" + "very_" * 20 + "long", "run-1")
    assert len(f"{long}-worker-100") <= 63
    assert long.startswith("millrace-my-very-very")
    assert set(long) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert training.job_name("taxi", "taxi-2") != JOB


def test_a_job_whose_chief_ends_well_has_succeeded_and_is_deleted(
    train: Train, standin: KubernetesStandin, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(training_job.POD_NAME_VARIABLE, "taxi-1-trainer-7")
    monkeypatch.setenv(training_job.POD_UID_VARIABLE, "1234")
    train(chief_0="echo trained well")
    [job] = standin.created
    assert job["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": "taxi-1-trainer-7", "uid": "1234"}
    ]
    assert standin.jobs == {}
    assert ("DELETE", f"{JOBS}/{JOB}") in standin.requests
    output = capfd.readouterr().out
    assert f"TFJob {JOB} in the namespace kubeflow: chief-0, worker-0, worker-1\n" in output
    assert "chief-0 Succeeded (Completed)\n" in output
    assert output.rstrip().endswith("\ntrained well")


def test_the_last_lines_of_a_pod_that_failed_are_in_the_error(train: Train, standin: KubernetesStandin) -> None:
    with pytest.raises(TrainingError) as caught:
        train(worker_1="seq 1 20; echo no such GPU >&2; exit 3")
    numbers = "\n".join(map(str, range(12, 21)))
    assert caught.value.what == (
        f"the pod {JOB}-worker-1 of the training ended with exit code 3; its last lines:\n{numbers}\nno such GPU"
    )
    assert standin.jobs == {}


def test_a_pod_that_was_killed_for_its_memory_says_so(train: Train) -> None:
    with pytest.raises(TrainingError, match=rf"^the pod {JOB}-chief-0 of the training ended with exit code 137 \(OOMK"):
        train(chief_0="kill -9 $$")


def test_the_cause_is_reported_before_those_that_lost_it(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Long enough for the other pod to end, too.
    monkeypatch.setattr(training_api, "POLL_SECONDS", 0.5)
    lost = Failure(kind=None, what="UnavailableError: gone", lost_peer=True).model_dump_json()
    ours = Failure(kind="DataError", what="a row is bad.", fix="Mend it.").model_dump_json()
    for name, text in (("chief-0", lost), ("worker-1", ours)):
        (tmp_path / f"{name}.failure.json").write_text(text)
    with pytest.raises(Exception, match="a row is bad") as caught:
        train(chief_0="exit 1", worker_1="exit 1")
    assert type(caught.value).__name__ == "DataError"
    ending = f"(the pod {JOB}-worker-1 of the training ended with exit code 1)"
    assert str(caught.value) == f"a row is bad.\n{ending}\nMend it."


def test_a_pod_that_the_cluster_removes_is_not_a_training_error(train: Train) -> None:
    with pytest.raises(ClusterError) as caught:
        train(worker_0="kill -TERM $$", worker_1="exit 1")
    assert str(caught.value) == (
        f"the cluster took pods of the training away: {JOB}-worker-0 (Evicted).\n"
        "Run the node again: what was trained is kept."
    )
    assert command.exit_code(caught.value) == command.EXIT_TRY_AGAIN


def test_an_api_that_is_down_for_a_while_does_no_harm(train: Train, standin: KubernetesStandin) -> None:
    standin.answers = {"POST": [503], "GET": [500, 429, 504], "DELETE": [500]}
    train(chief_0="true")
    assert standin.jobs == {}
    assert len(standin.created) == 1


def test_an_api_that_stays_down_is_retried_by_the_scheduler(
    train: Train, standin: KubernetesStandin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_api, "PATIENCE_SECONDS", 0)
    standin.answers = {"GET": [503] * 50}
    with pytest.raises(ClusterError, match="API stayed away when asked to get the TFJob: 503") as caught:
        train()
    assert standin.jobs == {}
    assert command.exit_code(caught.value) == command.EXIT_TRY_AGAIN


def test_what_the_account_may_not_do_is_named(train: Train, standin: KubernetesStandin) -> None:
    standin.answers = {"POST": [403]}
    with pytest.raises(SettingsError) as caught:
        train()
    assert str(caught.value) == (
        "Kubernetes does not let the ServiceAccount millrace make the TFJob in the namespace kubeflow: 403 Forbidden.\n"
        "Apply environments/kubeflow/namespace.yaml again; see docs/kubeflow.md."
    )


def test_a_cluster_without_the_training_operator_is_reported(train: Train, standin: KubernetesStandin) -> None:
    standin.answers = {"POST": [404]}
    with pytest.raises(SettingsError, match=r"^the cluster knows no kubeflow.org/v1 TFJob"):
        train()


def test_what_a_killed_attempt_left_is_deleted_first(
    train: Train, standin: KubernetesStandin, settings: KubeflowSettings, tmp_path: Path
) -> None:
    left = training.job_manifest("taxi", "taxi-1", settings, Script(tmp_path, {"chief": 1, "worker": 1}, None), None)
    assert standin.answer("POST", JOBS, {}, left)[0] == 201
    [old, _] = standin.pods[JOB]
    train(chief_0="true")
    assert old.process.returncode == -signal.SIGKILL
    assert len(standin.created) == 2


def test_sigterm_leaves_no_job(train: Train, standin: KubernetesStandin, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = SimpleNamespace(sleep=lambda _seconds: os.kill(os.getpid(), signal.SIGTERM))
    monkeypatch.setattr(training_job, "time", stop)
    with node.stopped_by_the_scheduler(), pytest.raises(node.StoppedError):
        train()
    assert len(standin.created) == 1
    assert standin.jobs == {}


def test_a_job_that_somebody_deletes_is_an_error(
    train: Train, standin: KubernetesStandin, monkeypatch: pytest.MonkeyPatch
) -> None:
    def delete(_seconds: float) -> None:
        standin.answer("DELETE", f"{JOBS}/{JOB}", {}, None)

    monkeypatch.setattr(training_job, "time", SimpleNamespace(sleep=delete))
    with pytest.raises(TrainingError, match=f"^somebody deleted the TFJob {JOB} while it trained"):
        train()


def test_only_trainings_in_several_processes_are_launched() -> None:
    assert processes.process_counts(TrainerSettings(epochs=1, workers=3, batch_size=3)) == {"chief": 1, "worker": 2}
    servers = TrainerSettings(epochs=1, strategy="parameter_server", parameter_servers=2)
    assert processes.process_counts(servers) == {"chief": 1, "worker": 1, "ps": 2}
    assert servers.in_several_processes
    assert not TrainerSettings(epochs=1, strategy="mirrored", replicas=2).in_several_processes


def test_the_task_that_only_watches_holds_no_gpu(settings: KubeflowSettings) -> None:
    changed_settings = changed(settings, **GPUS, cpu="8", memory="32Gi")
    alone = training.trainer_task(TrainerSettings(epochs=1), changed_settings)
    assert (alone.cpu, alone.memory, alone.accelerator and alone.accelerator.count) == ("8", "32Gi", 2)
    watching = training.trainer_task(TrainerSettings(epochs=1, workers=2), changed_settings)
    assert (watching.cpu, watching.memory, watching.accelerator) == ("1", "4Gi", None)
    assert watching.time_limit_seconds == 43200


@pytest.mark.parametrize(
    ("trainer", "pods", "message"),
    [
        (
            {"strategy": "multi_worker"},
            {},
            "trainer.strategy is multi_worker and trainer.workers is 1, expected 2 workers or more",
        ),
        ({"strategy": "tpu"}, {}, "trainer.strategy is tpu, but the pod of Trainer has no accelerator, expected TPUs."),
        ({"strategy": "tpu"}, GPUS, "but the pod of Trainer has 2 of nvidia.com/gpu, expected TPUs."),
        ({"workers": 2, "communication": "nccl"}, {}, "but the pods of Trainer have no accelerator."),
        (
            {"strategy": "mirrored", "replicas": 4},
            GPUS,
            "trainer.replicas is 4, but the pod of Trainer has 2 of nvidia.com/gpu.",
        ),
        (
            {"workers": 2, "batch_size": 6},
            GPUS,
            "trainer.batch_size is 6, expected a multiple of 4: trainer.workers is 2, and each pod has 2 of "
            "nvidia.com/gpu.",
        ),
    ],
)
def test_settings_that_cannot_work_together_are_refused(
    trainer: dict[str, Any], pods: dict[str, Any], message: str, settings: KubeflowSettings
) -> None:
    with pytest.raises(SettingsError) as caught:
        training.check_trainer(TrainerSettings(epochs=1, **trainer), changed(settings, **pods))
    assert message in caught.value.what


@pytest.mark.parametrize(
    ("trainer", "pods"),
    [
        ({"workers": 2, "batch_size": 8, "communication": "nccl"}, GPUS),
        ({"strategy": "parameter_server", "workers": 3, "batch_size": 8}, GPUS),
        ({"strategy": "mirrored", "replicas": 4}, {}),
        ({"strategy": "tpu"}, {"accelerator": {"type": "google.com/tpu", "count": 4}}),
    ],
)
def test_settings_that_can_are_not(trainer: dict[str, Any], pods: dict[str, Any], settings: KubeflowSettings) -> None:
    training.check_trainer(TrainerSettings(epochs=1, **trainer), changed(settings, **pods))


def test_compiling_refuses_them() -> None:
    wrong = recipe.load("taxi", ("trainer.communication=nccl", "trainer.workers=2"))
    with pytest.raises(SettingsError, match=r"^trainer\.communication is nccl"):
        tasks.recipe_tasks(wrong, environments.load("kubeflow"), "kubeflow")


def test_machines_are_looked_for_the_pods_that_train_too() -> None:
    environment = environments.load("kubeflow")
    settings = environment.kubeflow
    assert settings is not None
    for overrides, expected in (((), ["2"]), (("trainer.workers=2",), ["1", "2"])):
        chosen = recipe.load("taxi", overrides)
        wanted = tasks.resource_requests(chosen, tasks.recipe_tasks(chosen, environment, "kubeflow"), settings)
        assert [task.settings.cpu for task in wanted if task.name == training.NODE] == expected


@pytest.mark.parametrize(
    ("name", "environment", "pods"),
    [
        ("Trainer", "kubeflow", True),
        ("Transform", "kubeflow", False),
        ("Trainer", "local", False),
    ],
)
def test_only_the_trainer_of_a_cluster_trains_in_pods(name: str, environment: str, pods: bool) -> None:
    request = Request(recipe="taxi", overrides=(), environment=environment, run_id="taxi-1", span=None)
    chosen = recipe.load("taxi")
    context = RunContext(chosen, Workplace.load(environment), chosen.find_inputs(), request)
    assert isinstance(command.training_launcher(context, name), TrainingJob) is pods
