"""The TFJob of a training: Kubeflow's training operator makes its pods and gives each its TF_CONFIG."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline.kubeflow.settings import KubeflowSettings, TaskSettings, TolerationSettings
from pipeline.kubeflow.training import NODE
from pipeline.recipe import PROJECT_ROOT

if TYPE_CHECKING:
    from components.trainer.launching import Launch

GROUP = "kubeflow.org"
VERSION = "v1"
KIND = "TFJob"
PLURAL = "tfjobs"
CONTAINER = "tensorflow"
"""The operator gives TF_CONFIG to the container of this name."""

PROGRESS_VARIABLE = "MILLRACE_PROGRESS"
GPUS_VARIABLE = "CUDA_VISIBLE_DEVICES"
LEGACY_KERAS = {"name": "TF_USE_LEGACY_KERAS", "value": "1"}
KINDS = {"chief": "Chief", "worker": "Worker", "ps": "PS"}
SECONDS_KEPT = 600
"""How long an ended job stays where the task that would have deleted it is gone."""


@dataclass(frozen=True)
class Owner:
    """The pod that the job is for: when it is deleted, so is the job.

    Attributes:
        name: Its name.
        uid: Its id.
    """

    name: str
    uid: str


def name(recipe_name: str, run_id: str) -> str:
    """The job's name: the same for each attempt of a run, so that two never train at once.

    The operator makes services named `<name>-worker-0` and the like, which must be DNS labels of at most 63 letters.
    """
    digest = hashlib.sha256(f"{recipe_name}/{run_id}".encode()).hexdigest()[:10]
    plain = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in recipe_name.lower())
    return f"millrace-{plain[:24].strip('-')}-{digest}"


def of(
    recipe_name: str, run_id: str, settings: KubeflowSettings, launch: Launch, owner: Owner | None
) -> dict[str, Any]:
    """The TFJob as Kubernetes' API takes it.

    Args:
        recipe_name: What is trained.
        run_id: In which run.
        settings: The cluster; the pods get what it has for the Trainer.
        launch: The processes.
        owner: Whose it is, where that is known.
    """
    metadata: dict[str, Any] = {
        "name": name(recipe_name, run_id),
        "namespace": settings.namespace,
        "labels": {"millrace/recipe": recipe_name},
    }
    if owner:
        reference = {"apiVersion": "v1", "kind": "Pod", "name": owner.name, "uid": owner.uid}
        metadata["ownerReferences"] = [reference]
    pods = {
        KINDS[kind]: {
            "replicas": number,
            # The Trainer's task is what tries again, from the last whole epoch.
            "restartPolicy": "Never",
            "template": _pod(kind, recipe_name, settings, launch),
        }
        for kind, number in launch.numbers.items()
    }
    policy = {
        # Those that failed stay, for their last lines.
        "cleanPodPolicy": "Running",
        "activeDeadlineSeconds": settings.task(NODE).time_limit_seconds,
        "ttlSecondsAfterFinished": SECONDS_KEPT,
    }
    spec = {"runPolicy": policy, "tfReplicaSpecs": pods}
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "metadata": metadata, "spec": spec}


def _pod(kind: str, recipe_name: str, settings: KubeflowSettings, launch: Launch) -> dict[str, Any]:
    task = settings.task(NODE)
    spec: dict[str, Any] = {
        "serviceAccountName": settings.service_account,
        "containers": [_container(kind, settings, task, launch)],
        "volumes": [
            {"name": f"volume-{index}", "persistentVolumeClaim": {"claimName": volume.claim}}
            for index, volume in enumerate(settings.volumes)
        ],
    }
    if settings.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": secret} for secret in settings.image_pull_secrets]
    if task.node_selector:
        spec["nodeSelector"] = dict(task.node_selector)
    if task.tolerations:
        spec["tolerations"] = [_toleration(toleration) for toleration in task.tolerations]
    # A service mesh's sidecar would cut TensorFlow's gRPC between the pods, and never end.
    annotations = {"sidecar.istio.io/inject": "false"}
    return {"metadata": {"annotations": annotations, "labels": {"millrace/recipe": recipe_name}}, "spec": spec}


def _container(kind: str, settings: KubeflowSettings, task: TaskSettings, launch: Launch) -> dict[str, Any]:
    computes = kind == "worker" or "ps" not in launch.numbers
    return {
        "name": CONTAINER,
        "image": settings.image,
        "imagePullPolicy": settings.image_pull_policy,
        "command": launch.command,
        # `python -m` finds the recipes here.
        "workingDir": str(PROJECT_ROOT),
        "env": _variables(kind, settings, launch, computes),
        "resources": _resources(task, with_accelerator=computes),
        "volumeMounts": [
            {"name": f"volume-{index}", "mountPath": volume.path} for index, volume in enumerate(settings.volumes)
        ],
    }


def _variables(kind: str, settings: KubeflowSettings, launch: Launch, computes: bool) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [dict(LEGACY_KERAS)]
    if kind == "chief" and launch.progress:
        found.append({"name": PROGRESS_VARIABLE, "value": launch.progress})
    if not computes:
        found.append({"name": GPUS_VARIABLE, "value": "-1"})
    for secret in settings.secrets:
        for variable, key in secret.variables.items():
            reference = {"secretKeyRef": {"name": secret.name, "key": key}}
            found.append({"name": variable, "valueFrom": reference})
    return found


def _resources(task: TaskSettings, with_accelerator: bool) -> dict[str, Mapping[str, str]]:
    limits = {"memory": task.memory}
    if task.cpu_limit:
        limits["cpu"] = task.cpu_limit
    if task.accelerator and with_accelerator:
        limits[task.accelerator.type] = str(task.accelerator.count)
    return {"requests": {"cpu": task.cpu, "memory": task.memory}, "limits": limits}


def _toleration(settings: TolerationSettings) -> dict[str, Any]:
    names = {"toleration_seconds": "tolerationSeconds"}
    return {names.get(field, field): value for field, value in settings.model_dump(exclude_none=True).items()}
