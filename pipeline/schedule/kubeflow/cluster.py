"""Kubernetes' own API: what is known of the cluster before anything is submitted, and the pods' logs."""

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
"""Kubeflow Pipelines gives it to every pod of a run."""


IN_POD = "KUBERNETES_SERVICE_HOST"
"""Set in every pod."""


@dataclass(frozen=True)
class Machine:
    """A node of the cluster.

    Attributes:
        name: Its name.
        labels: Its labels.
        taints: `(key, value, effect)` of those that keep pods away.
        allocatable: What pods may have of it, by resource.
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
        """What a task asks for and this machine, even when empty, does not have."""
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
    """Speaks to the Kubernetes API that kubectl, or the pod that we are in, speaks to.

    Args:
        core: A `kubernetes.client.CoreV1Api`; made from the kubeconfig, or from the pod, where none is given.

    Raises:
        ClusterError: There is neither.
    """

    def __init__(self, core: Any | None = None) -> None:
        self._core = core or connect()

    def check(self, settings: KubeflowSettings, wanted: Sequence[Task]) -> list[str]:
        """Checks what the tasks need of the cluster.

        Returns:
            What could not be looked at, a sentence each.

        Raises:
            SettingsError: Something that they need is not there.
            ClusterError: The API cannot be reached.
        """
        space, core = settings.namespace, self._core
        looks: list[tuple[str, str, Callable[..., Any]]] = [
            ("namespace", space, core.read_namespace),
            *(
                ("PersistentVolumeClaim", volume.claim, core.read_namespaced_persistent_volume_claim)
                for volume in settings.volumes
            ),
            ("ServiceAccount", settings.service_account, core.read_namespaced_service_account),
            *(("Secret", secret.name, core.read_namespaced_secret) for secret in settings.secrets),
        ]
        notes = [note for kind, name, ask in looks if (note := _look(kind, name, space, ask))]
        listed = _ask(core.list_node)
        if isinstance(listed, Refused):
            return [*notes, f"Not looked at: whether a machine has what the tasks ask for ({listed.reason})."]
        check_resources([_machine(node) for node in listed.items], wanted)
        return notes

    def logs(self, namespace: str, run_id: str, task: str, follow: bool) -> Iterator[str]:
        """The lines of the newest pod of a task.

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
        answer = self._core.read_namespaced_pod_log(
            pods[-1].metadata.name, namespace, container="main", follow=follow, _preload_content=False
        )
        for chunk in answer.stream(decode_content=True):
            yield chunk.decode("utf-8", errors="replace")


@dataclass(frozen=True)
class Refused:
    """What the API may not tell us.

    Attributes:
        reason: Why, in its words.
    """

    reason: str


def connect() -> Any:
    """A `kubernetes.client.CoreV1Api` of the cluster that kubectl, or the pod that we are in, speaks to.

    Raises:
        ClusterError: There is neither.
    """
    # Takes most of a second.
    from kubernetes import client, config

    try:
        # `load_config`, which does both, prints a line of its own.
        config.load_incluster_config() if IN_POD in os.environ else config.load_kube_config()
    except config.ConfigException as error:
        raise ClusterError(
            f"no way to Kubernetes' API from here: {error}", "Make `kubectl get namespaces` work, or set KUBECONFIG."
        ) from error
    return client.CoreV1Api()


def _ask(ask: Callable[..., Any], *positional: str, **keywords: Any) -> Any:
    """What the API answers, or `Refused`.

    Raises:
        ClusterError: It cannot be reached.
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


def _look(kind: str, name: str, space: str, ask: Callable[..., Any]) -> str | None:
    """Why it could not be looked at; None where it is there.

    Raises:
        SettingsError: It is not there.
    """
    answer = _ask(ask, name) if kind == "namespace" else _ask(ask, name, space)
    if not isinstance(answer, Refused):
        return None
    if answer.reason == "not found":
        place = "the cluster" if kind == "namespace" else f"the namespace {space}"
        raise SettingsError(f"{place} has no {kind} {name!r}.", "Make it, or correct the name; see docs/kubeflow.md.")
    return f"Not looked at: whether there is a {kind} {name} ({answer.reason})."


def _machine(node: Any) -> Machine:
    taints = tuple((taint.key, taint.value or "", taint.effect) for taint in node.spec.taints or ())
    barring = tuple(taint for taint in taints if taint[2] in BARRING)
    return Machine(node.metadata.name, dict(node.metadata.labels or {}), barring, dict(node.status.allocatable))


def check_resources(machines: Sequence[Machine], wanted: Sequence[Task]) -> None:
    """Checks that for each task there is a machine that could run it when it is empty.

    Raises:
        SettingsError: There is none for one of them.
    """
    for task in wanted:
        open_to = [machine for machine in machines if machine.takes(task.settings)]
        if any(not machine.lacks(task.settings) for machine in open_to):
            continue
        if not open_to:
            selector = ", ".join(f"{label}={value}" for label, value in task.settings.node_selector.items())
            with_labels = f"no machine of the cluster has {selector} and no taint that keeps its pod out"
            what = with_labels if selector else "every machine of the cluster has a taint that keeps its pod out"
            fix = "Correct its node_selector, or add tolerations."
        else:
            nearest = min(open_to, key=lambda machine: len(machine.lacks(task.settings)))
            has = f"cpu {nearest.allocatable.get('cpu', '0')}, memory {nearest.allocatable.get('memory', '0')}"
            lacks = " and ".join(nearest.lacks(task.settings))
            what = f"no machine that lets its pod in has {lacks}; {nearest.name}, the nearest, has {has}"
            fix = "Ask for less, or add such a machine."
        raise SettingsError(f"the task {task.name} can run nowhere: {what}.", fix)
