"""TensorFlow Serving's own settings: its flags, and the files in protocol buffers' text form that they name."""

from __future__ import annotations

from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from serving.deployment.settings import Batching, Deployment

PROGRAM = "/usr/bin/tensorflow_model_server"
GRPC_PORT = 8500
REST_PORT = 8501
HEALTH_SERVICE = "PredictionService"
"""The name that TensorFlow Serving's gRPC health service knows, without a package."""

METRICS_PATH = "/monitoring/prometheus/metrics"
FOLDER = "/etc/tensorflow-serving"
MODELS = "models.config"
BATCHING = "batching.config"
MONITORING = "monitoring.config"
# Object stores are asked over the network, and charge for it; the default is every second.
URI_POLL_SECONDS = 30


def flags(deployment: Deployment, base_path: str) -> list[str]:
    """The server's command line, without the program."""
    given = {
        "port": str(GRPC_PORT),
        "rest_api_port": str(REST_PORT),
        "model_config_file": f"{FOLDER}/{MODELS}",
        "monitoring_config_file": f"{FOLDER}/{MONITORING}",
        "enable_grpc_healthcheck_service": "true",
        "tensorflow_session_parallelism": str(deployment.resources.threads),
    }
    if "://" in base_path:
        given["file_system_poll_wait_seconds"] = str(URI_POLL_SECONDS)
    if deployment.batching is not None:
        given |= {"enable_batching": "true", "batching_parameters_file": f"{FOLDER}/{BATCHING}"}
    return [f"--{name}={value}" for name, value in given.items()]


def config_files(deployment: Deployment, base_path: str) -> dict[str, str]:
    """The files that the flags name, by their names."""
    texts = {MODELS: models(deployment, base_path), MONITORING: monitoring()}
    return texts if deployment.batching is None else texts | {BATCHING: batching(deployment.batching)}


def models(deployment: Deployment, base_path: str) -> str:
    """A ModelServerConfig: one model, which of its versions to serve, and their labels.

    Args:
        deployment: What to serve.
        base_path: The folder of the versions: an absolute path or a URI.
    """
    message = ModelServerConfig()
    config = message.model_config_list.config.add(
        name=deployment.name, base_path=base_path, model_platform="tensorflow"
    )
    versions = deployment.versions
    if versions.specific:
        config.model_version_policy.specific.versions.extend(versions.specific)
    else:
        config.model_version_policy.latest.num_versions = versions.latest
    config.version_labels.update(versions.labels)
    return str(text_format.MessageToString(message))


def batching(parameters: Batching) -> str:
    """A BatchingParameters; its message is not among those that tensorflow-serving-api ships."""
    wrapped = ("max_batch_size", "batch_timeout_micros", "max_enqueued_batches", "num_batch_threads")
    lines = [f"{name} {{ value: {getattr(parameters, name)} }}" for name in wrapped]
    lines += [f"allowed_batch_sizes: {size}" for size in parameters.allowed_batch_sizes]
    if parameters.pad_variable_length_inputs:
        lines.append("pad_variable_length_inputs: true")
    return "\n".join(lines) + "\n"


def monitoring() -> str:
    """A MonitoringConfig: metrics for Prometheus, on the REST port."""
    return f'prometheus_config {{ enable: true path: "{METRICS_PATH}" }}\n'
