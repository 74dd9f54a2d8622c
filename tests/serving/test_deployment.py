"""The files that `millrace deploy` writes match the published schemas and each other."""

from __future__ import annotations

import copy
import json
from typing import Any

import deployments
import jsonschema
import kubernetes_validate
import pytest
import yaml
from deployments import PLAIN, WHOLE
from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from serving import deployment
from serving.deployment import Deployment
from serving.protos import BatchingParameters, MonitoringConfig
from serving.settings import ServerSettings

S3 = deployments.changed(PLAIN, model_store="s3://bucket")
VARIANTS = pytest.mark.parametrize("chosen", [PLAIN, WHOLE], ids=["plain", "whole"])


def model_of(text: str) -> Any:
    (model,) = text_format.Parse(text, ModelServerConfig()).model_config_list.config
    return model


def flags_of(words: list[str]) -> dict[str, str]:
    return dict(word.removeprefix("--").split("=", 1) for word in words)


@VARIANTS
def test_kubernetes_objects_fit_the_published_schemas(chosen: Deployment) -> None:
    documents = list(yaml.safe_load_all(deployments.texts(chosen)["kubernetes.yaml"]))
    kinds = (
        "ServiceAccount ConfigMap Deployment Service Service HorizontalPodAutoscaler PodDisruptionBudget NetworkPolicy"
    )
    assert [document["kind"] for document in documents] == kinds.split()
    for document in documents:
        deployments.check_kubernetes(document)


