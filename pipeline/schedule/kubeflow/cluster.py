"""Kubernetes' own API: checks of the cluster before anything is submitted, and the pods' logs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from contracts.errors import ClusterError, SettingsError
from pipeline.plan.kubeflow_settings import KubeflowSettings, TaskSettings, cores, size
from pipeline.schedule.kubeflow import tasks
from pipeline.schedule.kubeflow.tasks import Task

NOT_FOUND = 404
CONFLICT = 409
FORBIDDEN = (401, 403)
TIMEOUT_SECONDS = 10
BARRING = {"NoSchedule", "NoExecute"}
RUN_LABEL = "pipeline/runid"
"""Kubeflow Pipelines labels every pod of a run with it."""


IN_POD = "KUBERNETES_SERVICE_HOST"
"""An environment variable that is set in every pod."""


@dataclass(frozen=True)
class Machine:
    """A machine of the cluster, which Kubernetes calls a node.

    Attributes:
        name: Its name.
        labels: Its labels.
        taints: `(key, value, effect)` of those taints that keep pods away.
        allocatable: What pods may use of it, by resource.
    """

    name: str
    labels: dict[str, str]
    taints: tuple[tuple[str, str, str], ...]
    allocatable: dict[str, str]

    def takes(self, settings: TaskSettings) -> bool:
        """Whether a task's pod may run here at all."""
        labelled = all(self.labels.get(label) == value for label, value in settings.node_selector.items())
        return labelled and all(_tolerated(taint, settings) for taint in self.taints)

    def lacks(self, settings: TaskSettings) -> list[str]:
        """What a task requests that this machine does not have, even when idle."""
        lacking = []
        if cores(self.allocatable.get("cpu", "0")) < cores(settings.cpu):
            lacking.append(f"cpu {settings.cpu}")
        if size(self.allocatable.get("memory", "0")) < size(settings.memory):
            lacking.append(f"memory {settings.memory}")
        accelerator = settings.accelerator
        if accelerator and int(self.allocatable.get(accelerator.type, "0")) < accelerator.count:
            lacking.append(f"{accelerator.count} {accelerator.type}")
        return lacking


def _tolerated(taint: tuple[str, str, str], settings: TaskSettings) -> bool:
    key, value, effect = taint
    return any(
        (toleration.key in (None, key))
        and (toleration.effect in (None, effect))
        and (toleration.operator == "Exists" or (toleration.value or "") == value)
        for toleration in settings.tolerations
    )


class Cluster:
    """A client of the Kubernetes API that kubectl uses or, inside a pod, of the pod's cluster.

    Args:
        core: A `kubernetes.client.CoreV1Api`; by default made from the kubeconfig or from the pod.

    Raises:
        ClusterError: There is neither a kubeconfig nor a pod.
    """

    def __init__(self, core: Any | None = None) -> None:
        self._core = core or connect()

    def check(self, settings: KubeflowSettings, wanted: Sequence[Task]) -> list[str]:
        """Checks that the cluster has what the tasks need.

        Returns:
            What could not be checked, one sentence each.

        Raises:
            SettingsError: Something that they need does not exist.
            ClusterError: The API cannot be reached.
        """
        space, core = settings.namespace, self._core
        lookups: list[tuple[str, str, Callable[..., Any]]] = [
            ("namespace", space, core.read_namespace),
            *(
                ("PersistentVolumeClaim", volume.claim, core.read_namespaced_persistent_volume_claim)
                for volume in settings.volumes
            ),
            ("ServiceAccount", settings.service_account, core.read_namespaced_service_account),
            *(("Secret", secret.name, core.read_namespaced_secret) for secret in settings.secrets),
        ]
        notes = [note for kind, name, ask in lookups if (note := _check_exists(kind, name, space, ask))]
        listed = _ask(core.list_node)
        if isinstance(listed, Refused):
            return [*notes, f"Not looked at: whether a machine has what the tasks ask for ({listed.reason})."]
        check_resources([_machine(node) for node in listed.items], wanted)
        return notes

    def logs(self, namespace: str, run_id: str, task: str, follow: bool) -> Iterator[str]:
        """Yields the log of the newest pod of a task, in chunks.

        Raises:
            ClusterError: There is none, or the API refuses.
        """
        selector = ",".join((f"{RUN_LABEL}={run_id}", f"{tasks.NODE_LABEL}={task}"))
        listed = _ask(self._core.list_namespaced_pod, namespace, label_selector=selector)
        if isinstance(listed, Refused):
            raise ClusterError(f"the pods of the namespace {namespace} cannot be listed: {listed.reason}.")
        pods = sorted(listed.items, key=lambda pod: pod.metadata.creation_timestamp)
        if not pods:
            raise ClusterError(f"no pod with the labels {selector} in the namespace {namespace}.")
        response = self._core.read_namespaced_pod_log(
            pods[-1].metadata.name, namespace, container="main", follow=follow, _preload_content=False
        )
        for chunk in response.stream(decode_content=True):
            yield chunk.decode("utf-8", errors="replace")


