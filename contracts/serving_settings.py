"""The settings under `serving:` in a recipe: how `millrace deploy` has the pushed model served."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, StringConstraints, field_validator, model_validator

from contracts.settings import Settings

Version = Annotated[int, Field(ge=0)]
Namespace = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
# The name of a Kubernetes claim or of a bucket, and folders in it.
STORE = re.compile(r"(pvc|gs|s3)://[a-z0-9]([-a-z0-9._]*[a-z0-9])?(/[A-Za-z0-9][-A-Za-z0-9._]*)*")
# A tag follows the last colon, which must not be that of a registry's port; a digest follows an at sign.
PINNED = re.compile(r".+(@sha256:[0-9a-f]{64}|:(?!latest$)[A-Za-z0-9_][-A-Za-z0-9_.]*)")


class VersionsSettings(Settings):
    """Which versions a server serves.

    Attributes:
        latest: How many of the newest, unless `specific` names any.
        specific: Exactly these.
        labels: Names for versions in `specific`, such as `stable` and `canary`, by which clients may request them.
    """

    latest: int = Field(default=1, ge=1)
    specific: list[Version] = Field(default_factory=list)
    labels: dict[str, Version] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _labels_are_served(self) -> VersionsSettings:
        for label, version in self.labels.items():
            if version not in self.specific:
                raise ValueError(
                    f"received the label {label} for version {version}, expected one of versions.specific "
                    f"({', '.join(map(str, self.specific)) or 'empty'}): only what is served can have a label"
                )
        return self


class BatchingSettings(Settings):
    """How requests from several clients are run together; the parameters are TensorFlow Serving's.

    Attributes:
        max_batch_size: Rows of the largest batch.
        batch_timeout_micros: How long a batch may wait to be filled, in microseconds. At 0 it holds what has queued up
            while another ran, which costs no latency.
        max_enqueued_batches: How many batches may wait; beyond that, requests are refused with UNAVAILABLE.
        num_batch_threads: How many batches run at a time; as many as `resources.cpu`, rounded up, unless given.
        allowed_batch_sizes: Sizes that batches are padded to, in rising order up to `max_batch_size`; empty: any size.
        pad_variable_length_inputs: Whether rows of different lengths are padded to the longest of their batch.
    """

    max_batch_size: int = Field(default=32, ge=1)
    batch_timeout_micros: int = Field(default=0, ge=0)
    max_enqueued_batches: int = Field(default=100, ge=1)
    num_batch_threads: int | None = Field(default=None, ge=1)
    allowed_batch_sizes: list[int] = Field(default_factory=list)
    pad_variable_length_inputs: bool = False

    @model_validator(mode="after")
    def _sizes_rise_to_the_largest(self) -> BatchingSettings:
        sizes = self.allowed_batch_sizes
        if sizes and (sizes != sorted(set(sizes)) or sizes[0] < 1 or sizes[-1] != self.max_batch_size):
            raise ValueError(
                f"received allowed_batch_sizes {sizes}, expected positive sizes that rise to max_batch_size, "
                f"{self.max_batch_size}"
            )
        return self


class ReplicasSettings(Settings):
    """How many servers a cluster runs.

    Attributes:
        min: At least.
        max: At most.
        cpu_percent: Use of `resources.cpu` at which another is started.
    """

    min: int = Field(default=2, ge=1)
    max: int = Field(default=10, ge=1)
    cpu_percent: int = Field(default=70, ge=1, le=100)

    @model_validator(mode="after")
    def _min_is_not_above_max(self) -> ReplicasSettings:
        if self.min > self.max:
            raise ValueError(f"received min {self.min} and max {self.max}, expected a min that is not above the max")
        return self


class ResourcesSettings(Settings):
    """What one server may use; the same amount is reserved for it.

    Attributes:
        cpu: Cores; TensorFlow gets as many threads, rounded up.
        memory: With a binary unit: `512Mi`, `2Gi`.
    """

    cpu: float = Field(default=1, ge=0.1)
    memory: str = Field(default="2Gi", pattern=r"^[1-9][0-9]*[MG]i$")


class KServeSettings(Settings):
    """What KServe serves.

    Attributes:
        version: The version that its servers fetch; if not given, the newest at the time a server starts.
        canary_percent: Share of the traffic that goes to `version`; the rest goes to the one rolled out before it. 0
            goes back to that one; if not given, all traffic goes to `version`.
    """

    version: Version | None = None
    canary_percent: int | None = Field(default=None, ge=0, le=100)

    @model_validator(mode="after")
    def _a_canary_has_a_version(self) -> KServeSettings:
        if self.canary_percent is not None and self.version is None:
            raise ValueError(
                f"received canary_percent {self.canary_percent} without version, expected the version that shall get "
                "this share"
            )
        return self


class ServingSettings(Settings):
    """How TensorFlow Serving serves the pushed model; none of it changes what a run does.

    Attributes:
        image: TensorFlow Serving's image with a tag or a digest.
        model_store: Where a cluster finds the models, one folder each: `pvc://claim/path`, `gs://bucket/path`, or
            `s3://bucket/path`, which KServe fetches and TensorFlow Serving does not read.
        batching: None: each request runs alone.
        startup_seconds: How long loading may take before a server is restarted.
        drain_seconds: How long a stopping server goes on answering, until no more requests are sent to it.
        client_namespaces: Kubernetes namespaces whose pods may send requests, besides its own; Prometheus's needs to be
            among them.
    """

    image: str = "tensorflow/serving:2.16.1"
    model_store: str = "pvc://models"
    versions: VersionsSettings = VersionsSettings()
    batching: BatchingSettings | None = None
    replicas: ReplicasSettings = ReplicasSettings()
    resources: ResourcesSettings = ResourcesSettings()
    startup_seconds: int = Field(default=300, ge=1)
    drain_seconds: int = Field(default=15, ge=0)
    client_namespaces: list[Namespace] = Field(default_factory=list)
    kserve: KServeSettings = KServeSettings()

    @field_validator("image")
    @classmethod
    def _image_is_pinned(cls, image: str) -> str:
        if not PINNED.fullmatch(image):
            raise ValueError(
                f"received {image}, expected a tag other than latest or a digest, such as tensorflow/serving:2.16.1: "
                "servers that start later would run something else"
            )
        return image

    @field_validator("model_store")
    @classmethod
    def _store_is_known(cls, store: str) -> str:
        if not STORE.fullmatch(store):
            raise ValueError(
                f"received {store}, expected pvc://claim/path, gs://bucket/path or s3://bucket/path, "
                "without a slash at the end"
            )
        return store
