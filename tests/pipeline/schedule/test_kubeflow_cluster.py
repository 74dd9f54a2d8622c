"""Checks of the cluster before anything is submitted, and logs."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest
import urllib3
from kfp_standin import Millrace, Standin
from kubernetes.client.exceptions import ApiException

from contracts.errors import ClusterError, SettingsError
from pipeline.plan import environment, recipe
from pipeline.plan.kubeflow_settings import KubeflowSettings, TaskSettings
from pipeline.schedule.kubeflow import cluster, tasks
from pipeline.schedule.kubeflow.cluster import Cluster
from pipeline.schedule.kubeflow.tasks import Task


def machine(name: str = "m1", taints: list[Any] | None = None, **allocatable: str) -> SimpleNamespace:
    has = {"cpu": "4", "memory": "16Gi"} | allocatable
    return SimpleNamespace(
        metadata=SimpleNamespace(name=name, labels={"pool": name}),
        spec=SimpleNamespace(taints=taints),
        status=SimpleNamespace(allocatable=has),
    )


def taint(key: str, value: str | None = None, effect: str = "NoSchedule") -> SimpleNamespace:
    return SimpleNamespace(key=key, value=value, effect=effect)


class Core:
    """A cluster's Kubernetes API: what is missing, what is forbidden, and its machines."""

    def __init__(self, missing: str = "", forbidden: str = "", machines: list[Any] | None = None) -> None:
        self.missing, self.forbidden = missing, forbidden
        self.machines = [machine()] if machines is None else machines
        self.selector = ""

    def _found(self, kind: str) -> SimpleNamespace:
        if kind == self.missing:
            raise ApiException(status=404, reason="Not Found")
        if kind in self.forbidden.split():
            raise ApiException(status=403, reason="Forbidden")
        return SimpleNamespace()

    def read_namespace(self, _name: str, **_: Any) -> Any:
        return self._found("namespace")

    def read_namespaced_persistent_volume_claim(self, _name: str, _space: str, **_: Any) -> Any:
        return self._found("claim")

    def read_namespaced_service_account(self, _name: str, _space: str, **_: Any) -> Any:
        return self._found("account")

    def read_namespaced_secret(self, _name: str, _space: str, **_: Any) -> Any:
        return self._found("secret")

    def list_node(self, **_: Any) -> Any:
        self._found("nodes")
        return SimpleNamespace(items=self.machines)

    def list_namespaced_pod(self, _space: str, label_selector: str, **_: Any) -> Any:
        self._found("pods")
        self.selector = label_selector
        pods = [("old", 1), ("new", 2)] if self.missing != "pod" else []
        listed = [
            SimpleNamespace(
                metadata=SimpleNamespace(name=name, creation_timestamp=datetime(2026, 1, day, tzinfo=timezone.utc))
            )
            for name, day in pods
        ]
        return SimpleNamespace(items=listed[::-1])

    def read_namespaced_pod_log(self, name: str, _space: str, container: str, follow: bool, **_: Any) -> Any:
        text = f"{name} {container} {follow}\n".encode()
        return SimpleNamespace(stream=lambda decode_content: iter([text[:4], text[4:]]))


@pytest.fixture
def settings() -> KubeflowSettings:
    section = environment.load("kubeflow").kubeflow
    assert section is not None
    return section


@pytest.fixture
def wanted() -> list[Task]:
    return tasks.recipe_tasks(recipe.load("taxi"), environment.load("kubeflow"), "kubeflow")


def only(wanted: list[Task], **changes: Any) -> list[Task]:
    """The Trainer's task, with other settings."""
    (trainer,) = (task for task in wanted if task.name == "Trainer")
    return [replace(trainer, settings=TaskSettings(**changes))]


