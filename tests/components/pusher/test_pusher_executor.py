"""What is pushed, what is not, and what the metadata store records."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pusher_helpers import NOW, numbers
from tfx.types import standard_artifacts

from components.artifacts import TFLiteModel
from components.pusher import component, manifest, versions
from contracts.errors import PushError
from contracts.model_reports import InfraReport, PathDifference, Tolerance

REAL_DIGEST = "the model's"
DIFFERENCE = PathDifference(
    path="gRPC predict", rows=2, differing=0, difference=1e-7, tolerance=Tolerance(1e-5, 1e-5), output="score", row=1
)


class Push:
    """Runs the executor on a model of one file.

    Args:
        artifact: Makes artifacts.
        base: The serving folder.
    """

    def __init__(self, artifact: Callable[..., Any], base: Path) -> None:
        self._artifact = artifact
        self._base = base

    def __call__(
        self,
        graph: str = "graph",
        blessed: int = 1,
        infra_blessed: int = 1,
        tried_digest: str = REAL_DIGEST,
        tflite_blessed: int | None = None,
    ) -> Any:
        """Returns the PushedModel; if `tflite_blessed` is None, there is no TF Lite node."""
        model = self._artifact(standard_artifacts.Model)
        model.id = 7
        serving = Path(model.uri, "Format-Serving")
        serving.mkdir()
        (serving / "saved_model.pb").write_text(graph)
        blessing = self._artifact(standard_artifacts.ModelBlessing)
        blessing.set_int_custom_property("blessed", blessed)
        infra_blessing = self._artifact(standard_artifacts.InfraBlessing)
        infra_blessing.set_int_custom_property("blessed", infra_blessed)
        tried = InfraReport(blessed=bool(infra_blessed), paths=[DIFFERENCE])
        Path(infra_blessing.uri, "report.json").write_text(tried.model_dump_json())
        digest = manifest.digest_of_files(manifest.files_of(serving)) if tried_digest == REAL_DIGEST else tried_digest
        infra_blessing.set_string_custom_property("model_digest", digest)
        inputs = {"model": [model], "model_blessing": [blessing], "infra_blessing": [infra_blessing]}
        if tflite_blessed is not None:
            inputs["tflite_model"] = [self._artifact(TFLiteModel, blessed=tflite_blessed)]
            Path(inputs["tflite_model"][0].uri, "model.tflite").write_bytes(b"TFL3")
        pushed = self._artifact(standard_artifacts.PushedModel)
        properties = {"base_directory": str(self._base), "keep_versions": 5, "run_id": "small-1"}
        component.Pusher.EXECUTOR_SPEC.executor_class().Do(inputs, {"pushed_model": [pushed]}, properties)
        return pushed


@pytest.fixture
def run(artifact: Callable[..., Any], base: Path) -> Push:
    return Push(artifact, base)


def properties(pushed: Any) -> dict[str, Any]:
    custom = pushed.mlmd_artifact.custom_properties
    return {name: getattr(value, value.WhichOneof("value")) for name, value in custom.items()}


def test_a_blessed_model_is_pushed_and_noted(run: Push, base: Path) -> None:
    pushed = run()
    assert (base / str(NOW) / "saved_model.pb").read_text() == "graph"
    [version] = versions.find_versions(base)
    assert version.manifest is not None
    noted = properties(pushed)
    assert noted.pop("current_model").endswith("Model-0")
    assert noted == {
        "pushed": 1,
        "pushed_destination": str(base / str(NOW)),
        "pushed_version": str(NOW),
        "pushed_digest": version.manifest.digest,
        "pushed_time": "2023-11-14T22:13:20.900000+00:00",
        "current_model_id": 7,
    }
    assert (version.manifest.origin.run_id, version.manifest.origin.differences) == ("small-1", [DIFFERENCE])
    assert json.loads(Path(pushed.uri, "pushed.json").read_text())["pushed_version"] == str(NOW)


@pytest.mark.parametrize(
    ("tflite_blessed", "pushed"),
    [(None, ["saved_model.pb"]), (0, ["saved_model.pb"]), (1, ["model.tflite", "saved_model.pb"])],
)
def test_a_tf_lite_model_is_pushed_where_it_is_blessed(
    run: Push, base: Path, tflite_blessed: int | None, pushed: list[str]
) -> None:
    run(tflite_blessed=tflite_blessed)
    assert sorted(os.listdir(base / str(NOW))) == ["assets.extra", *pushed]


@pytest.mark.parametrize(
    ("blessings", "reason"),
    [
        ({"blessed": 0, "infra_blessed": 0}, "the Evaluator did not bless the model"),
        ({"infra_blessed": 0}, "the InfraValidator did not bless the model"),
    ],
)
def test_a_model_that_is_not_blessed_is_not_pushed(
    run: Push, base: Path, blessings: dict[str, int], reason: str
) -> None:
    noted = properties(run(**blessings))
    assert not base.exists()
    assert (noted["pushed"], noted["not_pushed_reason"], noted["current_model_id"]) == (0, reason, 7)
    assert not {"pushed_destination", "withdrawn_version"} & noted.keys()


def test_a_model_that_changed_after_it_was_tried_is_refused(run: Push, base: Path) -> None:
    with pytest.raises(PushError, match="expected 0123: it changed after the InfraValidator had tried it"):
        run(tried_digest="0123")
    assert not base.exists()


def test_a_model_that_was_rolled_back_from_is_not_pushed_again(run: Push, base: Path) -> None:
    run("old")
    run("new")
    existing = versions.find_versions(base)
    versions.restore_version(base, existing[0], existing[1])
    noted = properties(run("new"))
    assert (noted["pushed"], noted["withdrawn_version"]) == (0, NOW + 1)
    assert noted["not_pushed_reason"] == f"the model was rolled back from: it is version {NOW + 1}"
    assert numbers(base) == [NOW, NOW + 1, NOW + 2]
    assert properties(run("old"))["pushed_version"] == str(NOW + 2)
    assert properties(run("newest"))["pushed_version"] == str(NOW + 3)
