"""Versions come and go while requests are answered."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from serving.errors import Code, ServingError
from serving.manager import Manager, ModelRequest
from serving.settings import All, Latest, ModelConfig, ServerSettings, Specific

PATIENCE = 20.0


@dataclasses.dataclass
class Fake:
    """A loaded version that computes nothing."""

    name: str
    version: int
    path: Path
    closed: bool = False

    def close(self) -> None:
        self.closed = True


class FakeLoads:
    """Loads fakes; some fail, some wait until the test lets them go.

    Attributes:
        done: What was loaded or tried, in order, as (name, version).
        broken: Versions that fail, with what they raise.
        gates: Versions whose load waits for an event.
        begun: Set when a version with a gate begins to load.
        fakes: All that were loaded.
    """

    def __init__(self) -> None:
        self.done: list[tuple[str, int]] = []
        self.broken: dict[int, Exception] = {}
        self.gates: dict[int, threading.Event] = {}
        self.begun = threading.Event()
        self.fakes: list[Fake] = []

    def __call__(self, name: str, version: int, path: Path) -> Any:
        self.done.append((name, version))
        if version in self.gates:
            self.begun.set()
            assert self.gates[version].wait(PATIENCE)
        if version in self.broken:
            raise self.broken[version]
        self.fakes.append(Fake(name, version, path))
        return self.fakes[-1]


class Clock:
    """A clock that stands still until it is moved."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclasses.dataclass
class Scene:
    """A manager over folders of versions, with its fakes and its clock."""

    base: Path
    loads: FakeLoads
    clock: Clock
    managers: list[Manager]

    def versions(self, *numbers: int | str, model: str = "m") -> None:
        """Makes the base path hold exactly these versions."""
        folder = self.base / model
        folder.mkdir(exist_ok=True)
        for path in folder.iterdir():
            if path.name not in map(str, numbers):
                path.rmdir()
        for number in numbers:
            (folder / str(number)).mkdir(exist_ok=True)

    def config(self, model: str = "m", **options: Any) -> ModelConfig:
        return ModelConfig(model, self.base / model, **options)

    def manager(self, *configs: ModelConfig, monkeypatch: pytest.MonkeyPatch | None = None, **settings: Any) -> Manager:
        options = {"model_base_path": self.base / "m", "model_name": "m", "file_system_poll_wait_seconds": 0}
        if configs:
            file = self.base / "models.config"
            from serving.model_config import to_proto

            file.write_text(str(to_proto(configs)))
            options = {"model_config_file": file, "file_system_poll_wait_seconds": 0}
        manager = Manager(ServerSettings(**{**options, **settings}), self.loads, self.clock)
        self.managers.append(manager)
        return manager

    def started(self, *configs: ModelConfig, **settings: Any) -> Manager:
        manager = self.manager(*configs, **settings)
        manager.start(PATIENCE)
        return manager


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path, FakeLoads(), Clock(), [])
    yield scene
    for gate in scene.loads.gates.values():
        gate.set()
    for manager in scene.managers:
        assert manager.stop(PATIENCE)


def states(manager: Manager, model: str = "m") -> dict[int, str]:
    return {status.version: status.state.name for status in manager.statuses(model)}


def until(manager: Manager, expected: dict[int, str], model: str = "m") -> None:
    manager.wait_for(lambda: states(manager, model) == expected, PATIENCE)
    assert states(manager, model) == expected


def answering(manager: Manager, **request: Any) -> int:
    with manager.use(ModelRequest("m", **request)) as servable:
        return servable.version


def refused(act: Callable[[], object]) -> tuple[Code, str]:
    with pytest.raises(ServingError) as caught:
        act()
    return caught.value.code, caught.value.message


def test_serves_the_latest_version(scene: Scene) -> None:
    scene.versions(1, "00000012", 3)
    manager = scene.started()
    assert scene.loads.done == [("m", 12)]
    assert answering(manager) == answering(manager, version=12) == 12
    assert scene.loads.fakes[0].path == scene.base / "m" / "00000012"
    assert manager.ready()


