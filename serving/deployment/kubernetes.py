"""The objects that run TensorFlow Serving in Kubernetes 1.27 and later, and a KServe InferenceService."""

from __future__ import annotations

import hashlib
import math
from typing import Any

from serving.deployment import docker
from serving.deployment.docker import GRPC_PORT, HEALTH_SERVICE, METRICS_PATH, PROGRAM, REST_PORT, USER
from serving.deployment.target import Deployment

# Time for the server to exit after it has answered the requests that it had accepted.
STOP_SECONDS = 5
STARTUP_PERIOD_SECONDS = 2


def pod_template(deployment: Deployment, labels: dict[str, str]) -> dict[str, Any]:
    """The Deployment's pod template."""
    texts = docker.config_files(deployment, deployment.served_from)
    digest = hashlib.sha256("\0".join(f"{name}\0{text}" for name, text in texts.items()).encode()).hexdigest()
    annotations = {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(REST_PORT),
        "prometheus.io/path": METRICS_PATH,
        # Changed settings need new pods: TensorFlow Serving reads the files only once.
        "checksum/config": digest,
    }
    return {"metadata": {"labels": labels, "annotations": annotations}, "spec": _spec(deployment, labels)}


def container_security() -> dict[str, Any]:
    """Denies the container everything that serving does not need."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_resources(deployment: Deployment) -> dict[str, Any]:
    """Requests equal to limits: latency does not depend on neighbours, nor is the server killed for their memory."""
    resources = deployment.settings.resources
    is_whole = float(resources.cpu).is_integer()
    cpu = str(int(resources.cpu)) if is_whole else f"{round(resources.cpu * 1000)}m"
    amounts = {"cpu": cpu, "memory": resources.memory}
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
        "terminationGracePeriodSeconds": deployment.settings.drain_seconds + STOP_SECONDS,
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
        "image": deployment.settings.image,
        "command": [PROGRAM],
        "args": docker.flags(deployment, deployment.served_from),
        "ports": [{"name": "grpc", "containerPort": GRPC_PORT}, {"name": "rest", "containerPort": REST_PORT}],
        **_probes(deployment),
        # A stopping server goes on answering until the cluster no longer sends it requests.
        "lifecycle": {"preStop": {"exec": {"command": ["sleep", str(deployment.settings.drain_seconds)]}}},
        "resources": container_resources(deployment),
        "securityContext": container_security(),
        "volumeMounts": _mounts(deployment),
    }


def _probes(deployment: Deployment) -> dict[str, Any]:
    """Started: the ports are open, as they are once the first version is loaded. Ready: a version is being served."""
    # A gRPC probe in Kubernetes does not take a port's name.
    health = {"port": GRPC_PORT, "service": HEALTH_SERVICE}
    return {
        "startupProbe": {
            "grpc": dict(health),
            "periodSeconds": STARTUP_PERIOD_SECONDS,
            "timeoutSeconds": STARTUP_PERIOD_SECONDS,
            "failureThreshold": math.ceil(deployment.settings.startup_seconds / STARTUP_PERIOD_SECONDS),
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
        {"name": "config", "mountPath": docker.FOLDER, "readOnly": True},
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


# The container of KServe's runtime kserve-tensorflow-serving.
KSERVE_REST_PORT = 8080
KSERVE_MODELS_FOLDER = "/mnt/models"


def inference_service(deployment: Deployment) -> dict[str, Any]:
    """The InferenceService; it asks for Knative, which splitting traffic needs."""
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {
            "name": deployment.resource_name,
            "annotations": {"serving.kserve.io/deploymentMode": "Serverless"},
        },
        "spec": {"predictor": _predictor(deployment)},
    }


def _predictor(deployment: Deployment) -> dict[str, Any]:
    predictor: dict[str, Any] = {
        "minReplicas": deployment.settings.replicas.min,
        "maxReplicas": deployment.settings.replicas.max,
        "model": _model(deployment),
    }
    version = deployment.settings.kserve.version
    if version is not None:
        # Each version is its own revision, so that a server that starts later serves the same one as its neighbours.
        uri = deployment.store.uri(deployment.name, str(version))
        predictor["storageUris"] = [{"uri": uri, "mountPath": f"{KSERVE_MODELS_FOLDER}/{version}"}]
    if deployment.settings.kserve.canary_percent is not None:
        predictor["canaryTrafficPercent"] = deployment.settings.kserve.canary_percent
    return predictor


def _model(deployment: Deployment) -> dict[str, Any]:
    model = {
        "modelFormat": {"name": "tensorflow", "version": "2"},
        "protocolVersion": "v1",
        "image": deployment.settings.image,
        # The runtime names the model after the InferenceService.
        "readinessProbe": {
            "httpGet": {"path": f"/v1/models/{deployment.resource_name}/metadata", "port": KSERVE_REST_PORT}
        },
        "resources": container_resources(deployment),
        "securityContext": container_security(),
    }
    if deployment.settings.kserve.version is None:
        model["storageUri"] = deployment.store.uri(deployment.name)
    return model


Manifest = dict[str, Any]

# Google's metadata server gives credentials for buckets, on its machines and on GKE with workload identity.
METADATA_SERVERS = {"169.254.169.254/32": 80, "169.254.169.252/32": 988}


def manifests(deployment: Deployment) -> list[Manifest]:
    """All objects, in the order in which they need each other."""
    return [
        _object(deployment, "v1", "ServiceAccount", automountServiceAccountToken=False),
        _object(deployment, "v1", "ConfigMap", data=docker.config_files(deployment, deployment.served_from)),
        _object(deployment, "apps/v1", "Deployment", spec=_deployment(deployment)),
        _object(deployment, "v1", "Service", spec=_service(deployment)),
        # gRPC keeps one connection: a client that is to use every server resolves this name to all of them.
        _object(deployment, "v1", "Service", suffix="-headless", spec=_service(deployment) | {"clusterIP": "None"}),
        _object(deployment, "autoscaling/v2", "HorizontalPodAutoscaler", spec=_autoscaler(deployment)),
        _object(deployment, "policy/v1", "PodDisruptionBudget", spec=_disruption_budget(deployment)),
        _object(deployment, "networking.k8s.io/v1", "NetworkPolicy", spec=_network_policy(deployment)),
    ]


def _object(deployment: Deployment, version: str, kind: str, suffix: str = "", **contents: Any) -> Manifest:
    metadata = {"name": deployment.resource_name + suffix, "labels": _labels(deployment)}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **contents}


def _selector(deployment: Deployment) -> dict[str, str]:
    return {"app.kubernetes.io/name": "tensorflow-serving", "app.kubernetes.io/instance": deployment.resource_name}


def _labels(deployment: Deployment) -> dict[str, str]:
    return _selector(deployment) | {"app.kubernetes.io/managed-by": "millrace"}


def _deployment(deployment: Deployment) -> dict[str, Any]:
    # The autoscaler sets the number of replicas; a number here would undo its choice with every apply.
    return {
        "selector": {"matchLabels": _selector(deployment)},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        "progressDeadlineSeconds": deployment.settings.startup_seconds + 300,
        "template": pod_template(deployment, _selector(deployment)),
    }


def _service(deployment: Deployment) -> dict[str, Any]:
    return {
        "selector": _selector(deployment),
        "ports": [
            {"name": "grpc", "port": GRPC_PORT, "targetPort": "grpc", "appProtocol": "grpc"},
            {"name": "rest", "port": REST_PORT, "targetPort": "rest", "appProtocol": "http"},
        ],
    }


def _autoscaler(deployment: Deployment) -> dict[str, Any]:
    replicas = deployment.settings.replicas
    target = {"type": "Utilization", "averageUtilization": replicas.cpu_percent}
    return {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment.resource_name},
        "minReplicas": replicas.min,
        "maxReplicas": replicas.max,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 300}},
    }


def _disruption_budget(deployment: Deployment) -> dict[str, Any]:
    # Not minAvailable: with one replica its node could never be drained.
    return {
        "maxUnavailable": 1,
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
        "selector": {"matchLabels": _selector(deployment)},
    }


def _network_policy(deployment: Deployment) -> dict[str, Any]:
    clients: list[dict[str, Any]] = [{"podSelector": {}}]
    for namespace in deployment.settings.client_namespaces:
        clients.append({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}})
    return {
        "podSelector": {"matchLabels": _selector(deployment)},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": clients, "ports": [_port(GRPC_PORT), _port(REST_PORT)]}],
        "egress": [] if deployment.is_mounted else _egress(),
    }


def _egress() -> list[dict[str, Any]]:
    """Allows DNS, the bucket, and the credentials for it."""
    names = {"ports": [_port(53, "UDP"), _port(53)]}
    bucket = {"ports": [_port(443)]}
    credentials = [
        {"to": [{"ipBlock": {"cidr": address}}], "ports": [_port(port)]} for address, port in METADATA_SERVERS.items()
    ]
    return [names, bucket, *credentials]


def _port(number: int, protocol: str = "TCP") -> dict[str, Any]:
    return {"protocol": protocol, "port": number}
