"""Versions come and go while requests are answered."""

from __future__ import annotations

import threading

import pytest
from manager_scene import PATIENCE, Scene, answering, failures, refused, states, until

from serving.errors import Code, ServingError
from serving.models.manager import ModelRequest


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

    def tried(times: int) -> bool:
        return manager.wait_for(lambda: failures(manager, 2) and len(scene.loads.done) == times, PATIENCE)

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


def test_only_so_many_ended_versions_are_remembered(scene: Scene) -> None:
    scene.versions(1)
    manager = scene.started()
    for version in range(2, 106):
        scene.versions(version)
        manager.poll_once()
        assert manager.wait_for(lambda v=version: states(manager).get(v - 1, "END") == "END", PATIENCE)
        assert answering(manager) == version
    remembered = states(manager)
    assert (len(remembered), max(remembered), min(remembered)) == (102, 105, 4)


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
