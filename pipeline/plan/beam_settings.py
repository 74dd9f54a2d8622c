"""The typed contents of an environment's `beam` section: which engine does the data work, and how to reach it."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator
from typing_extensions import Self

from contracts.settings import Settings

Engine = Literal["direct", "flink", "spark", "dataflow"]

ENDPOINT = re.compile(r"[^\s:/]+:\d{1,5}")


def _endpoint(value: object) -> object:
    if isinstance(value, str) and not ENDPOINT.fullmatch(value):
        raise ValueError(f"received {value!r}, expected host:port, such as localhost:8099")
    return value


def _bucket(value: object) -> object:
    if isinstance(value, str) and not value.startswith("gs://"):
        raise ValueError(f"received {value!r}, expected a folder of Cloud Storage, such as gs://my-bucket/beam")
    return value


Endpoint = Annotated[str, BeforeValidator(_endpoint)]
Bucket = Annotated[str, BeforeValidator(_bucket)]


class JobServerSettings(Settings):
    """A cluster behind one of Beam's job servers.

    Attributes:
        job_endpoint: The job server, `host:port`.
        artifact_endpoint: Where it takes files, `host:port`; None if the job server announces it itself.
        environment_type: Where Beam's Python workers run: `LOOPBACK`, in the process of the node that started the job,
            for a cluster on this machine; or `EXTERNAL`, in a worker pool beside each of the cluster's workers.
        environment_config: The worker pool as the cluster's workers reach it, `host:port`; for `EXTERNAL`.
    """

    job_endpoint: Endpoint
    artifact_endpoint: Endpoint | None = None
    environment_type: Literal["LOOPBACK", "EXTERNAL"] = "LOOPBACK"
    environment_config: Endpoint | None = None

    @model_validator(mode="after")
    def _workers(self) -> Self:
        if (self.environment_type == "EXTERNAL") != (self.environment_config is not None):
            raise ValueError(
                f"received environment_type {self.environment_type} and environment_config "
                f"{self.environment_config or 'none'}, expected environment_config, the worker pool's host:port, "
                "exactly with EXTERNAL"
            )
        return self


class FlinkSettings(JobServerSettings):
    """A Flink cluster.

    Attributes:
        flink_master: The JobManager's REST API, `host:port`; `millrace check` asks it for its task slots.
        parallelism: How many workers share the rows; at most as many as the cluster has task slots.
    """

    flink_master: Endpoint | None = None
    parallelism: int = Field(default=2, ge=1)


class SparkSettings(JobServerSettings):
    """A Spark cluster."""


class DataflowSettings(Settings):
    """Google Cloud Dataflow.

    Attributes:
        project: The Google Cloud project.
        region: Such as `europe-west1`.
        temp_location: A folder of Cloud Storage for temporary files.
        staging_location: A folder of Cloud Storage for our code; `temp_location` by default.
        sdk_container_image: The image that the workers run, ours; without one they install our package when they start.
        max_num_workers: How many workers at most; by default Dataflow decides.
        machine_type: The workers' machine type; by default Dataflow decides.
        service_account_email: The account that the workers run as; the project's default account by default.
    """

    project: str = Field(min_length=1)
    region: str = Field(min_length=1)
    temp_location: Bucket
    staging_location: Bucket | None = None
    sdk_container_image: str | None = None
    max_num_workers: int | None = Field(default=None, ge=1)
    machine_type: str | None = None
    service_account_email: str | None = None


class BeamSettings(Settings):
    """Beam's runner.

    Attributes:
        runner: `columnar` works on whole columns in the node's own process, on all cores, and leaves to Beam, in the
            same process, what it does not know (docs/adr/0031-columns.md); `direct` leaves all to Beam in that process;
            `flink`, `spark` and `dataflow` to Beam where their section says; `auto` is the engine that has a section if
            the raw data do not fit into memory, else `columnar`.
        options: Further pipeline options, such as `--direct_num_workers=2`.
        flink: For `runner: flink`.
        spark: For `runner: spark`.
        dataflow: For `runner: dataflow`.
    """

    runner: Literal["columnar", "direct", "flink", "spark", "dataflow", "auto"] = "auto"
    options: list[str] = Field(default_factory=list)
    flink: FlinkSettings | None = None
    spark: SparkSettings | None = None
    dataflow: DataflowSettings | None = None

    @property
    def engines(self) -> list[Engine]:
        """The distributed engines that have a section."""
        every: tuple[Engine, ...] = ("flink", "spark", "dataflow")
        return [engine for engine in every if getattr(self, engine) is not None]

    @property
    def engine_elsewhere(self) -> Engine | None:
        """The engine that may do the work on other machines, or None."""
        possible = self.engines if self.runner == "auto" else [e for e in self.engines if e == self.runner]
        for engine in possible:
            cluster = {"flink": self.flink, "spark": self.spark}.get(engine)
            if cluster is None or cluster.environment_type != "LOOPBACK":
                return engine
        return None

    @model_validator(mode="after")
    def _sections(self) -> Self:
        sections = " and ".join(self.engines) or "none"
        if self.runner == "auto" and len(self.engines) > 1:
            raise ValueError(
                f"received runner auto and the sections {sections}, expected at most one of flink, spark, dataflow"
            )
        if self.runner not in {"columnar", "direct", "auto", *self.engines}:
            raise ValueError(
                f"received runner {self.runner} and the sections {sections}, expected a section {self.runner}"
            )
        return self
