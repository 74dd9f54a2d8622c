"""TensorFlow Serving's flags and settings files; an image with the model in it; a compose file."""

from __future__ import annotations

import json
import re
from typing import Any

from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from contracts.serving_settings import BatchingSettings, ResourcesSettings
from serving.deployment.target import Deployment

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
# Object stores charge for each poll, which goes over the network; the default is every second.
URI_POLL_SECONDS = 30


def flags(deployment: Deployment, base_path: str) -> list[str]:
    """The server's command line, without the program."""
    values = {
        "port": str(GRPC_PORT),
        "rest_api_port": str(REST_PORT),
        "model_config_file": f"{FOLDER}/{MODELS}",
        "monitoring_config_file": f"{FOLDER}/{MONITORING}",
        "enable_grpc_healthcheck_service": "true",
        "tensorflow_session_parallelism": str(deployment.threads),
    }
    if "://" in base_path:
        values["file_system_poll_wait_seconds"] = str(URI_POLL_SECONDS)
    if deployment.settings.batching is not None:
        values |= {"enable_batching": "true", "batching_parameters_file": f"{FOLDER}/{BATCHING}"}
    return [f"--{name}={value}" for name, value in values.items()]


def config_files(deployment: Deployment, base_path: str) -> dict[str, str]:
    """File name -> text, for the files that the flags name."""
    texts = {MODELS: models(deployment, base_path), MONITORING: monitoring()}
    return (
        texts
        if deployment.settings.batching is None
        else texts | {BATCHING: batching(deployment.settings.batching, deployment.threads)}
    )


def models(deployment: Deployment, base_path: str) -> str:
    """A ModelServerConfig: one model, its versions to serve and their labels.

    Args:
        deployment: What to serve.
        base_path: The folder of the versions: an absolute path or a URI.
    """
    message = ModelServerConfig()
    config = message.model_config_list.config.add(
        name=deployment.name, base_path=base_path, model_platform="tensorflow"
    )
    versions = deployment.settings.versions
    if versions.specific:
        config.model_version_policy.specific.versions.extend(versions.specific)
    else:
        config.model_version_policy.latest.num_versions = versions.latest
    config.version_labels.update(versions.labels)
    return str(text_format.MessageToString(message))


def batching(parameters: BatchingSettings, threads: int) -> str:
    """A BatchingParameters; its message is not among those that tensorflow-serving-api ships.

    Args:
        parameters: How requests are batched.
        threads: How many batches run at a time, unless the parameters say.
    """
    wrapped = {
        "max_batch_size": parameters.max_batch_size,
        "batch_timeout_micros": parameters.batch_timeout_micros,
        "max_enqueued_batches": parameters.max_enqueued_batches,
        "num_batch_threads": parameters.num_batch_threads or threads,
    }
    lines = [f"{name} {{ value: {value} }}" for name, value in wrapped.items()]
    lines += [f"allowed_batch_sizes: {size}" for size in parameters.allowed_batch_sizes]
    if parameters.pad_variable_length_inputs:
        lines.append("pad_variable_length_inputs: true")
    return "\n".join(lines) + "\n"


def monitoring() -> str:
    """A MonitoringConfig: metrics for Prometheus, on the REST port."""
    return f'prometheus_config {{ enable: true path: "{METRICS_PATH}" }}\n'


USER = 1000
"""An unprivileged user, as in KServe's runtime; TensorFlow Serving's image sets none."""

CHECK_SECONDS = 10
CHECK_TIMEOUT_SECONDS = 5
CHECK_RETRIES = 3


def health_check(deployment: Deployment) -> list[str]:
    """A command that succeeds once a version is served. The image has no curl, but a bash that can open connections."""
    request = f"GET {deployment.readiness_path} HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n"
    script = (
        f"exec 3<>/dev/tcp/127.0.0.1/{REST_PORT} && printf '{request}' >&3 && "
        "read -r status <&3 && [[ $status == *' 200 '* ]]"
    )
    return ["bash", "-c", script]


def dockerfile(deployment: Deployment) -> str:
    """An image with the model in it; its versions come from the named build context `models`."""
    configs = list(config_files(deployment, deployment.folder))
    check = (
        f"HEALTHCHECK --interval={CHECK_SECONDS}s --timeout={CHECK_TIMEOUT_SECONDS}s "
        f"--start-period={deployment.settings.startup_seconds}s --retries={CHECK_RETRIES} \\\n"
        f"    CMD {json.dumps(health_check(deployment))}"
    )
    start = json.dumps([PROGRAM, *flags(deployment, deployment.folder)], indent=4).replace("\n", " \\\n")
    instructions = [
        f"FROM {deployment.settings.image}",
        f"COPY {' '.join(configs)} {FOLDER}/",
        f"COPY --from=models . {deployment.folder}/",
        f"USER {USER}:{USER}",
        f"EXPOSE {GRPC_PORT} {REST_PORT}",
        check,
        f"ENTRYPOINT {start}",
    ]
    return "\n".join(instructions) + "\n"


def compose(deployment: Deployment) -> dict[str, Any]:
    """One server on the loopback interface, serving the folder that the Pusher writes."""
    configs = config_files(deployment, deployment.folder)
    mounts = {f"./{name}": f"{FOLDER}/{name}" for name in configs} | {deployment.local_folder: deployment.folder}
    service = {
        "image": deployment.settings.image,
        "entrypoint": [PROGRAM],
        "command": flags(deployment, deployment.folder),
        "ports": [f"127.0.0.1:{port}:{port}" for port in (GRPC_PORT, REST_PORT)],
        "volumes": [_mount(source, target) for source, target in mounts.items()],
        "user": f"{USER}:{USER}",
        "read_only": True,
        "tmpfs": ["/tmp"],  # noqa: S108 (the container's own)
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        # TensorFlow Serving handles no signals, and as process 1 it would ignore SIGTERM.
        "init": True,
        "restart": "unless-stopped",
        "healthcheck": {
            # Compose takes a single dollar sign for one of its own variables.
            "test": ["CMD", *(part.replace("$", "$$") for part in health_check(deployment))],
            "interval": f"{CHECK_SECONDS}s",
            "timeout": f"{CHECK_TIMEOUT_SECONDS}s",
            "start_period": f"{deployment.settings.startup_seconds}s",
            "retries": CHECK_RETRIES,
        },
        "deploy": {"resources": {"limits": _limits(deployment.settings.resources)}},
    }
    return {"name": f"{deployment.resource_name}-serving", "services": {deployment.resource_name: service}}


def _limits(resources: ResourcesSettings) -> dict[str, str]:
    """The amounts in Compose's notation, whose units are binary although they do not say so."""
    return {"cpus": f"{resources.cpu:g}", "memory": re.sub("i$", "b", resources.memory).lower()}


def _mount(source: str, target: str) -> dict[str, Any]:
    """A read-only mount that fails if the source is missing; Docker would make an empty folder, and the server wait."""
    bind = {"create_host_path": False}
    return {"type": "bind", "source": source, "target": target, "read_only": True, "bind": bind}
