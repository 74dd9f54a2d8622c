"""ModelServerConfig in text form and as a message."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from serving.errors import Code, ServingError
from serving.models import configuration
from serving.settings import All, Latest, ModelConfig, ServerSettings, Specific

TEXT = """
model_config_list {
  config { name: "one" base_path: "/models/one" model_platform: "tensorflow" }
  config {
    name: "two" base_path: "/models/two" model_platform: "tensorflow"
    model_version_policy { specific { versions: 42 versions: 43 } }
    version_labels { key: "stable" value: 42 }
    version_labels { key: "canary" value: 43 }
  }
  config { name: "three" base_path: "/models/3" model_type: TENSORFLOW model_version_policy { all {} } }
  config { name: "four" base_path: "/models/4" model_platform: "tensorflow"
           model_version_policy { latest { num_versions: 3 } } }
}
"""
CONFIGS = [
    ModelConfig("one", Path("/models/one")),
    ModelConfig("two", Path("/models/two"), Specific((42, 43)), {"stable": 42, "canary": 43}),
    ModelConfig("three", Path("/models/3"), All()),
    ModelConfig("four", Path("/models/4"), Latest(3)),
]


def test_reads_models_policies_and_labels(tmp_path: Path) -> None:
    (tmp_path / "models.config").write_text(TEXT)
    assert configuration.read_models(tmp_path / "models.config") == CONFIGS
    assert configuration.configured_models(ServerSettings(model_config_file=tmp_path / "models.config")) == CONFIGS


def test_writes_what_it_reads() -> None:
    assert configuration.models_from_proto(configuration.models_to_proto(CONFIGS)) == CONFIGS


def test_one_model_comes_from_the_flags(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    settings = ServerSettings(model_name="taxi", model_base_path=Path("models/taxi"))
    assert configuration.configured_models(settings) == [ModelConfig("taxi", tmp_path / "models" / "taxi")]


def test_no_model_at_all_is_refused() -> None:
    with pytest.raises(ServingError, match="received neither model_base_path nor model_config_file"):
        configuration.configured_models(ServerSettings())


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ('base_path: "/m" model_platform: "tensorflow"', "received a model without a name, expected one"),
        (
            'name: "m" base_path: "m" model_platform: "tensorflow"',
            "Expected model m to have an absolute path or URI; got base_path()=m",
        ),
        (
            'name: "m" model_platform: "tensorflow"',
            "Expected model m to have an absolute path or URI; got base_path()=",
        ),
        (
            'name: "m" base_path: "/m"',
            "Illegal setting neither ModelServerConfig::model_type (deprecated) nor ModelServerConfig::model_platform.",
        ),
        (
            'name: "m" base_path: "/m" model_type: TENSORFLOW model_platform: "tensorflow"',
            "Illegal setting both ModelServerConfig::model_type (deprecated) and ModelServerConfig::model_platform.",
        ),
        (
            'name: "m" base_path: "/m" model_platform: "caffe"',
            "Model m requests unsupported platform caffe",
        ),
        (
            'name: "m" base_path: "/m" model_platform: "tensorflow" model_version_policy { specific {} }',
            "received a specific version policy without versions for model m, expected at least one",
        ),
    ],
)
def test_wrong_models_are_refused(config: str, message: str) -> None:
    proto = text_format.Parse(f"model_config_list {{ config {{ {config} }} }}", ModelServerConfig())
    with pytest.raises(ServingError) as caught:
        configuration.models_from_proto(proto)
    assert (caught.value.code, caught.value.message) == (Code.INVALID_ARGUMENT, message)


def test_a_name_listed_twice_is_refused() -> None:
    with pytest.raises(ServingError, match="Illegal to list model one multiple times in config list"):
        configuration.check_models([CONFIGS[0], CONFIGS[0]])


def test_custom_configurations_are_refused() -> None:
    proto = ModelServerConfig()
    proto.custom_model_config.SetInParent()
    with pytest.raises(ServingError, match="received custom_model_config, expected model_config_list"):
        configuration.models_from_proto(proto)


@pytest.mark.parametrize("content", [b"model_config_list { config { nam: 1 } }", b"\xff\xfe"])
def test_files_that_do_not_fit_are_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "models.config"
    file.write_bytes(content)
    with pytest.raises(ServingError, match=f"received model_config_file {file}, expected a ModelServerConfig"):
        configuration.read_models(file)


def test_a_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ServingError, match="No such file or directory"):
        configuration.read_models(tmp_path / "none.config")
