"""The settings under `kubeflow:` in an environment: which cluster, and how its tasks are set up."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator
from pydantic.alias_generators import to_camel

from contracts.near_names import near_names
from contracts.serving_settings import PINNED
from contracts.settings import Settings
from pipeline.plan.nodes import NODES
from pipeline.plan.recipe import own_nodes
from pipeline.plan.table import RESERVED

CPU = re.compile(r"[0-9]+(\.[0-9]+)?|[0-9]+m")
MEMORY = re.compile(r"[0-9]+([EPTGMK]i?)?")
HOST = re.compile(r"https?://[^\s/]+(/\S*)?")

VERDICT_TASK, EXIT_TASK = RESERVED
"""The first runs only if the Pusher pushed nothing because the model was not good enough; the second after all tasks
have ended, however they ended. Like nodes, they can be given settings by these names."""

TASKS = (*NODES, VERDICT_TASK, EXIT_TASK)
"""The tasks that can be given settings by name."""

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
MountPath = Annotated[str, StringConstraints(pattern=r"^/.+")]


def _cpu(value: str) -> str:
    if not CPU.fullmatch(value) or float(value.rstrip("m")) == 0:
        raise ValueError(f"received {value!r}, expected cores above 0, such as 2, 0.5 or 500m")
    return value


def _memory(value: str) -> str:
    if not MEMORY.fullmatch(value) or int(re.match(r"[0-9]+", value).group()) == 0:  # type: ignore[union-attr]
        raise ValueError(f"received {value!r}, expected a whole number above 0 with a unit, such as 512Mi or 8Gi")
    return value


Cpu = Annotated[str, AfterValidator(_cpu)]
Memory = Annotated[str, AfterValidator(_memory)]


def cores(quantity: str) -> float:
    """A Kubernetes quantity of CPU, in cores."""
    return float(quantity[:-1]) / 1000 if quantity.endswith("m") else float(quantity)


def size(quantity: str) -> int:
    """A Kubernetes quantity of memory, in bytes."""
    number, unit = re.fullmatch(r"([0-9]+)(.*)", quantity).groups()  # type: ignore[union-attr]
    if not unit:
        return int(number)
    power = "KMGTPE".index(unit[0]) + 1
    return int(number) * int((1024 if unit.endswith("i") else 1000) ** power)


class TolerationSettings(Settings):
    """A taint that a task's pod tolerates; the fields are Kubernetes' own.

    Attributes:
        key: The taint's key; None, which only `Exists` allows, means every taint.
        operator: Whether the taint must have `value`.
        value: The taint's value.
        effect: Which of the taint's effects; None: all.
        toleration_seconds: How long the pod stays under a `NoExecute` taint; None: forever.
    """

    key: str | None = None
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _fits_together(self) -> TolerationSettings:
        if self.operator == "Exists" and self.value is not None:
            raise ValueError(f"received value {self.value!r} with operator Exists, expected none: any value exists")
        if self.operator == "Equal" and self.key is None:
            raise ValueError("received no key with operator Equal, expected one; every taint is operator: Exists")
        return self

    def manifest(self) -> dict[str, Any]:
        """The toleration as Kubernetes writes it."""
        return {to_camel(field): value for field, value in self.model_dump(exclude_none=True).items()}


class AcceleratorSettings(Settings):
    """What a task's pod gets besides CPU.

    Attributes:
        type: Kubernetes' name for the resource.
        count: How many.
    """

    type: str = Field(default="nvidia.com/gpu", pattern=r"^[a-z0-9.-]+/[A-Za-z0-9._-]+$")
    count: int = Field(default=1, ge=1)


class RetrySettings(Settings):
    """How often, and after how long, a task whose pod failed is retried.

    Attributes:
        count: How many times; 0 means never.
        backoff_seconds: The wait before the first retry.
        backoff_factor: How many times longer each further wait is.
        backoff_max_seconds: No retry begins later than this after the first failure.
    """

    count: int = Field(default=2, ge=0, le=10)
    backoff_seconds: int = Field(default=30, ge=0)
    backoff_factor: float = Field(default=2.0, ge=1)
    backoff_max_seconds: int = Field(default=3600, ge=1, le=3600)


class TaskSettings(Settings):
    """What a task's pod may use and where it may run.

    Attributes:
        cpu: Cores that the pod requests.
        cpu_limit: Cores that it may use at most; None: as many as are free.
        memory: Memory that it requests, and may use at most.
        accelerator: A GPU or similar.
        node_selector: Labels that its machine must have.
        tolerations: Taints that its machine may have.
        retries: What happens when the pod fails.
        time_limit_seconds: After this time the pod is stopped and counts as failed.
    """

    cpu: Cpu = "1"
    cpu_limit: Cpu | None = None
    memory: Memory = "4Gi"
    accelerator: AcceleratorSettings | None = None
    node_selector: dict[str, str] = Field(default_factory=dict)
    tolerations: list[TolerationSettings] = Field(default_factory=list)
    retries: RetrySettings = RetrySettings()
    time_limit_seconds: int = Field(default=7200, ge=1)


class SecretSettings(Settings):
    """A Kubernetes Secret whose values the tasks get as environment variables.

    Attributes:
        name: The Secret's name.
        variables: Environment variable -> the Secret's key.
    """

    name: Name
    variables: dict[Variable, str] = Field(min_length=1)


class VolumeSettings(Settings):
    """A PersistentVolumeClaim that every task mounts.

    Attributes:
        claim: The claim's name.
        path: Where the tasks mount it.
    """

    claim: Name
    path: MountPath


class KubeflowSettings(Settings):
    """Where the pipeline is scheduled, and how its tasks are set up.

    Attributes:
        host: The address of Kubeflow Pipelines' API, and of its web pages too.
        ui: The address of its web pages, if they have another.
        namespace: The namespace of runs and pods.
        token_env: The environment variable that holds a bearer token for the API; None if it needs none.
        ca_certificate: A file with the certificates that the API's TLS is verified against, if they are not public.
        experiment: The experiment that runs are listed under.
        image: The image that runs every node, with a tag other than `latest`, or a digest: all tasks of a run must be
            the same code.
        image_pull_policy: When a machine fetches the image.
        image_pull_secrets: Secrets of the registry.
        service_account: The pods' service account in Kubernetes.
        secrets: Secrets that become environment variables.
        volumes: Claims that every task mounts.
        defaults: The settings of every task.
        nodes: Settings by node that replace the defaults; fields not given stay as in `defaults`.
    """

    host: str
    ui: str | None = None
    namespace: Name
    token_env: Variable | None = None
    ca_certificate: str | None = None
    experiment: str = Field(default="millrace", min_length=1)
    image: str
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    image_pull_secrets: list[Name] = Field(default_factory=list)
    service_account: Name
    secrets: list[SecretSettings] = Field(default_factory=list)
    volumes: list[VolumeSettings] = Field(min_length=1)
    defaults: TaskSettings = TaskSettings()
    nodes: dict[str, TaskSettings] = Field(default_factory=dict)

    @field_validator("host", "ui")
    @classmethod
    def _is_an_address(cls, value: str | None) -> str | None:
        if value is not None and not HOST.fullmatch(value):
            raise ValueError(f"received {value!r}, expected http://… or https://…")
        return value.rstrip("/") if value else value

    @field_validator("image")
    @classmethod
    def _is_pinned(cls, image: str) -> str:
        if not PINNED.fullmatch(image):
            raise ValueError(f"received {image!r}, expected a tag other than latest, or @sha256:…")
        return image

    @field_validator("nodes", mode="before")
    @classmethod
    def _nodes_are_known(cls, value: Any) -> Any:
        for name in value if isinstance(value, dict) else ():
            if name not in TASKS and name not in own_nodes():
                near = near_names(str(name), TASKS)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(TASKS)}"
                raise ValueError(f"received settings for {name!r}, which is no node: {hint}")
        return value

    @model_validator(mode="after")
    def _limits_are_not_below(self) -> KubeflowSettings:
        for name in {*TASKS, *self.nodes}:
            task = self.task(name)
            if task.cpu_limit is not None and cores(task.cpu_limit) < cores(task.cpu):
                raise ValueError(
                    f"received for {name} cpu_limit {task.cpu_limit} and cpu {task.cpu}, expected a limit that is not "
                    "below what the pod is promised"
                )
        return self

    def task(self, name: str) -> TaskSettings:
        """A task's settings: its own on top of the defaults."""
        own = self.nodes.get(name, self.defaults)
        return self.defaults.model_copy(update={field: getattr(own, field) for field in own.model_fields_set})

    @property
    def secret_variables(self) -> list[tuple[str, str, str]]:
        """Each environment variable that comes from a Secret, as `(variable, secret, key)`."""
        return [(name, secret.name, key) for secret in self.secrets for name, key in secret.variables.items()]

    @property
    def pages(self) -> str:
        """The address of Kubeflow Pipelines' pages."""
        return self.ui or self.host