def test_the_check_of_kubernetes_objects_refuses_an_unknown_field() -> None:
    wrong = copy.deepcopy(deployments.objects(PLAIN)["Deployment"])
    wrong["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="readinesProbe"):
        deployments.check_kubernetes(wrong)


@VARIANTS
def test_compose_fits_the_published_schema(chosen: Deployment) -> None:
    document = yaml.safe_load(deployments.texts(chosen)["compose.yaml"])
    deployments.check_compose(document)
    (service,) = document["services"].values()
    service["imagee"] = service.pop("image")
    with pytest.raises(jsonschema.ValidationError, match="imagee"):
        deployments.check_compose(document)


@VARIANTS
def test_the_inference_service_fits_the_published_models(chosen: Deployment) -> None:
    service = deployments.inference_service(chosen)
    deployments.check_inference_service(service)
    for mistake in ({"storageURI": "gs://b"}, {"resources": {"limit": {}}}):
        wrong = copy.deepcopy(service)
        wrong["spec"]["predictor"]["model"] |= mistake
        with pytest.raises(jsonschema.ValidationError, match="Additional properties"):
            deployments.check_inference_service(wrong)


def test_models_config_is_what_tensorflow_serving_reads() -> None:
    plain = model_of(deployments.texts(PLAIN)["models.config"])
    assert (plain.name, plain.base_path, plain.model_platform) == ("small", "/models/small", "tensorflow")
    assert plain.model_version_policy.latest.num_versions == 1
    model = model_of(deployments.texts(WHOLE)["models.config"])
    assert model.base_path == "/models/_Two_Words"
    assert list(model.model_version_policy.specific.versions) == [3, 4]
    assert dict(model.version_labels) == {"stable": 3, "canary": 4}


def test_batching_config_is_what_tensorflow_serving_reads() -> None:
    message = text_format.Parse(deployments.texts(WHOLE)["batching.config"], BatchingParameters())
    assert message.max_batch_size.value == 32
    assert message.batch_timeout_micros.value == 1000
    assert message.max_enqueued_batches.value == 50
    assert message.num_batch_threads.value == 4
    assert list(message.allowed_batch_sizes) == [8, 32]
    assert message.pad_variable_length_inputs


def test_without_batching_there_is_no_file_and_no_flag() -> None:
    texts = deployments.texts(PLAIN)
    assert "batching.config" not in texts
    assert not [name for name, text in texts.items() if "batching" in text]


@VARIANTS
def test_metrics_are_shown_where_prometheus_is_told_to_look(chosen: Deployment) -> None:
    config = text_format.Parse(deployments.texts(chosen)["monitoring.config"], MonitoringConfig()).prometheus_config
    assert config.enable
    annotations = deployments.objects(chosen)["Deployment"]["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/path"] == config.path
    assert annotations["prometheus.io/port"] == flags_of(deployments.container(chosen)["args"])["rest_api_port"]


@VARIANTS
def test_the_ports_are_the_same_everywhere(chosen: Deployment) -> None:
    flags = flags_of(deployments.container(chosen)["args"])
    grpc, rest = int(flags["port"]), int(flags["rest_api_port"])
    in_compose = flags_of(deployments.compose_service(chosen)["command"])
    assert (int(in_compose["port"]), int(in_compose["rest_api_port"])) == (grpc, rest)
    objects = deployments.objects(chosen)
    named = {port["name"]: port["containerPort"] for port in deployments.container(chosen)["ports"]}
    assert named == {"grpc": grpc, "rest": rest}
    assert [(p["targetPort"], p["port"]) for p in objects["Service"]["spec"]["ports"]] == [
        ("grpc", grpc),
        ("rest", rest),
    ]
    (allowed,) = objects["NetworkPolicy"]["spec"]["ingress"]
    assert [port["port"] for port in allowed["ports"]] == [grpc, rest]
    published = [f"127.0.0.1:{port}:{port}" for port in (grpc, rest)]
    assert deployments.compose_service(chosen)["ports"] == published
    assert ("EXPOSE", f"{grpc} {rest}") in deployments.instructions(deployments.texts(chosen)["Dockerfile"])


@VARIANTS
def test_selectors_match_the_pods_and_references_the_names(chosen: Deployment) -> None:
    objects = deployments.objects(chosen)
    template = objects["Deployment"]["spec"]["template"]
    labels = template["metadata"]["labels"]
    name = objects["Deployment"]["metadata"]["name"]
    selectors = [
        objects["Deployment"]["spec"]["selector"]["matchLabels"],
        objects["Service"]["spec"]["selector"],
        objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        objects["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
        *(constraint["labelSelector"]["matchLabels"] for constraint in template["spec"]["topologySpreadConstraints"]),
    ]
    assert selectors == [labels] * 6
    assert labels["app.kubernetes.io/instance"] == name
    target = objects["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("Deployment", name)
    assert template["spec"]["serviceAccountName"] == objects["ServiceAccount"]["metadata"]["name"]
    assert template["spec"]["volumes"][0]["configMap"]["name"] == objects["ConfigMap"]["metadata"]["name"]


def test_two_words_and_capitals_are_a_name_in_kubernetes_and_stay_the_models_name() -> None:
    assert {document["metadata"]["name"] for document in deployments.objects(WHOLE).values()} == {"two-words"}
    assert deployments.inference_service(WHOLE)["metadata"]["name"] == "two-words"
    assert model_of(deployments.objects(WHOLE)["ConfigMap"]["data"]["models.config"]).name == "_Two_Words"


def test_a_claim_is_mounted_read_only_where_models_config_looks() -> None:
    pod = deployments.objects(PLAIN)["Deployment"]["spec"]["template"]["spec"]
    mount = next(entry for entry in deployments.container(PLAIN)["volumeMounts"] if entry["name"] == "models")
    base_path = model_of(deployments.objects(PLAIN)["ConfigMap"]["data"]["models.config"]).base_path
    assert mount == {"name": "models", "mountPath": base_path, "subPath": "small", "readOnly": True}
    volume = next(entry for entry in pod["volumes"] if entry["name"] == "models")
    assert volume["persistentVolumeClaim"] == {"claimName": "models", "readOnly": True}
    assert deployments.objects(PLAIN)["NetworkPolicy"]["spec"]["egress"] == []


def test_a_bucket_is_read_by_its_uri() -> None:
    base_path = model_of(deployments.objects(WHOLE)["ConfigMap"]["data"]["models.config"]).base_path
    assert base_path == "gs://bucket/some/models/_Two_Words"
    assert [mount["name"] for mount in deployments.container(WHOLE)["volumeMounts"]] == ["config", "tmp"]
    assert flags_of(deployments.container(WHOLE)["args"])["file_system_poll_wait_seconds"] == "30"
    egress = deployments.objects(WHOLE)["NetworkPolicy"]["spec"]["egress"]
    assert [port["port"] for rule in egress for port in rule["ports"]] == [53, 53, 443, 80, 988]


def test_what_tensorflow_serving_does_not_read_is_left_to_kserve() -> None:
    assert "kubernetes.yaml" not in deployments.texts(S3)
    assert deployments.inference_service(S3)["spec"]["predictor"]["model"]["storageUri"] == "s3://bucket/small"


@VARIANTS
def test_config_files_lie_where_the_flags_name_them(chosen: Deployment) -> None:
    texts = deployments.texts(chosen)
    names = {name for name in texts if name.endswith(".config")}
    paths = {f"/etc/tensorflow-serving/{name}" for name in names}
    named = {value for value in flags_of(deployments.container(chosen)["args"]).values() if value.startswith("/etc/")}
    assert named == paths
    assert set(deployments.objects(chosen)["ConfigMap"]["data"]) == names
    assert deployments.container(chosen)["volumeMounts"][0]["mountPath"] == "/etc/tensorflow-serving"
    mounts = {volume["source"]: volume["target"] for volume in deployments.compose_service(chosen)["volumes"]}
    assert mounts == {f"./{name}": f"/etc/tensorflow-serving/{name}" for name in names} | {
        chosen.local_folder: model_of(texts["models.config"]).base_path
    }
    copied = dict(deployments.instructions(texts["Dockerfile"]))["COPY"]
    assert copied == f"--from=models . {model_of(texts['models.config']).base_path}/"


@VARIANTS
def test_the_dockerfile_starts_what_compose_starts(chosen: Deployment) -> None:
    instructions = deployments.instructions(deployments.texts(chosen)["Dockerfile"])
    assert [name for name, _ in instructions] == ["FROM", "COPY", "COPY", "USER", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT"]
    service = deployments.compose_service(chosen)
    assert dict(instructions)["FROM"] == service["image"] == chosen.settings.image
    assert dict(instructions)["USER"] == service["user"] == "1000:1000"
    assert json.loads(dict(instructions)["ENTRYPOINT"]) == [*service["entrypoint"], *service["command"]]
    check = json.loads(dict(instructions)["HEALTHCHECK"].split("CMD ", 1)[1])
    assert service["healthcheck"]["test"] == ["CMD", *(word.replace("$", "$$") for word in check)]


@VARIANTS
def test_every_flag_is_one_that_our_server_has_too(chosen: Deployment) -> None:
    assert set(flags_of(deployments.container(chosen)["args"])) <= set(ServerSettings.model_fields)


@VARIANTS
def test_pods_have_no_rights_that_serving_does_not_need(chosen: Deployment) -> None:
    pod = deployments.objects(chosen)["Deployment"]["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    security = deployments.container(chosen)["securityContext"]
    assert security == deployments.inference_service(chosen)["spec"]["predictor"]["model"]["securityContext"]
    assert security["runAsNonRoot"]
    assert security["runAsUser"] > 0
    assert security["readOnlyRootFilesystem"]
    assert not security["allowPrivilegeEscalation"]
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    writable = [
        volume_mount["mountPath"]
        for volume_mount in deployments.container(chosen)["volumeMounts"]
        if not volume_mount.get("readOnly")
    ]
    assert writable == ["/tmp"]  # noqa: S108
    service = deployments.compose_service(chosen)
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert all(mount["read_only"] for mount in service["volumes"])


def test_amounts_are_requested_and_limited_in_each_format() -> None:
    amounts = {"cpu": "1500m", "memory": "512Mi"}
    assert deployments.container(WHOLE)["resources"] == {"requests": amounts, "limits": amounts}
    assert deployments.compose_service(WHOLE)["deploy"]["resources"]["limits"] == {"cpus": "1.5", "memory": "512mb"}
    assert flags_of(deployments.container(WHOLE)["args"])["tensorflow_session_parallelism"] == "2"
    assert deployments.container(PLAIN)["resources"]["limits"] == {"cpu": "1", "memory": "2Gi"}


def test_probes_tell_started_from_ready() -> None:
    container = deployments.container(WHOLE)
    health = {"port": container["ports"][0]["containerPort"], "service": "PredictionService"}
    assert flags_of(container["args"])["enable_grpc_healthcheck_service"] == "true"
    assert container["startupProbe"]["grpc"] == container["livenessProbe"]["grpc"] == health
    assert container["startupProbe"]["periodSeconds"] * container["startupProbe"]["failureThreshold"] == 62
    assert container["readinessProbe"]["httpGet"] == {"path": "/v1/models/_Two_Words/metadata", "port": "rest"}


def test_roll_out_and_stop_lose_no_request() -> None:
    spec = deployments.objects(WHOLE)["Deployment"]["spec"]
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    assert "replicas" not in spec
    assert deployments.container(WHOLE)["lifecycle"]["preStop"]["exec"]["command"] == ["sleep", "7"]
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] == 12
    autoscaler = deployments.objects(WHOLE)["HorizontalPodAutoscaler"]["spec"]
    assert (autoscaler["minReplicas"], autoscaler["maxReplicas"]) == (1, 3)
    assert autoscaler["metrics"][0]["resource"]["target"]["averageUtilization"] == 55


def test_new_settings_are_new_pods() -> None:
    def digest(chosen: Deployment) -> str:
        annotations = deployments.objects(chosen)["Deployment"]["spec"]["template"]["metadata"]["annotations"]
        return str(annotations["checksum/config"])

    relabelled = deployments.changed(WHOLE, versions={"specific": [3, 4], "labels": {"stable": 4}})
    assert digest(WHOLE) != digest(relabelled)
    assert digest(WHOLE) == digest(deployments.changed(WHOLE, drain_seconds=1))


def test_other_namespaces_are_let_in_by_name() -> None:
    def clients(chosen: Deployment) -> Any:
        return deployments.objects(chosen)["NetworkPolicy"]["spec"]["ingress"][0]["from"]

    named = [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}} for name in ("monitoring", "web")
    ]
    assert clients(PLAIN) == [{"podSelector": {}}]
    assert clients(WHOLE) == [{"podSelector": {}}, *named]


def test_kserve_serves_the_newest_or_one_version_as_a_canary() -> None:
    plain = deployments.inference_service(PLAIN)["spec"]["predictor"]
    assert plain["model"]["storageUri"] == "pvc://models/small"
    assert "canaryTrafficPercent" not in plain
    predictor = deployments.inference_service(WHOLE)["spec"]["predictor"]
    assert predictor["storageUris"] == [{"uri": "gs://bucket/some/models/_Two_Words/4", "mountPath": "/mnt/models/4"}]
    assert predictor["canaryTrafficPercent"] == 10
    assert "storageUri" not in predictor["model"]
    assert predictor["model"]["readinessProbe"]["httpGet"] == {"path": "/v1/models/two-words/metadata", "port": 8080}


@VARIANTS
def test_every_file_says_where_it_comes_from(chosen: Deployment) -> None:
    texts = deployments.texts(chosen)
    assert set(texts) <= set(deployment.ALL_FILES)
    assert all(text.startswith(deployments.HEADER + "\n") for text in texts.values())
