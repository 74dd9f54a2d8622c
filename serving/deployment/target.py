"""What to deploy: one model with a recipe's serving settings."""

from __future__ import annotations

import dataclasses
import math

from contracts.serving_settings import ServingSettings

MODELS_FOLDER = "/models"
"""The folder of the models in a container, with one folder per model, as in TensorFlow Serving's image."""

CLAIM = "pvc"
"""The scheme of a store on a PersistentVolumeClaim, in KServe's notation: pvc://claim/path."""

READ_BY_TENSORFLOW_SERVING = frozenset({CLAIM, "gs"})
"""The schemes of stores that TensorFlow Serving's image can read itself: a mounted folder, Google Cloud Storage."""


@dataclasses.dataclass(frozen=True)
class Store:
    """Where a cluster finds models: `<scheme>://<host>/<path>`, with a folder for each model.

    Attributes:
        scheme: `pvc`, `gs` or `s3`.
        host: Name of the claim or the bucket.
        path: The folder in it, without slashes at its ends; empty for the root.
    """

    scheme: str
    host: str
    path: str

    @classmethod
    def parse(cls, uri: str) -> Store:
        """Parses a URI such as `pvc://models` or `gs://bucket/models`."""
        scheme, _, location = uri.partition("://")
        host, _, path = location.partition("/")
        return cls(scheme, host, path.strip("/"))

    def folder(self, *names: str) -> str:
        """Path of a folder within the claim or the bucket."""
        return "/".join(part for part in (self.path, *names) if part)

    def uri(self, *names: str) -> str:
        """URI of a folder in the store."""
        return f"{self.scheme}://{self.host}/{self.folder(*names)}"


@dataclasses.dataclass(frozen=True)
class Deployment:
    """One model under TensorFlow Serving.

    Attributes:
        name: The model's name.
        local_folder: The folder of the versions on this machine, as written in compose.yaml.
        settings: How the model is served.
    """

    name: str
    local_folder: str
    settings: ServingSettings

    @property
    def store(self) -> Store:
        """Where a cluster finds the models."""
        return Store.parse(self.settings.model_store)

    @property
    def threads(self) -> int:
        """TensorFlow's threads, which by default follow the node's cores rather than the container's share of them."""
        return math.ceil(self.settings.resources.cpu)

    @property
    def resource_name(self) -> str:
        """The name within Kubernetes, which allows neither underscores nor capitals."""
        return self.name.lower().replace("_", "-").strip("-")

    @property
    def folder(self) -> str:
        """The folder of the versions in a container."""
        return f"{MODELS_FOLDER}/{self.name}"

    @property
    def is_mounted(self) -> bool:
        """Whether a server in Kubernetes reads the versions from a mounted claim."""
        return self.store.scheme == CLAIM

    @property
    def served_from(self) -> str:
        """Where a server in Kubernetes reads the versions: a mounted folder or a URI."""
        return self.folder if self.is_mounted else self.store.uri(self.name)

    @property
    def readiness_path(self) -> str:
        """Answers 200 once a version is served, else 404; the status, one level up, is 200 while one still loads."""
        return f"/v1/models/{self.name}/metadata"
