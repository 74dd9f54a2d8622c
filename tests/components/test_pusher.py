"""Pushing: whole, under a new version, or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tfx.types import standard_artifacts

from components import pusher
from components.tflite.artifacts import TFLiteModel

NOW = 1_700_000_000


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    (folder / "variables").mkdir(parents=True)
    (folder / "saved_model.pb").write_text("graph")
    (folder / "variables" / "data").write_text("numbers")
    return folder


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The serving folder; the clock stands still."""
    monkeypatch.setattr(pusher.time, "time", lambda: NOW + 0.9)
    return tmp_path / "serving" / "small"


def test_the_first_push_makes_the_folder_and_copies_everything(model: Path, base: Path) -> None:
    target = pusher.push(model, base, 5)
    assert target == base / str(NOW)
    assert (target / "saved_model.pb").read_text() == "graph"
    assert (target / "variables" / "data").read_text() == "numbers"
    assert os.listdir(base) == [str(NOW)]
    assert model.exists()


def test_versions_increase_even_when_the_clock_does_not(model: Path, base: Path) -> None:
    for _ in range(3):
        pusher.push(model, base, 5)
    assert pusher.versions(base) == [NOW, NOW + 1, NOW + 2]


def test_a_version_from_the_future_is_passed(model: Path, base: Path) -> None:
    (base / str(NOW + 500)).mkdir(parents=True)
    assert pusher.push(model, base, 5).name == str(NOW + 501)


@pytest.mark.parametrize(("keep", "kept"), [(1, [13]), (2, [12, 13]), (9, [9, 10, 11, 12, 13])])
def test_the_newest_versions_are_kept(
    model: Path, base: Path, monkeypatch: pytest.MonkeyPatch, keep: int, kept: list[int]
) -> None:
    for version in (9, 10, 11, 12):  # As text, 9 would be the newest.
        (base / str(version)).mkdir(parents=True)
    monkeypatch.setattr(pusher.time, "time", lambda: 13.0)
    pusher.push(model, base, keep)
    assert pusher.versions(base) == kept


def test_the_leftovers_of_a_killed_push_are_removed_and_other_things_stay(model: Path, base: Path) -> None:
    (base / f"{pusher.STAGING_PREFIX}dead").mkdir(parents=True)
    (base / "notes").mkdir()
    (base / "7").touch()
    pusher.push(model, base, 1)
    assert sorted(os.listdir(base)) == sorted([str(NOW), "notes", "7"])


def test_a_server_never_sees_half_a_model(model: Path, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[list[int], list[str]]] = []
    rename = os.replace

    def watched(source: Path, target: Path) -> None:
        seen.append((pusher.versions(base), sorted(os.listdir(source))))
        rename(source, target)

    monkeypatch.setattr(pusher.os, "replace", watched)
    pusher.push(model, base, 5)
    assert seen == [([], ["saved_model.pb", "variables"])]


def test_a_push_that_fails_adds_no_version(model: Path, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pusher.push(model, base, 1)

    def full(_source: Path, target: Path) -> None:
        target.mkdir()
        raise OSError("No space left on device")

    monkeypatch.setattr(pusher.shutil, "copytree", full)
    with pytest.raises(OSError, match="No space left"):
        pusher.push(model, base, 1)
    assert pusher.versions(base) == [NOW]


def test_a_folder_that_is_not_there_has_no_versions(tmp_path: Path) -> None:
    assert pusher.versions(tmp_path / "none") == []


def test_the_tf_lite_model_is_a_part_of_the_version_before_it_appears(
    model: Path, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "small.tflite").write_bytes(b"TFL3")
    seen: list[list[str]] = []
    rename = os.replace

    def watched(source: Path, target: Path) -> None:
        seen.append(sorted(os.listdir(source)))
        rename(source, target)

    monkeypatch.setattr(pusher.os, "replace", watched)
    target = pusher.push(model, base, 5, tmp_path / "small.tflite")
    assert seen == [["model.tflite", "saved_model.pb", "variables"]]
    assert (target / "model.tflite").read_bytes() == b"TFL3"


def executed(artifact: Callable[..., Any], base: Path, blessed: int, tflite_blessed: int | None = None) -> Any:
    """The PushedModel after the executor has run; with `tflite_blessed` None there is no TF Lite node."""
    model, blessing = artifact(standard_artifacts.Model), artifact(standard_artifacts.ModelBlessing)
    blessing.set_int_custom_property("blessed", blessed)
    serving = Path(model.uri, "Format-Serving")
    serving.mkdir()
    (serving / "saved_model.pb").write_text("graph")
    pushed = artifact(standard_artifacts.PushedModel)
    inputs = {"model": [model], "model_blessing": [blessing]}
    if tflite_blessed is not None:
        inputs["tflite_model"] = [artifact(TFLiteModel, blessed=tflite_blessed)]
        Path(inputs["tflite_model"][0].uri, "model.tflite").write_bytes(b"TFL3")
    properties = {"base_directory": str(base), "keep_versions": 5}
    pusher.Executor().Do(inputs, {"pushed_model": [pushed]}, properties)
    return pushed


def test_a_blessed_model_is_pushed_and_noted(artifact: Callable[..., Any], base: Path) -> None:
    pushed = executed(artifact, base, blessed=1)
    assert (base / str(NOW) / "saved_model.pb").read_text() == "graph"
    assert pushed.get_int_custom_property("pushed") == 1
    assert pushed.get_string_custom_property("pushed_destination") == str(base / str(NOW))
    assert pushed.get_string_custom_property("pushed_version") == str(NOW)
    assert json.loads(Path(pushed.uri, "pushed.json").read_text()) == {"destination": str(base / str(NOW))}


@pytest.mark.parametrize(
    ("tflite_blessed", "pushed"),
    [(None, ["saved_model.pb"]), (0, ["saved_model.pb"]), (1, ["model.tflite", "saved_model.pb"])],
)
def test_a_tf_lite_model_is_pushed_where_it_is_blessed(
    artifact: Callable[..., Any], base: Path, tflite_blessed: int | None, pushed: list[str]
) -> None:
    executed(artifact, base, 1, tflite_blessed)
    assert sorted(os.listdir(base / str(NOW))) == pushed


def test_a_model_that_is_not_blessed_is_not_pushed(artifact: Callable[..., Any], base: Path) -> None:
    pushed = executed(artifact, base, blessed=0)
    assert not base.exists()
    assert pushed.get_int_custom_property("pushed") == 0
    assert pushed.get_string_custom_property("pushed_destination") == ""
