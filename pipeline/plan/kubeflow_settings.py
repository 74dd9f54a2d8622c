"""The settings under `kubeflow:` in an environment: which cluster, and how its tasks are made."""

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
"""One runs only after a Pusher that pushed nothing because the model was not good enough; the other when all have
ended, however they ended. Their settings may be given by these names, as a node's."""

TASKS = (*NODES, VERDICT_TASK, EXIT_TASK)
"""What settings may be given for by name."""

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
    """A quantity of CPU in cores."""
    return float(quantity[:-1]) / 1000 if quantity.endswith("m") else float(quantity)


def size(quantity: str) -> int:
    """A quantity of memory in bytes."""
    number, unit = re.fullmatch(r"([0-9]+)(.*)", quantity).groups()  # type: ignore[union-attr]
    if not unit:
        return int(number)
    power = "KMGTPE".index(unit[0]) + 1
    return int(number) * int((1024 if unit.endswith("i") else 1000) ** power)


class TolerationSettings(Settings):
    """A taint that a task's pod may live with; the fields are Kubernetes' own.

    Attributes:
        key: The taint's key; every taint where it is not given, which only `Exists` allows.
        operator: Whether the taint must have `value`.
        value: The taint's value.
        effect: Which of the taint's effects; all where it is not given.
        toleration_seconds: How long the pod stays under a `NoExecute` taint; for ever where it is not given.
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
        type: Kubernetes' name of the resource.
        count: How many.
    """

    type: str = Field(default="nvidia.com/gpu", pattern=r"^[a-z0-9.-]+/[A-Za-z0-9._-]+$")
    count: int = Field(default=1, ge=1)


class RetrySettings(Settings):
    """How often a task whose pod failed is tried again, and how long after.

    Attributes:
        count: How many times; 0 for never.
        backoff_seconds: The wait before the first.
        backoff_factor: By which each further wait is longer.
        backoff_max_seconds: After this time since the first failure there is no other attempt.
    """

    count: int = Field(default=2, ge=0, le=10)
    backoff_seconds: int = Field(default=30, ge=0)
    backoff_factor: float = Field(default=2.0, ge=1)
    backoff_max_seconds: int = Field(default=3600, ge=1, le=3600)


class TaskSettings(Settings):
    """What a task's pod may use and where it may run.

    Attributes:
        cpu: Cores that the pod is promised.
        cpu_limit: Cores that it may use at most; as many as are free where it is not given.
        memory: Memory that it is promised, and may use at most.
        accelerator: A GPU or the like.
        node_selector: Labels that its machine must have.
        tolerations: Taints that its machine may have.
        retries: What happens when the pod fails.
        time_limit_seconds: After this time the pod is ended, and has failed.
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
    """A Kubernetes Secret whose values the tasks find in environment variables.

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
        path: Where the tasks find it.
    """

    claim: Name
    path: MountPath


class KubeflowSettings(Settings):
    """Where the pipeline is scheduled, and how its tasks are made.

    Attributes:
        host: The address of Kubeflow Pipelines' API, which is that of its pages too.
        ui: The address of its pages, where it is another one.
        namespace: Where runs live and pods start.
        token_env: The environment variable that holds a bearer token for the API; none where it asks for none.
        ca_certificate: A file with the certificates that the API's TLS is checked against, where they are not public.
        experiment: The experiment that runs are listed under.
        image: The image that runs every node, with a tag other than `latest`, or a digest: all tasks of a run must be
            the same code.
        image_pull_policy: When a machine fetches the image.
        image_pull_secrets: Secrets of the registry.
        service_account: As whom the pods speak to Kubernetes.
        secrets: Secrets that become environment variables.
        volumes: Claims that are mounted.
        defaults: What every task gets.
        nodes: By node, what it gets instead; a field that is not given stays as in `defaults`.
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
        """What a task gets: its own settings over the defaults."""
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
