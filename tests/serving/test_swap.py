"""Real models are swapped under load without one failed or wrong answer."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from serving.errors import ServingError
from serving.models.manager import Manager, ModelRequest, State
from serving.settings import ServerSettings

PATIENCE = 60.0


@pytest.fixture
def manager(push: Callable[..., Path]) -> Manager:
    base_path = push(1).parent
    settings = ServerSettings(
        model_name="m", model_base_path=base_path, file_system_poll_wait_seconds=0, max_num_load_retries=0
    )
    return Manager(settings)


def test_answers_go_on_while_versions_are_swapped(manager: Manager, push: Callable[..., Path]) -> None:
    manager.start(PATIENCE)
    mismatches: list[object] = []
    answered: set[int] = set()
    enough = threading.Event()

    def ask() -> None:
        x = np.array([4], np.float32)
        while not enough.is_set():
            try:
                with manager.use(ModelRequest("m")) as servable:
                    output = servable.run("serving_default", {"x": x})["y"].tolist()
                    # Odd versions add one, even ones two.
                    if output != [4.0 if servable.version % 2 == 0 else 3.0]:
                        mismatches.append((servable.version, output))
                    answered.add(servable.version)
            except ServingError as error:
                mismatches.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for version in range(2, 6):
        push(version, f"half_plus_{2 - version % 2}")
        manager.poll_once()
        assert manager.wait_for(lambda v=version: manager.statuses("m", v)[0].state is State.AVAILABLE, PATIENCE)
        assert manager.wait_for(lambda v=version: manager.statuses("m", v - 1)[0].state is State.END, PATIENCE)
    enough.set()
    for thread in threads:
        thread.join()
    assert manager.stop(PATIENCE)
    assert mismatches == []
    assert {2, 3, 4} <= answered


def test_a_broken_push_leaves_the_old_version_in_service(manager: Manager, push: Callable[..., Path]) -> None:
    manager.start(PATIENCE)
    (push(2) / "variables" / "variables.index").unlink()
    manager.poll_once()
    assert manager.wait_for(lambda: manager.statuses("m", 2)[0].state is State.END, PATIENCE)
    error = manager.statuses("m", 2)[0].error
    assert error is not None
    assert "is not a valid checkpoint" in error.message
    with manager.use(ModelRequest("m")) as servable:
        assert servable.version == 1
        assert servable.run("serving_default", {"x": np.array([4], np.float32)}, ["y"])["y"].tolist() == [3.0]
    assert manager.stop(PATIENCE)


def test_light_modules_import_no_tensorflow() -> None:
    modules = (
        "serving.errors, serving.settings, serving.models.manager, serving.models.configuration, serving.models.loader"
    )
    code = f"import sys, {modules}; print('tensorflow' in sys.modules)"
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"