@dataclass(frozen=True)
class Refused:
    """A response that refuses a request.

    Attributes:
        reason: Why, in the API's words.
    """

    reason: str


def connect() -> Any:
    """A `kubernetes.client.CoreV1Api` for kubectl's cluster or, inside a pod, the pod's.

    Raises:
        ClusterError: There is neither a kubeconfig nor a pod.
    """
    # Imported here because it takes most of a second.
    from kubernetes import client, config

    try:
        # Not `load_config`, which does both but prints a line.
        config.load_incluster_config() if IN_POD in os.environ else config.load_kube_config()
    except config.ConfigException as error:
        raise ClusterError(
            f"no way to Kubernetes' API from here: {error}", "Make `kubectl get namespaces` work, or set KUBECONFIG."
        ) from error
    return client.CoreV1Api()


def _ask(ask: Callable[..., Any], *positional: str, **keywords: Any) -> Any:
    """Calls the API; returns its response, or `Refused`.

    Raises:
        ClusterError: The API cannot be reached.
    """
    import urllib3
    from kubernetes.client.exceptions import ApiException

    try:
        return ask(*positional, _request_timeout=TIMEOUT_SECONDS, **keywords)
    except ApiException as error:
        return Refused("not found" if error.status == NOT_FOUND else f"{error.status} {error.reason}")
    except urllib3.exceptions.HTTPError as error:
        raise ClusterError(
            f"Kubernetes' API cannot be reached: {error}", "Make `kubectl get namespaces` work, or set KUBECONFIG."
        ) from error


def _check_exists(kind: str, name: str, space: str, ask: Callable[..., Any]) -> str | None:
    """Checks that an object exists; returns why that could not be checked, or None.

    Raises:
        SettingsError: It does not exist.
    """
    response = _ask(ask, name) if kind == "namespace" else _ask(ask, name, space)
    if not isinstance(response, Refused):
        return None
    if response.reason == "not found":
        place = "the cluster" if kind == "namespace" else f"the namespace {space}"
        raise SettingsError(f"{place} has no {kind} {name!r}.", "Make it, or correct the name; see docs/kubeflow.md.")
    return f"Not looked at: whether there is a {kind} {name} ({response.reason})."


def _machine(node: Any) -> Machine:
    taints = tuple((taint.key, taint.value or "", taint.effect) for taint in node.spec.taints or ())
    barring = tuple(taint for taint in taints if taint[2] in BARRING)
    return Machine(node.metadata.name, dict(node.metadata.labels or {}), barring, dict(node.status.allocatable))


def check_resources(machines: Sequence[Machine], wanted: Sequence[Task]) -> None:
    """Checks that each task has a machine that could run it when idle.

    Raises:
        SettingsError: A task has none.
    """
    for task in wanted:
        open_to = [machine for machine in machines if machine.takes(task.settings)]
        if any(not machine.lacks(task.settings) for machine in open_to):
            continue
        if not open_to:
            selector = ", ".join(f"{label}={value}" for label, value in task.settings.node_selector.items())
            with_labels = f"no machine of the cluster has {selector} and no taint that keeps its pod out"
            problem = with_labels if selector else "every machine of the cluster has a taint that keeps its pod out"
            fix = "Correct its node_selector, or add tolerations."
        else:
            nearest = min(open_to, key=lambda machine: len(machine.lacks(task.settings)))
            has = f"cpu {nearest.allocatable.get('cpu', '0')}, memory {nearest.allocatable.get('memory', '0')}"
            lacks = " and ".join(nearest.lacks(task.settings))
            problem = f"no machine that lets its pod in has {lacks}; {nearest.name}, the nearest, has {has}"
            fix = "Ask for less, or add such a machine."
        raise SettingsError(f"the task {task.name} can run nowhere: {problem}.", fix)