def test_refuses_models_and_versions_that_are_not_served(scene: Scene) -> None:
    scene.versions(1)
    manager = scene.started()
    assert refused(lambda: answering(manager, version=2)) == (
        Code.NOT_FOUND,
        "Servable not found for request: Specific(m, 2)",
    )
    assert refused(lambda: manager.use(ModelRequest("foo")).__enter__()) == (
        Code.NOT_FOUND,
        "Servable not found for request: Latest(foo)",
    )
    assert refused(lambda: answering(manager, label="canary")) == (
        Code.INVALID_ARGUMENT,
        "Unrecognized servable version label: canary",
    )
    assert refused(lambda: manager.statuses("foo")) == (Code.NOT_FOUND, "Could not find any versions of model foo")
    assert refused(lambda: manager.statuses("m", 7)) == (Code.NOT_FOUND, "Could not find version 7 of model m")


def test_a_new_version_replaces_the_old_one_only_when_it_is_loaded(scene: Scene) -> None:
    scene.versions(1)
    manager = scene.started()
    scene.loads.gates[2] = threading.Event()
    scene.versions(1, 2)
    manager.poll_once()
    assert scene.loads.begun.wait(PATIENCE)
    assert states(manager) == {2: "LOADING", 1: "AVAILABLE"}
    assert answering(manager) == 1
    scene.loads.gates[2].set()
    until(manager, {2: "AVAILABLE", 1: "END"})
    assert answering(manager) == 2
    assert [fake.closed for fake in scene.loads.fakes] == [True, False]


def test_a_version_is_closed_after_its_last_request(scene: Scene) -> None:
    scene.versions(1)
    manager = scene.started()
    with manager.use(ModelRequest("m")) as old:
        scene.versions(2)
        manager.poll_once()
        until(manager, {2: "AVAILABLE", 1: "UNLOADING"})
        assert answering(manager) == 2
        assert not old.closed
    until(manager, {2: "AVAILABLE", 1: "END"})
    assert old.closed


def test_a_request_that_fails_gives_its_version_back(scene: Scene) -> None:
    scene.versions(1)
    manager = scene.started()
    with pytest.raises(ZeroDivisionError), manager.use(ModelRequest("m")):
        raise ZeroDivisionError
    scene.versions(2)
    manager.poll_once()
    until(manager, {2: "AVAILABLE", 1: "END"})


def test_a_corrupt_version_never_replaces_a_good_one(scene: Scene) -> None:
    scene.versions(1)
    manager = scene.started(max_num_load_retries=0)
    scene.loads.broken[2] = ServingError(Code.DATA_LOSS, "truncated")
    scene.versions(1, 2)
    manager.poll_once()
    until(manager, {2: "END", 1: "AVAILABLE"})
    assert answering(manager) == 1
    assert str(manager.statuses("m", 2)[0].error) == "truncated"
    manager.poll_once()
    assert scene.loads.done == [("m", 1), ("m", 2)]
    assert manager.ready()


def test_a_version_that_failed_is_tried_again_when_it_was_replaced(scene: Scene) -> None:
    scene.versions(1)
    manager = scene.started(max_num_load_retries=0)
    scene.loads.broken[2] = ServingError(Code.DATA_LOSS, "truncated")
    scene.versions(1, 2)
    manager.poll_once()
    until(manager, {2: "END", 1: "AVAILABLE"})
    scene.versions(1)
    manager.poll_once()
    scene.loads.broken.clear()
    scene.versions(1, 2)
    manager.poll_once()
    until(manager, {2: "AVAILABLE", 1: "END"})


def test_a_failed_load_is_tried_again_after_the_interval(scene: Scene) -> None:
    scene.versions(1)
    manager = scene.started(max_num_load_retries=2, load_retry_interval_micros=60_000_000)
    scene.loads.broken[2] = RuntimeError("no memory")
    scene.versions(1, 2)
    manager.poll_once()
    tried = lambda times: manager.wait_for(lambda: failures(manager, 2) and len(scene.loads.done) == times, PATIENCE)  # noqa: E731
    assert tried(2)
    assert states(manager) == {2: "LOADING", 1: "AVAILABLE"}
    scene.clock.now = 59.0
    manager.poll_once()
    scene.clock.now = 60.0
    manager.poll_once()
    assert tried(3)
    scene.clock.now = 120.0
    manager.poll_once()
    until(manager, {2: "END", 1: "AVAILABLE"})
    assert scene.loads.done == [("m", 1), ("m", 2), ("m", 2), ("m", 2)]
    error = manager.statuses("m", 2)[0].error
    assert error is not None
    assert (error.code, error.message) == (Code.INTERNAL, "RuntimeError: no memory")


