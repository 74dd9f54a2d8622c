"""Training on several machines: the pods' resources, checks of the settings, and the TFJob.

Kubeflow's training operator creates the job's pods and gives each its TF_CONFIG.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from components.trainer.processes import PROGRESS_VARIABLE, Launch
from components.trainer.settings import TrainerSettings
from contracts.errors import SettingsError
from pipeline.plan import project
from pipeline.plan.environment import Environment
from pipeline.plan.kubeflow_settings import AcceleratorSettings, KubeflowSettings, TaskSettings

NODE = "Trainer"
GPU = "nvidia.com/gpu"
TPU = "google.com/tpu"
OF_THE_POD = ("cpu", "cpu_limit", "memory", "accelerator", "node_selector", "tolerations")


def trainer_task(trainer: TrainerSettings, settings: KubeflowSettings) -> TaskSettings:
    """The settings of the Trainer's own task, which only watches, and needs little, if other pods train."""
    own = settings.task(NODE)
    if not trainer.in_several_processes:
        return own
    watching = {name: getattr(settings.defaults, name) for name in OF_THE_POD}
    return own.model_copy(update=watching | {"accelerator": None})


def check_trainer(trainer: TrainerSettings, settings: KubeflowSettings) -> None:
    """Checks that the pods that the environment gives the Trainer can meet its settings.

    Raises:
        SettingsError: They cannot.
    """
    accelerator = settings.task(NODE).accelerator
    gpus = accelerator.count if accelerator and accelerator.type == GPU else 0
    _check_devices(trainer, accelerator, gpus)
    if trainer.strategy == "multi_worker" and trainer.workers == 1:
        raise SettingsError(
            "trainer.strategy is multi_worker and trainer.workers is 1, expected 2 workers or more: a training job of "
            "one pod is no cluster.",
            "Set trainer.workers, or trainer.strategy to auto.",
        )
    replicas = _replicas(trainer, gpus)
    if trainer.batch_size % replicas:
        raise SettingsError(
            f"trainer.batch_size is {trainer.batch_size}, expected a multiple of {replicas}: trainer.workers is "
            f"{trainer.workers}, and each pod has {gpus} of {GPU}.",
            f"Set trainer.batch_size to {trainer.batch_size // replicas * replicas or replicas}.",
        )


def check_shared_files(trainer: TrainerSettings, environment: Environment, settings: KubeflowSettings) -> None:
    """Checks that all pods of distributed training can read the training data.

    Raises:
        SettingsError: They cannot.
    """
    objects = environment.object_store
    if not trainer.in_several_processes or objects is None:
        return
    mounted = [volume.path for volume in settings.volumes]
    if not any(objects.cache.is_relative_to(path) for path in mounted):
        raise SettingsError(
            f"the Trainer trains in several pods, and takes the artifacts of {environment.object_root} from "
            f"{objects.cache}, which is on no volume that all of them mount ({', '.join(mounted) or 'there is none'}).",
            "Give object_store.cache a folder below one of `kubeflow.volumes`.",
        )


def _check_devices(trainer: TrainerSettings, accelerator: AcceleratorSettings | None, gpus: int) -> None:
    has = f"{accelerator.count} of {accelerator.type}" if accelerator else "no accelerator"
    place = f"`kubeflow.nodes.{NODE}.accelerator`"
    if trainer.strategy == "tpu" and (accelerator is None or accelerator.type == GPU):
        raise SettingsError(
            f"trainer.strategy is tpu, but the pod of {NODE} has {has}, expected TPUs.",
            f"Set {place}, for example to {{type: {TPU}, count: 4}}.",
        )
    if trainer.communication == "nccl" and not accelerator:
        raise SettingsError(
            f"trainer.communication is nccl, which reduces between GPUs, but the pods of {NODE} have {has}.",
            f"Set {place}, or trainer.communication to auto.",
        )
    if gpus and (trainer.replicas or 1) > gpus:
        raise SettingsError(
            f"trainer.replicas is {trainer.replicas}, but the pod of {NODE} has {has}.",
            f"Set trainer.replicas to at most {gpus}, or ask for more in {place}.",
        )


def _replicas(trainer: TrainerSettings, gpus: int) -> int:
    """Into how many parts each batch is split, as far as the settings determine it."""
    if trainer.strategy in ("parameter_server", "one_device", "tpu"):
        return 1
    return trainer.replicas or trainer.workers * max(gpus, 1)


