"""Training on several machines: what its pods get, and which settings cannot work together."""

from __future__ import annotations

from components.errors import SettingsError
from components.trainer.settings import TrainerSettings
from pipeline.environment import Environment
from pipeline.kubeflow.settings import AcceleratorSettings, KubeflowSettings, TaskSettings

NODE = "Trainer"
GPU = "nvidia.com/gpu"
TPU = "google.com/tpu"
OF_THE_POD = ("cpu", "cpu_limit", "memory", "accelerator", "node_selector", "tolerations")


def task(trainer: TrainerSettings, settings: KubeflowSettings) -> TaskSettings:
    """What the Trainer's own task gets: where other pods train, it only watches them and needs what any task does."""
    own = settings.task(NODE)
    if not trainer.in_several_processes:
        return own
    watching = {name: getattr(settings.defaults, name) for name in OF_THE_POD}
    return own.model_copy(update=watching | {"accelerator": None})


def check(trainer: TrainerSettings, settings: KubeflowSettings) -> None:
    """Checks that the Trainer's settings can be met by the pods that the environment gives it.

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


def check_files(trainer: TrainerSettings, environment: Environment, settings: KubeflowSettings) -> None:
    """Checks that the pods of a training in several can see what it learns from.

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
    """Into how many parts each batch is cut, as far as the settings say it."""
    if trainer.strategy in ("parameter_server", "one_device", "tpu"):
        return 1
    return trainer.replicas or trainer.workers * max(gpus, 1)
