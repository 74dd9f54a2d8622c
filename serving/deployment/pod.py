"""The pods of TensorFlow Serving in Kubernetes."""

from __future__ import annotations

import hashlib
import math
from typing import Any

from serving.deployment import configs
from serving.deployment.configs import GRPC_PORT, HEALTH_SERVICE, METRICS_PATH, PROGRAM, REST_PORT
from serving.deployment.docker import USER
from serving.deployment.settings import Deployment

# What is left for the server to end once it has answered what it had taken.
STOP_SECONDS = 5
STARTUP_PERIOD_SECONDS = 2


def template(deployment: Deployment, labels: dict[str, str]) -> dict[str, Any]:
    """The Deployment's pod template."""
    texts = configs.config_files(deployment, deployment.served_from)
    digest = hashlib.sha256("\0".join(f"{name}\0{text}" for name, text in texts.items()).encode()).hexdigest()
    annotations = {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(REST_PORT),
        "prometheus.io/path": METRICS_PATH,
        # New settings are new pods: TensorFlow Serving reads the files once.
        "checksum/config": digest,
    }
    return {"metadata": {"labels": labels, "annotations": annotations}, "spec": _spec(deployment, labels)}


def security() -> dict[str, Any]:
    """What the container may do: nothing that serving does not need."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def resources(deployment: Deployment) -> dict[str, Any]:
    """As much promised as allowed: latency does not depend on neighbours, nor is the server killed for their memory."""
    amounts = deployment.resources.for_kubernetes()
    return {"requests": dict(amounts), "limits": dict(amounts)}


def _spec(deployment: Deployment, labels: dict[str, str]) -> dict[str, Any]:
    volumes: list[dict[str, Any]] = [
        {"name": "config", "configMap": {"name": deployment.resource_name}},
        {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
    ]
    if deployment.is_mounted:
        claim = {"claimName": deployment.store.host, "readOnly": True}
        volumes.append({"name": "models", "persistentVolumeClaim": claim})
    return {
        "serviceAccountName": deployment.resource_name,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": deployment.drain_seconds + STOP_SECONDS,
        "topologySpreadConstraints": [
            _spread("topology.kubernetes.io/zone", labels),
            _spread("kubernetes.io/hostname", labels),
        ],
        "containers": [_container(deployment)],
        "volumes": volumes,
    }


def _container(deployment: Deployment) -> dict[str, Any]:
    return {
        "name": "tensorflow-serving",
        "image": deployment.image,
        "command": [PROGRAM],
        "args": configs.flags(deployment, deployment.served_from),
        "ports": [{"name": "grpc", "containerPort": GRPC_PORT}, {"name": "rest", "containerPort": REST_PORT}],
        **_probes(deployment),
        # A server that shall stop goes on answering while the cluster learns to send it no more.
        "lifecycle": {"preStop": {"exec": {"command": ["sleep", str(deployment.drain_seconds)]}}},
        "resources": resources(deployment),
        "securityContext": security(),
        "volumeMounts": _mounts(deployment),
    }


def _probes(deployment: Deployment) -> dict[str, Any]:
    """Started: the ports are open, which they are once the first version is loaded. Ready: a version serves."""
    # Kubernetes takes no port's name in a gRPC probe.
    health = {"port": GRPC_PORT, "service": HEALTH_SERVICE}
    return {
        "startupProbe": {
            "grpc": dict(health),
            "periodSeconds": STARTUP_PERIOD_SECONDS,
            "timeoutSeconds": STARTUP_PERIOD_SECONDS,
            "failureThreshold": math.ceil(deployment.startup_seconds / STARTUP_PERIOD_SECONDS),
        },
        "readinessProbe": {
            "httpGet": {"path": deployment.readiness_path, "port": "rest"},
            "periodSeconds": 5,
            "timeoutSeconds": 2,
            "failureThreshold": 2,
        },
        "livenessProbe": {"grpc": dict(health), "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 3},
    }


def _mounts(deployment: Deployment) -> list[dict[str, Any]]:
    mounts: list[dict[str, Any]] = [
        {"name": "config", "mountPath": configs.FOLDER, "readOnly": True},
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 (the container's own)
    ]
    if deployment.is_mounted:
        folder = deployment.store.folder(deployment.name)
        mounts.append({"name": "models", "mountPath": deployment.folder, "subPath": folder, "readOnly": True})
    return mounts


def _spread(over: str, labels: dict[str, str]) -> dict[str, Any]:
    return {
        "maxSkew": 1,
        "topologyKey": over,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels},
    }
