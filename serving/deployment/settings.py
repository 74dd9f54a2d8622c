"""What is deployed, and how large."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from types import MappingProxyType

MODELS_FOLDER = "/models"
"""Where containers find models: a folder each, as in TensorFlow Serving's image."""

CLAIM = "pvc"
"""Scheme of a store that is a PersistentVolumeClaim, as KServe writes it: pvc://claim/path."""

READ_BY_TENSORFLOW_SERVING = frozenset({CLAIM, "gs"})
"""Schemes of stores that TensorFlow Serving's image reads itself: a mounted folder, Google Cloud Storage."""


@dataclasses.dataclass(frozen=True)
class Store:
    """Where a cluster finds models: `<scheme>://<host>/<path>`, and in it a folder a model.

    Attributes:
        scheme: `pvc`, `gs` or `s3`.
        host: Name of the claim or of the bucket.
        path: The folder in it, without slashes at its ends; empty for the whole.
    """

    scheme: str
    host: str
    path: str

    @classmethod
    def parse(cls, uri: str) -> Store:
        """Reads a URI such as `pvc://models` or `gs://bucket/models`."""
        scheme, _, rest = uri.partition("://")
        host, _, path = rest.partition("/")
        return cls(scheme, host, path.strip("/"))

    def folder(self, *names: str) -> str:
        """Path of a folder within the claim or the bucket."""
        return "/".join(part for part in (self.path, *names) if part)

    def uri(self, *names: str) -> str:
        """URI of a folder in the store."""
        return f"{self.scheme}://{self.host}/{self.folder(*names)}"


@dataclasses.dataclass(frozen=True)
class Versions:
    """Which versions are served.

    Attributes:
        latest: How many of the newest, where `specific` is empty.
        specific: Exactly these.
        labels: Names of versions among `specific`, such as `stable` and `canary`.
    """

    latest: int = 1
    specific: tuple[int, ...] = ()
    labels: Mapping[str, int] = MappingProxyType({})


@dataclasses.dataclass(frozen=True)
class Batching:
    """TensorFlow Serving's BatchingParameters.

    Attributes:
        max_batch_size: Rows of the largest batch.
        batch_timeout_micros: How long a batch may wait to be filled, in microseconds.
        max_enqueued_batches: How many batches may wait; beyond, requests are refused with UNAVAILABLE.
        num_batch_threads: How many batches run at a time.
        allowed_batch_sizes: Sizes that batches are padded to, rising to `max_batch_size`; empty for any.
        pad_variable_length_inputs: Whether rows of different lengths are padded to the longest of their batch.
    """

    max_batch_size: int
    batch_timeout_micros: int
    max_enqueued_batches: int
    num_batch_threads: int
    allowed_batch_sizes: tuple[int, ...] = ()
    pad_variable_length_inputs: bool = False


@dataclasses.dataclass(frozen=True)
class Replicas:
    """How many servers run.

    Attributes:
        min: At least.
        max: At most.
        cpu_percent: Use of the requested processor time at which one more is started.
    """

    min: int = 2
    max: int = 10
    cpu_percent: int = 70


@dataclasses.dataclass(frozen=True)
class Resources:
    """What one server may use; it is promised as much.

    Attributes:
        cpu: Cores.
        memory: With Kubernetes' binary unit: `512Mi`, `2Gi`.
    """

    cpu: float = 1
    memory: str = "2Gi"

    @property
    def threads(self) -> int:
        """Threads for TensorFlow, which sees the node's cores and not the container's share of them."""
        return math.ceil(self.cpu)

    def for_kubernetes(self) -> dict[str, str]:
        """The amounts as Kubernetes writes them."""
        whole = float(self.cpu).is_integer()
        return {"cpu": str(int(self.cpu)) if whole else f"{round(self.cpu * 1000)}m", "memory": self.memory}

    def for_compose(self) -> dict[str, str]:
        """The amounts as Compose writes them, whose units are binary without saying so."""
        return {"cpus": f"{self.cpu:g}", "memory": re.sub("i$", "b", self.memory).lower()}


@dataclasses.dataclass(frozen=True)
class KServe:
    """What KServe serves.

    Attributes:
        version: The version; None for the newest that lies there when a server starts.
        canary_percent: Share of the traffic that goes to this version; the rest goes to the one rolled out before. None
            for all of it.
    """

    version: int | None = None
    canary_percent: int | None = None


@dataclasses.dataclass(frozen=True)
class Deployment:
    """One model under TensorFlow Serving.

    Attributes:
        name: The model's name.
        image: TensorFlow Serving's image, with its tag.
        local_folder: The folder of the versions on this machine, as compose.yaml should name it.
        store: Where a cluster finds the models.
        startup_seconds: How long loading may take before a server is started anew.
        drain_seconds: How long a server that shall stop goes on answering, until no more requests are sent to it.
        client_namespaces: Kubernetes namespaces whose pods may send requests, besides its own.
    """

    name: str
    image: str
    local_folder: str
    store: Store
    versions: Versions = Versions()
    batching: Batching | None = None
    replicas: Replicas = Replicas()
    resources: Resources = Resources()
    startup_seconds: int = 300
    drain_seconds: int = 15
    client_namespaces: tuple[str, ...] = ()
    kserve: KServe = KServe()

    @property
    def resource_name(self) -> str:
        """The name within Kubernetes, which takes no underscores and no capitals."""
        return self.name.lower().replace("_", "-").strip("-")

    @property
    def folder(self) -> str:
        """Where the versions lie in a container."""
        return f"{MODELS_FOLDER}/{self.name}"

    @property
    def is_mounted(self) -> bool:
        """Whether a server in Kubernetes reads the versions from a mounted claim."""
        return self.store.scheme == CLAIM

    @property
    def served_from(self) -> str:
        """Where the versions lie for a server in Kubernetes: in a mounted folder, or behind a URI."""
        return self.folder if self.is_mounted else self.store.uri(self.name)

    @property
    def readiness_path(self) -> str:
        """Answers 200 once a version serves and 404 before; the status, a level higher, is 200 while one loads."""
        return f"/v1/models/{self.name}/metadata"
