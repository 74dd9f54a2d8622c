"""The server's settings: TensorFlow Serving's flags, and which models to serve."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from pydantic import BaseModel, ConfigDict, Field

PLATFORM = "tensorflow"


@dataclasses.dataclass(frozen=True)
class Latest:
    """Serve the `num_versions` highest versions."""

    num_versions: int = 1


@dataclasses.dataclass(frozen=True)
class All:
    """Serve every version in the base path."""


@dataclasses.dataclass(frozen=True)
class Specific:
    """Serve exactly these versions."""

    versions: tuple[int, ...]


VersionPolicy = Latest | All | Specific


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """One model to serve.

    Attributes:
        name: What requests call it.
        base_path: Absolute path of the folder that holds a folder for each version, named by an integer.
        policy: Which versions to serve.
        labels: Names for versions, such as `stable` and `canary`.
        platform: TensorFlow Serving's `model_platform`; only `tensorflow` is known.
    """

    name: str
    base_path: Path
    policy: VersionPolicy = Latest()
    labels: Mapping[str, int] = MappingProxyType({})
    platform: str = PLATFORM


class ServerSettings(BaseModel):
    """The server's settings, under the names of TensorFlow Serving's flags where it has them.

    Attributes:
        port: gRPC's port; 0 for none.
        rest_api_port: REST's port; 0 for none.
        grpc_socket_path: A UNIX socket to serve gRPC on as well.
        rest_api_timeout_in_ms: Deadline of a REST request, in milliseconds.
        rest_api_enable_cors_support: Whether to send headers that let other sites' pages call.
        model_name: Name of the only model, if there is no `model_config_file`.
        model_base_path: The folder of its versions.
        model_config_file: A ModelServerConfig in text form: several models, policies and labels.
        model_config_file_poll_wait_seconds: How often to read that file again; 0 for never.
        file_system_poll_wait_seconds: How often to look for versions; 0 for only once, at the start.
        max_num_load_retries: How often to retry loading a version that failed.
        load_retry_interval_micros: Wait between two attempts, in microseconds.
        load_timeout_seconds: How long the first loads may take before the server gives up. Not in TensorFlow Serving,
            which waits for ever.
        enable_model_warmup: Whether to replay a version's recorded requests before it serves.
        saved_model_tags: Tags of the MetaGraph to load, separated by commas.
        allow_version_labels_for_unavailable_models: Whether a new label may point to a version that is not loaded.
        enable_batching: Whether to run requests of several clients together.
        batching_parameters_file: How to batch, as BatchingParameters in text form.
        enable_per_model_batching_parameters: Whether each version has its own `batching_params.pbtxt`; one without that
            file is not batched. The number of threads comes from `batching_parameters_file`.
        tensorflow_session_parallelism: Threads for each of the two settings below, unless they are given; 0 for
            TensorFlow's choice.
        tensorflow_intra_op_parallelism: Threads within one operation; 0 for one per core.
        tensorflow_inter_op_parallelism: Threads across the operations of one request. At 0 a request runs in the
            caller's thread, which for most models is several times faster than handing it over.
        monitoring_config_file: A MonitoringConfig in text form: whether and where to show Prometheus' metrics.
        ssl_config_file: An SSLConfig in text form.
        grpc_channel_arguments: `key=value` pairs separated by commas.
        grpc_max_threads: Threads that answer gRPC; None for four per core, or with batching for twice the largest
            batch.
        enable_grpc_healthcheck_service: Whether gRPC's health service answers; TensorFlow Serving's default is no.
        enable_grpc_reflection: Whether gRPC's server reflection answers. Not in TensorFlow Serving, like all below.
        host: Address on which the ports are opened; 0.0.0.0 for every address of the machine.
        rest_api_ssl_cert_file: Certificate of the REST port, PEM; TensorFlow Serving has no TLS there.
        rest_api_ssl_key_file: Its private key, PEM.
        rest_api_ssl_ca_file: Authority that must have signed clients' certificates, PEM; without it clients need none.
        bearer_token_file: Holds the token that every request must send as `Authorization: Bearer ...`.
        max_request_bytes: Largest request in bytes, after decompression; also the largest size of one of its tensors.
        max_concurrent_requests: How many gRPC requests may wait or run at a time; more are refused.
        access_log: Whether answered requests are logged, one line each; refused ones always are.
        drain_timeout_seconds: How long requests in flight may take to finish once the server is told to stop.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, protected_namespaces=())

    port: int = Field(8500, ge=0, le=65535)
    rest_api_port: int = Field(0, ge=0, le=65535)
    grpc_socket_path: str = ""
    rest_api_timeout_in_ms: int = Field(30_000, gt=0)
    rest_api_enable_cors_support: bool = False
    model_name: str = "default"
    model_base_path: Path | None = None
    model_config_file: Path | None = None
    model_config_file_poll_wait_seconds: float = Field(0, ge=0)
    file_system_poll_wait_seconds: float = Field(1, ge=0)
    max_num_load_retries: int = Field(5, ge=0)
    load_retry_interval_micros: int = Field(60_000_000, ge=0)
    load_timeout_seconds: float = Field(300, gt=0)
    enable_model_warmup: bool = True
    saved_model_tags: str = "serve"
    allow_version_labels_for_unavailable_models: bool = False
    enable_batching: bool = False
    batching_parameters_file: Path | None = None
    enable_per_model_batching_parameters: bool = False
    tensorflow_session_parallelism: int = Field(0, ge=0)
    tensorflow_intra_op_parallelism: int = Field(0, ge=0)
    tensorflow_inter_op_parallelism: int = Field(0, ge=0)
    monitoring_config_file: Path | None = None
    ssl_config_file: Path | None = None
    grpc_channel_arguments: str = ""
    grpc_max_threads: int | None = Field(None, gt=0)
    enable_grpc_healthcheck_service: bool = True
    enable_grpc_reflection: bool = True
    host: str = "127.0.0.1"
    rest_api_ssl_cert_file: Path | None = None
    rest_api_ssl_key_file: Path | None = None
    rest_api_ssl_ca_file: Path | None = None
    bearer_token_file: Path | None = None
    max_request_bytes: int = Field(64 * 2**20, gt=0)
    max_concurrent_requests: int = Field(1024, gt=0)
    access_log: bool = False
    drain_timeout_seconds: float = Field(30, ge=0)
