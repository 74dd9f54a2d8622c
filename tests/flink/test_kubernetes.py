"""The Flink of a Kubernetes cluster fits the published schemas, and the environment that docs/flink.md shows."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from pipeline.plan import beam
from pipeline.plan.environment import Environment

PROJECT = Path(__file__).resolve().parents[2]
VERSION = "1.29"


@pytest.fixture
def objects() -> dict[str, Any]:
    documents = yaml.safe_load_all((PROJECT / "flink" / "kubernetes" / "flink.yaml").read_text())
    return {document["kind"]: document for document in documents}


def check(deployment: dict[str, Any]) -> None:
    schema = json.loads(Path(__file__).with_name("flinkdeployment.json").read_text())
    jsonschema.validate(deployment, schema)
    pod = copy.deepcopy(deployment["spec"]["taskManager"]["podTemplate"])
    # The operator fills in the image of Flink's container.
    pod["spec"]["containers"][0].setdefault("image", "flink")
    kubernetes_validate.validate(pod, VERSION, strict=True)


def test_all_fits_the_published_schemas(objects: dict[str, Any]) -> None:
    assert set(objects) == {"FlinkDeployment", "Deployment", "Service"}
    check(objects["FlinkDeployment"])
    for kind in ("Deployment", "Service"):
        kubernetes_validate.validate(objects[kind], VERSION, strict=True)


@pytest.mark.parametrize("place", [("spec", "taskManagers"), ("spec", "taskManager", "podTemplate", "spec", "volume")])
def test_the_check_refuses_an_unknown_field(objects: dict[str, Any], place: tuple[str, ...]) -> None:
    part = objects["FlinkDeployment"]
    for name in place[:-1]:
        part = part[name]
    part[place[-1]] = {}
    with pytest.raises((jsonschema.ValidationError, kubernetes_validate.ValidationError), match=place[-1]):
        check(objects["FlinkDeployment"])


def test_the_documented_environment_reaches_it(objects: dict[str, Any]) -> None:
    text = (PROJECT / "docs" / "flink.md").read_text()
    settings = yaml.safe_load(text.split("```yaml\n# environments/cluster.yaml\n")[1].split("```")[0])
    chosen = Environment.model_validate(settings).beam
    options = dict(option.removeprefix("--").split("=", 1) for option in beam.pipeline_options(chosen))
    service, spec = objects["Service"], objects["FlinkDeployment"]["spec"]
    ports = {port["name"]: port["port"] for port in service["spec"]["ports"]}
    assert options["job_endpoint"] == f"{service['metadata']['name']}:{ports['jobs']}"
    assert options["artifact_endpoint"] == f"{service['metadata']['name']}:{ports['artifacts']}"
    worker = spec["taskManager"]["podTemplate"]["spec"]["containers"][1]
    assert options["environment_type"] == "EXTERNAL"
    assert options["environment_config"] == f"localhost:{worker['ports'][0]['containerPort']}"
    slots = int(spec["flinkConfiguration"]["taskmanager.numberOfTaskSlots"]) * spec["taskManager"]["replicas"]
    assert int(options["parallelism"]) == slots
    assert settings["pipeline_root"].startswith(worker["volumeMounts"][0]["mountPath"] + "/")
