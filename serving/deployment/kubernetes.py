"""The objects that run TensorFlow Serving in Kubernetes 1.27 and later."""

from __future__ import annotations

from typing import Any

from serving.deployment import configs, pod
from serving.deployment.configs import GRPC_PORT, REST_PORT
from serving.deployment.settings import Deployment

Manifest = dict[str, Any]

# Google's metadata server gives credentials for buckets: on its machines, and on GKE with workload identity.
METADATA_SERVERS = {"169.254.169.254/32": 80, "169.254.169.252/32": 988}


def manifests(deployment: Deployment) -> list[Manifest]:
    """All objects, in the order in which they need each other."""
    return [
        _object(deployment, "v1", "ServiceAccount", automountServiceAccountToken=False),
        _object(deployment, "v1", "ConfigMap", data=configs.config_files(deployment, deployment.served_from)),
        _object(deployment, "apps/v1", "Deployment", spec=_deployment(deployment)),
        _object(deployment, "v1", "Service", spec=_service(deployment)),
        # gRPC keeps one connection: a client that shall use every server asks this name for all of them.
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
    # The autoscaler sets how many there are; a number here would undo its choice with every apply.
    return {
        "selector": {"matchLabels": _selector(deployment)},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        "progressDeadlineSeconds": deployment.startup_seconds + 300,
        "template": pod.template(deployment, _selector(deployment)),
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
    replicas = deployment.replicas
    target = {"type": "Utilization", "averageUtilization": replicas.cpu_percent}
    return {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment.resource_name},
        "minReplicas": replicas.min,
        "maxReplicas": replicas.max,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 300}},
    }


def _disruption_budget(deployment: Deployment) -> dict[str, Any]:
    # Not minAvailable: with one replica that would keep its node from ever being drained.
    return {
        "maxUnavailable": 1,
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
        "selector": {"matchLabels": _selector(deployment)},
    }


def _network_policy(deployment: Deployment) -> dict[str, Any]:
    clients: list[dict[str, Any]] = [{"podSelector": {}}]
    for namespace in deployment.client_namespaces:
        clients.append({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}})
    return {
        "podSelector": {"matchLabels": _selector(deployment)},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": clients, "ports": [_port(GRPC_PORT), _port(REST_PORT)]}],
        "egress": [] if deployment.is_mounted else _egress(),
    }


def _egress() -> list[dict[str, Any]]:
    """Names, the bucket, and credentials for it."""
    names = {"ports": [_port(53, "UDP"), _port(53)]}
    bucket = {"ports": [_port(443)]}
    credentials = [
        {"to": [{"ipBlock": {"cidr": address}}], "ports": [_port(port)]} for address, port in METADATA_SERVERS.items()
    ]
    return [names, bucket, *credentials]


def _port(number: int, protocol: str = "TCP") -> dict[str, Any]:
    return {"protocol": protocol, "port": number}
