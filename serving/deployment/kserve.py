"""A KServe InferenceService, run by KServe's own runtime for TensorFlow Serving."""

from __future__ import annotations

from typing import Any

from serving.deployment import pod
from serving.deployment.settings import Deployment

# As in KServe's runtime kserve-tensorflow-serving, whose container these are.
REST_PORT = 8080
MODELS_FOLDER = "/mnt/models"


def inference_service(deployment: Deployment) -> dict[str, Any]:
    """The InferenceService; splitting traffic takes Knative, so it asks for that."""
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
        "minReplicas": deployment.replicas.min,
        "maxReplicas": deployment.replicas.max,
        "model": _model(deployment),
    }
    version = deployment.kserve.version
    if version is not None:
        # Each version is a revision of its own: a server that starts later serves the same as its neighbours.
        uri = deployment.store.uri(deployment.name, str(version))
        predictor["storageUris"] = [{"uri": uri, "mountPath": f"{MODELS_FOLDER}/{version}"}]
    if deployment.kserve.canary_percent is not None:
        predictor["canaryTrafficPercent"] = deployment.kserve.canary_percent
    return predictor


def _model(deployment: Deployment) -> dict[str, Any]:
    model = {
        "modelFormat": {"name": "tensorflow", "version": "2"},
        "protocolVersion": "v1",
        "image": deployment.image,
        # The runtime names the model after the InferenceService.
        "readinessProbe": {"httpGet": {"path": f"/v1/models/{deployment.resource_name}/metadata", "port": REST_PORT}},
        "resources": pod.resources(deployment),
        "securityContext": pod.security(),
    }
    if deployment.kserve.version is None:
        model["storageUri"] = deployment.store.uri(deployment.name)
    return model