GROUP = "kubeflow.org"
VERSION = "v1"
KIND = "TFJob"
PLURAL = "tfjobs"
CONTAINER = "tensorflow"
"""The operator gives TF_CONFIG to the container with this name."""

GPUS_VARIABLE = "CUDA_VISIBLE_DEVICES"
LEGACY_KERAS_VARIABLE = "TF_USE_LEGACY_KERAS"
KINDS = {"chief": "Chief", "worker": "Worker", "ps": "PS"}
SECONDS_KEPT = 600
"""How long a finished job stays if the task that would have deleted it is gone."""


@dataclass(frozen=True)
class Owner:
    """The pod that owns the job: when it is deleted, so is the job.

    Attributes:
        name: Its name.
        uid: Its id.
    """

    name: str
    uid: str


def job_name(recipe_name: str, run_id: str) -> str:
    """The job's name, the same for each attempt of a run, so that two never train at the same time.

    The operator creates services with names such as `<name>-worker-0`, which must be DNS labels of at most 63
    characters.
    """
    digest = hashlib.sha256(f"{recipe_name}/{run_id}".encode()).hexdigest()[:10]
    plain = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in recipe_name.lower())
    return f"millrace-{plain[:24].strip('-')}-{digest}"


def job_manifest(
    recipe_name: str, run_id: str, settings: KubeflowSettings, launch: Launch, owner: Owner | None
) -> dict[str, Any]:
    """The manifest of the TFJob.

    Args:
        recipe_name: The recipe that is trained.
        run_id: The run's id.
        settings: The cluster; the pods get its settings for the Trainer.
        launch: The processes.
        owner: The job's owner, if known.
    """
    metadata: dict[str, Any] = {
        "name": job_name(recipe_name, run_id),
        "namespace": settings.namespace,
        "labels": {"millrace/recipe": recipe_name},
    }
    if owner:
        reference = {"apiVersion": "v1", "kind": "Pod", "name": owner.name, "uid": owner.uid}
        metadata["ownerReferences"] = [reference]
    pods = {
        KINDS[kind]: {
            "replicas": number,
            # The Trainer's task does the retrying, from the last complete epoch.
            "restartPolicy": "Never",
            "template": _pod(kind, recipe_name, settings, launch),
        }
        for kind, number in launch.numbers.items()
    }
    policy = {
        # Failed pods stay, so that their last log lines can be read.
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
        spec["tolerations"] = [toleration.manifest() for toleration in task.tolerations]
    # A service mesh's sidecar would block TensorFlow's gRPC between the pods, and never end.
    annotations = {"sidecar.istio.io/inject": "false"}
    return {"metadata": {"annotations": annotations, "labels": {"millrace/recipe": recipe_name}}, "spec": spec}


def _container(kind: str, settings: KubeflowSettings, task: TaskSettings, launch: Launch) -> dict[str, Any]:
    computes = kind == "worker" or "ps" not in launch.numbers
    return {
        "name": CONTAINER,
        "image": settings.image,
        "imagePullPolicy": settings.image_pull_policy,
        "command": launch.command,
        # `python -m` finds the recipes from here.
        "workingDir": str(project.root()),
        "env": _variables(kind, settings, launch, computes),
        "resources": _resources(task, with_accelerator=computes),
        "volumeMounts": [
            {"name": f"volume-{index}", "mountPath": volume.path} for index, volume in enumerate(settings.volumes)
        ],
    }


def _variables(kind: str, settings: KubeflowSettings, launch: Launch, computes: bool) -> list[dict[str, Any]]:
    plain = {LEGACY_KERAS_VARIABLE: "1"}
    if kind == "chief" and launch.progress:
        plain[PROGRESS_VARIABLE] = launch.progress
    if not computes:
        plain[GPUS_VARIABLE] = "-1"
    return [
        *({"name": name, "value": value} for name, value in plain.items()),
        *(
            {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
            for name, secret, key in settings.secret_variables
        ),
    ]


def _resources(task: TaskSettings, with_accelerator: bool) -> dict[str, Mapping[str, str]]:
    limits = {"memory": task.memory}
    if task.cpu_limit:
        limits["cpu"] = task.cpu_limit
    if task.accelerator and with_accelerator:
        limits[task.accelerator.type] = str(task.accelerator.count)
    return {"requests": {"cpu": task.cpu, "memory": task.memory}, "limits": limits}
