"""Policies, labels, reloading, and starts that cannot succeed."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from manager_scene import PATIENCE, Scene, answering, refused, until

from serving.errors import Code, ServingError
from serving.models.manager import ModelRequest
from serving.settings import All, Latest, ModelConfig, Specific


@pytest.mark.parametrize(
    ("policy", "served"),
    [(Latest(2), {3, 5}), (All(), {1, 3, 5}), (Specific((1, 5)), {1, 5}), (Specific((1, 9)), {1})],
)
def test_policies_choose_versions(scene: Scene, policy: Any, served: set[int]) -> None:
    scene.versions(1, 3, 5)
    manager = scene.started(scene.config(policy=policy))
    until(manager, dict.fromkeys(served, "AVAILABLE"))
    assert [version for _, version in scene.loads.done] == sorted(served, reverse=True)
    assert answering(manager) == max(served)
    assert {answering(manager, version=version) for version in served} == served


def test_labels_lead_to_their_versions(scene: Scene) -> None:
    scene.versions(1, 2)
    manager = scene.started(scene.config(policy=All(), labels={"stable": 1, "canary": 2}))
    assert (answering(manager, label="stable"), answering(manager, label="canary")) == (1, 2)


def test_a_label_of_the_start_must_lead_somewhere(scene: Scene) -> None:
    scene.versions(1)
    config = scene.config(labels={"stable": 3})
    text = "Request to assign label to version 3 of model m, which is not currently available for inference"
    assert refused(lambda: scene.started(config)) == (Code.FAILED_PRECONDITION, text)
    manager = scene.started(config, allow_version_labels_for_unavailable_models=True)
    assert refused(lambda: answering(manager, label="stable")) == (
        Code.NOT_FOUND,
        "Servable not found for request: Specific(m, 3)",
    )


def test_reloading_moves_labels_only_to_versions_that_answer(scene: Scene) -> None:
    scene.versions(1, 2)
    manager = scene.started(scene.config(policy=All(), labels={"stable": 1}))
    until(manager, {2: "AVAILABLE", 1: "AVAILABLE"})
    manager.reload([scene.config(policy=All(), labels={"stable": 2})])
    assert answering(manager, label="stable") == 2
    code, message = refused(lambda: manager.reload([scene.config(policy=All(), labels={"stable": 3, "new": 1})]))
    assert code is Code.FAILED_PRECONDITION
    assert message == "Request to assign label to version 3 of model m, which is not currently available for inference"
    assert answering(manager, label="stable") == 2
    assert refused(lambda: answering(manager, label="new"))[0] is Code.INVALID_ARGUMENT


def test_a_label_in_use_never_moves_to_a_version_that_is_not_loaded(scene: Scene) -> None:
    scene.versions(1)
    manager = scene.started(scene.config(labels={"stable": 1}), allow_version_labels_for_unavailable_models=True)
    manager.reload([scene.config(labels={"stable": 1, "next": 2})])
    assert refused(lambda: manager.reload([scene.config(labels={"stable": 2})]))[0] is Code.FAILED_PRECONDITION
    assert answering(manager, label="stable") == 1


def test_reloading_adds_and_removes_models(scene: Scene) -> None:
    scene.versions(1)
    scene.versions(4, model="other")
    manager = scene.started()
    manager.reload([scene.config("other")])
    with manager.use(ModelRequest("other")) as servable:
        assert servable.version == 4
    until(manager, {1: "END"})
    assert refused(lambda: answering(manager))[1] == "Servable not found for request: Latest(m)"
    assert manager.ready()
    manager.reload([scene.config(), scene.config("other")])
    assert answering(manager) == 1


def test_reloading_moves_a_model_to_another_base_path_without_a_gap(scene: Scene) -> None:
    scene.versions(1)
    scene.versions(1, model="elsewhere")
    manager = scene.started()
    scene.loads.gates[1] = threading.Event()
    manager.reload([ModelConfig("m", scene.base / "elsewhere")])
    assert scene.loads.begun.wait(PATIENCE)
    assert answering(manager) == 1
    scene.loads.gates[1].set()
    assert manager.wait_for(lambda: scene.loads.fakes[0].closed, PATIENCE)
    with manager.use(ModelRequest("m", version=1)) as servable:
        assert servable.path == scene.base / "elsewhere" / "1"


def test_reloading_refuses_and_changes_nothing(scene: Scene) -> None:
    scene.versions(1)
    manager = scene.started()
    assert refused(lambda: manager.reload([scene.config(), scene.config()])) == (
        Code.INVALID_ARGUMENT,
        "Illegal to list model m multiple times in config list",
    )
    assert refused(lambda: manager.reload([ModelConfig("m", Path("models"))])) == (
        Code.INVALID_ARGUMENT,
        "Expected model m to have an absolute path or URI; got base_path()=models",
    )
    assert answering(manager) == 1


def test_reloading_says_why_a_new_model_does_not_load(scene: Scene) -> None:
    scene.versions(1)
    scene.versions(7, model="other")
    manager = scene.started(max_num_load_retries=0)
    scene.loads.broken[7] = ServingError(Code.DATA_LOSS, "truncated")
    assert refused(lambda: manager.reload([scene.config(), scene.config("other")])) == (
        Code.UNKNOWN,
        "1 model(s) did not become available: other: version 7 failed: truncated",
    )
    assert answering(manager) == 1


def test_the_configuration_file_is_read_again(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.versions(1, 2)
    manager = scene.started(scene.config())
    file = scene.base / "models.config"
    good = file.read_text()
    file.write_text("model_config_list { config { nonsense: 1 } }")
    manager.reload_file()
    assert "expected a ModelServerConfig in text form" in caplog.text
    file.write_text(good.replace("num_versions: 1", "num_versions: 2"))
    manager.reload_file()
    until(manager, {2: "AVAILABLE", 1: "AVAILABLE"})


def test_a_start_that_cannot_succeed_says_why(scene: Scene) -> None:
    missing = scene.manager()
    assert refused(lambda: missing.start(0.01)) == (
        Code.UNKNOWN,
        f"1 model(s) did not become available: m: Could not find base path {scene.base}/m for servable m "
        "with error No such file or directory",
    )
    scene.versions("not-a-version")
    empty = scene.manager()
    assert refused(lambda: empty.start(0.01))[1] == (
        f"1 model(s) did not become available: m: no version to serve in {scene.base}/m, expected folders named by "
        f"integers, such as {scene.base}/m/1"
    )
    scene.versions(1)
    scene.loads.broken[1] = ServingError(Code.DATA_LOSS, "truncated")
    broken = scene.manager(max_num_load_retries=0)
    assert refused(lambda: broken.start(PATIENCE))[1] == (
        "1 model(s) did not become available: m: version 1 failed: truncated"
    )
    assert not broken.ready()


def test_a_start_ends_when_a_load_hangs(scene: Scene) -> None:
    scene.versions(1)
    scene.loads.gates[1] = threading.Event()
    manager = scene.manager()
    assert (
        refused(lambda: manager.start(0.05))[1] == "1 model(s) did not become available: m: version 1 is still loading"
    )