def test_a_cluster_that_has_everything_is_fine(settings: KubeflowSettings, wanted: list[Task]) -> None:
    assert Cluster(Core()).check(settings, wanted) == []


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("namespace", "the cluster has no namespace 'kubeflow'."),
        ("claim", "the namespace kubeflow has no PersistentVolumeClaim 'millrace'."),
        ("account", "the namespace kubeflow has no ServiceAccount 'millrace'."),
        ("secret", "the namespace kubeflow has no Secret 'millrace-metadata'."),
    ],
)
def test_what_the_namespace_lacks_is_named(
    settings: KubeflowSettings, wanted: list[Task], missing: str, message: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        Cluster(Core(missing=missing)).check(settings, wanted)
    assert caught.value.what == message


def test_what_may_not_be_checked_is_reported(settings: KubeflowSettings, wanted: list[Task]) -> None:
    assert Cluster(Core(forbidden="secret nodes")).check(settings, wanted) == [
        "Not looked at: whether there is a Secret millrace-metadata (403 Forbidden).",
        "Not looked at: whether a machine has what the tasks ask for (403 Forbidden).",
    ]


@pytest.mark.parametrize(
    ("changes", "machines", "message"),
    [
        (
            {"cpu": "6", "memory": "8Gi"},
            [machine("small"), machine("big", memory="64Gi")],
            "no machine that lets its pod in has cpu 6; small, the nearest, has cpu 4, memory 16Gi.",
        ),
        (
            {"memory": "32Gi", "accelerator": {"count": 2}},
            [machine(**{"nvidia.com/gpu": "1"})],
            "no machine that lets its pod in has memory 32Gi and 2 nvidia.com/gpu; m1, the nearest, has cpu 4, "
            "memory 16Gi.",
        ),
        (
            {"node_selector": {"pool": "gpu"}},
            [machine("a"), machine("b")],
            "no machine of the cluster has pool=gpu and no taint that keeps its pod out.",
        ),
        (
            {},
            [machine("a", taints=[taint("spot", "true")])],
            "every machine of the cluster has a taint that keeps its pod out.",
        ),
    ],
)
def test_a_task_that_can_run_nowhere_is_refused(
    wanted: list[Task], settings: KubeflowSettings, changes: dict[str, Any], machines: list[Any], message: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        Cluster(Core(machines=machines)).check(settings, only(wanted, **changes))
    assert caught.value.what == f"the task Trainer can run nowhere: {message}"


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({"key": "spot", "value": "true"}, True),
        ({"key": "spot", "value": "no"}, False),
        ({"key": "spot", "operator": "Exists"}, True),
        ({"key": "spot", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"operator": "Exists"}, True),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_a_taint_keeps_out_what_does_not_tolerate_it(
    wanted: list[Task], settings: KubeflowSettings, toleration: dict[str, str], fits: bool
) -> None:
    tainted = [machine(taints=[taint("spot", "true"), taint("soft", effect="PreferNoSchedule")])]
    chosen = only(wanted, tolerations=[toleration])
    if fits:
        assert Cluster(Core(machines=tainted)).check(settings, chosen) == []
    else:
        with pytest.raises(SettingsError, match="keeps its pod out"):
            Cluster(Core(machines=tainted)).check(settings, chosen)


def test_an_api_that_is_down_is_reported(settings: KubeflowSettings, wanted: list[Task]) -> None:
    core = Core()

    def away(*_: Any, **__: Any) -> None:
        raise urllib3.exceptions.MaxRetryError(None, "/api")  # type: ignore[arg-type]

    core.read_namespace = away  # type: ignore[method-assign]
    with pytest.raises(ClusterError, match="Kubernetes' API cannot be reached"):
        Cluster(core).check(settings, wanted)


def test_without_a_kubeconfig_there_is_no_connection(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.delenv(cluster.IN_POD, raising=False)
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "none"))
    with pytest.raises(ClusterError, match="no way to Kubernetes' API from here"):
        Cluster()


def test_logs_are_those_of_the_newest_pod_of_the_task(
    millrace: Millrace, standin: Standin, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = Core()
    monkeypatch.setattr(cluster, "connect", lambda: core)
    millrace("submit", "small", "--run", "a")
    assert millrace("logs", "a", "trainer").stdout == "new main False\n"
    assert core.selector == "pipeline/runid=id-0,millrace/node=Trainer"
    assert millrace("logs", "a", "CloseRun", "--follow").stdout == "new main True\n"
    core.missing = "pod"
    gone = millrace("logs", "a", "Trainer")
    assert gone.exit_code == 1
    assert gone.stderr.startswith("error: no pod with the labels pipeline/runid=id-0,millrace/node=Trainer in the name")


def test_submit_refuses_what_the_cluster_lacks_before_it_uploads(
    millrace: Millrace, standin: Standin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "connect", lambda: Core(missing="namespace"))
    result = millrace("submit", "small")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: the cluster has no namespace 'kubeflow'.\n")
    assert standin.uploads == standin.runs == []