def failures(manager: Manager, version: int) -> bool:
    return manager.statuses("m", version)[0].error is not None


def test_a_version_that_vanishes_between_two_tries_is_forgotten(scene: Scene) -> None:
    scene.versions(1)
    manager = scene.started()
    scene.loads.broken[2] = ServingError(Code.DATA_LOSS, "truncated")
    scene.versions(1, 2)
    manager.poll_once()
    assert manager.wait_for(lambda: failures(manager, 2), PATIENCE)
    scene.versions(1)
    manager.poll_once()
    assert states(manager) == {1: "AVAILABLE"}


def test_the_only_version_stays_when_it_vanishes_for_one_that_cannot_be_loaded(scene: Scene) -> None:
    scene.versions(1)
    manager = scene.started(max_num_load_retries=0)
    scene.loads.broken[2] = ServingError(Code.DATA_LOSS, "truncated")
    scene.versions(2)
    manager.poll_once()
    until(manager, {2: "END", 1: "AVAILABLE"})
    assert answering(manager) == 1


def test_an_empty_base_path_unloads_everything(scene: Scene) -> None:
    scene.versions(1)
    manager = scene.started()
    scene.versions()
    manager.poll_once()
    until(manager, {1: "END"})
    assert not manager.ready()
    scene.versions(1)
    manager.poll_once()
    until(manager, {1: "AVAILABLE"})


def test_a_missing_base_path_changes_nothing_and_stops_no_other_model(scene: Scene) -> None:
    scene.versions(1)
    scene.versions(1, model="other")
    manager = scene.started(scene.config(), scene.config("other"))
    scene.versions()
    (scene.base / "m").rmdir()
    scene.versions(2, model="other")
    manager.poll_once()
    until(manager, {2: "AVAILABLE", 1: "END"}, "other")
    assert answering(manager) == 1


def test_a_version_moved_back_is_served_again(scene: Scene) -> None:
    scene.versions(1, 2)
    manager = scene.started()
    scene.versions(1)
    manager.poll_once()
    until(manager, {2: "END", 1: "AVAILABLE"})
    assert answering(manager) == 1


def test_a_version_is_loaded_anew_while_its_last_request_runs(scene: Scene) -> None:
    scene.versions(1)
    manager = scene.started()
    with manager.use(ModelRequest("m")):
        scene.versions()
        manager.poll_once()
        until(manager, {1: "UNLOADING"})
        scene.versions(1)
        manager.poll_once()
        until(manager, {1: "AVAILABLE"})
    assert manager.wait_for(lambda: scene.loads.fakes[0].closed, PATIENCE)
    assert answering(manager) == 1
    assert not scene.loads.fakes[1].closed


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


def test_stopping_waits_for_the_last_request(scene: Scene) -> None:
    scene.versions(1)
    manager = scene.started()
    with manager.use(ModelRequest("m")) as servable:
        assert not manager.stop(0.01)
        assert not servable.closed
        assert not manager.ready()
        assert refused(lambda: answering(manager))[0] is Code.NOT_FOUND
    assert manager.stop(PATIENCE)
    assert servable.closed
    assert states(manager) == {1: "END"}


def test_the_poller_finds_versions_by_itself(scene: Scene) -> None:
    scene.versions(1)
    manager = scene.started(file_system_poll_wait_seconds=0.001)
    scene.versions(1, 2)
    until(manager, {2: "AVAILABLE", 1: "END"})


def test_no_request_fails_while_versions_are_swapped(scene: Scene) -> None:
    scene.versions(1)
    manager = scene.started()
    failed: list[BaseException] = []
    closed_in_use: list[int] = []
    enough = threading.Event()

    def ask() -> None:
        while not enough.is_set():
            try:
                with manager.use(ModelRequest("m")) as servable:
                    if servable.closed:
                        closed_in_use.append(servable.version)
            except ServingError as error:
                failed.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for version in range(2, 30):
        scene.versions(version - 1, version)
        manager.poll_once()
        until(manager, {version: "AVAILABLE"} | dict.fromkeys(range(1, version), "END"))
    enough.set()
    for thread in threads:
        thread.join()
    assert failed == []
    assert closed_in_use == []
