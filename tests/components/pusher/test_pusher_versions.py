"""Pushing: whole, checked, under a new version, or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pusher_helpers import NOW, ORIGIN, numbers

from components.pusher import manifest, versions
from contracts.errors import PushError

Push = Callable[..., int]


def test_the_first_push_makes_the_folder_and_copies_everything(model: Path, base: Path) -> None:
    target, new_manifest = versions.push_version(model, base, 5, ORIGIN)
    assert (target, new_manifest.version) == (base / str(NOW), NOW)
    assert (target / "saved_model.pb").read_text() == "graph"
    assert (target / "variables" / "data").read_text() == "numbers"
    assert os.listdir(base) == [str(NOW)]
    assert model.exists()
    assert versions.find_versions(base)[0].manifest == new_manifest


def test_versions_increase_even_when_the_clock_does_not(push: Push, base: Path) -> None:
    assert [push(graph) for graph in "abc"] == [NOW, NOW + 1, NOW + 2]
    assert numbers(base) == [NOW, NOW + 1, NOW + 2]


def test_a_version_from_the_future_is_passed(push: Push, base: Path) -> None:
    (base / str(NOW + 500)).mkdir(parents=True)
    assert push() == NOW + 501


def test_what_is_served_already_is_not_pushed_again(push: Push, base: Path) -> None:
    assert [push("a"), push("a"), push("b"), push("a")] == [NOW, NOW, NOW + 1, NOW + 2]
    assert numbers(base) == [NOW, NOW + 1, NOW + 2]


def test_what_is_served_in_part_is_pushed_again(push: Push, base: Path) -> None:
    push("a")
    served = base / str(NOW)
    assert manifest.damage_of(served) is None
    (served / "variables" / "data").write_text("")
    assert manifest.damage_of(served) == "has another variables/data than was pushed"
    assert push("a") == NOW + 1
    assert manifest.damage_of(base / str(NOW + 1)) is None
    (served / "variables" / "data").unlink()
    assert manifest.damage_of(served) == "lacks variables/data"
    (served / "saved_model.pb").unlink()
    assert manifest.damage_of(served) == "lacks saved_model.pb and 1 more"
    (served / manifest.MANIFEST_FILE).unlink()
    assert manifest.damage_of(served) == "lacks assets.extra/manifest.json"
    assert manifest.damage_of(base / "1") == "is gone"


@pytest.mark.parametrize(("keep", "kept"), [(1, [13]), (2, [12, 13]), (9, [9, 10, 11, 12, 13])])
def test_the_newest_versions_are_kept(
    push: Push, base: Path, monkeypatch: pytest.MonkeyPatch, keep: int, kept: list[int]
) -> None:
    for version in (9, 10, 11, 12):  # As text, 9 would be the newest.
        (base / str(version)).mkdir(parents=True)
    monkeypatch.setattr(versions.time, "time", lambda: 13.0)
    push(keep=keep)
    assert numbers(base) == kept


def test_versions_of_one_content_do_not_use_up_what_can_be_gone_back_to(push: Push, base: Path) -> None:
    for graph in ("a", "b", "c", "b", "c"):
        push(graph)
    versions.prune_versions(base, 3)
    # The three newest, and `a`, which is among the three newest contents.
    assert numbers(base) == [NOW, NOW + 2, NOW + 3, NOW + 4]
    versions.prune_versions(base, 1)
    assert numbers(base) == [NOW + 4]


def test_the_leftovers_of_a_killed_push_are_removed_and_other_things_stay(push: Push, base: Path) -> None:
    (base / f"{versions.STAGING_PREFIX}dead").mkdir(parents=True)
    for other in ("notes", "²"):
        (base / other).mkdir()
    (base / "7").touch()
    push(keep=1)
    assert sorted(os.listdir(base)) == sorted([str(NOW), "notes", "²", "7"])


def test_a_server_never_sees_half_a_model(model: Path, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listings: list[tuple[list[int], list[str]]] = []
    forced: list[str] = []
    rename, force = os.replace, versions.fsync_path

    def watched(source: Path, target: Path) -> None:
        listings.append((numbers(base), sorted(os.listdir(source))))
        assert {"saved_model.pb", "data", "manifest.json", source.name} <= set(forced)
        rename(source, target)

    def forcing(path: Path) -> None:
        forced.append(path.name)
        force(path)

    monkeypatch.setattr(versions.os, "replace", watched)
    monkeypatch.setattr(versions, "fsync_path", forcing)
    versions.push_version(model, base, 5, ORIGIN)
    assert listings == [([], ["assets.extra", "saved_model.pb", "variables"])]
    assert forced[-1] == base.name


def test_a_corrupted_copy_is_refused(model: Path, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = shutil.copytree

    def corrupting(source: Path, target: Path, *options: object, **others: object) -> None:
        copy(source, target, *options, **others)  # type: ignore[arg-type]
        if source == model:  # It calls itself for folders within.
            (target / "variables" / "data").write_text("nimbers")
            (target / "more").touch()

    monkeypatch.setattr(versions.shutil, "copytree", corrupting)
    with pytest.raises(PushError, match="is not what was to be written: more is not expected; variables/data has the"):
        versions.push_version(model, base, 5, ORIGIN)
    assert os.listdir(base) == []


def test_the_tf_lite_model_is_a_part_of_the_version_before_it_appears(
    model: Path, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "small.tflite").write_bytes(b"TFL3")
    listings: list[list[str]] = []
    rename = os.replace

    def watched(source: Path, target: Path) -> None:
        listings.append(sorted(os.listdir(source)))
        rename(source, target)

    monkeypatch.setattr(versions.os, "replace", watched)
    target, new_manifest = versions.push_version(model, base, 5, ORIGIN, tmp_path / "small.tflite")
    assert listings == [["assets.extra", "model.tflite", "saved_model.pb", "variables"]]
    assert (target / "model.tflite").read_bytes() == b"TFL3"
    assert "model.tflite" in new_manifest.files
    assert new_manifest.model_digest == manifest.digest_of_files(manifest.files_of(model)) != new_manifest.digest


REFUSALS = [
    (OSError(errno.ENOSPC, "No space left on device"), "No space left on device.\nFree some space, or lower"),
    (PermissionError(errno.EACCES, "Permission denied", "/x"), "Permission denied (/x).\nGive this user the right"),
    (OSError(errno.EROFS, "Read-only file system"), "Read-only file system.\nIt lies on a file system"),
    (
        shutil.Error([("a", "b", "[Errno 28] No space left on device: 'b'")]),
        "No space left on device: 'b'.\nFree some space",
    ),
]


@pytest.mark.parametrize(("error", "message"), REFUSALS)
def test_a_push_that_the_system_refuses_adds_no_version_and_says_why(
    push: Push, model: Path, base: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, message: str
) -> None:
    push()

    def refusing(_source: Path, target: Path) -> None:
        target.mkdir()
        raise error

    monkeypatch.setattr(versions.shutil, "copytree", refusing)
    (model / "saved_model.pb").write_text("another")
    with pytest.raises(PushError) as caught:
        versions.push_version(model, base, 1, ORIGIN)
    assert str(caught.value).startswith(f"The model cannot be written to {base}: {message}")
    assert os.listdir(base) == [str(NOW)]


def test_a_base_path_that_is_a_file_is_told(model: Path, base: Path) -> None:
    base.parent.mkdir()
    base.touch()
    with pytest.raises(PushError) as caught:
        versions.push_version(model, base, 5, ORIGIN)
    assert "File exists" in caught.value.what
    assert caught.value.fix == "A file is in the place of a folder; move it away."


def test_a_folder_that_is_not_there_has_no_versions(tmp_path: Path) -> None:
    assert versions.find_versions(tmp_path / "none") == []


def test_a_manifest_that_cannot_be_read_is_told(push: Push, base: Path) -> None:
    push()
    (base / str(NOW) / manifest.MANIFEST_FILE).write_text("{")
    with pytest.raises(PushError, match=r"manifest\.json is not a manifest: "):
        versions.find_versions(base)


def restored(base: Path, number: int) -> manifest.Manifest:
    existing = versions.find_versions(base)
    [target] = [version for version in existing if version.number == number]
    return versions.restore_version(base, target, existing[-1])[1]


def test_an_older_version_is_pushed_again_under_a_new_number(push: Push, base: Path) -> None:
    push("old")
    push("new")
    new_manifest = restored(base, NOW)
    assert new_manifest.version == NOW + 2
    assert new_manifest.rollback == manifest.Rollback(rolled_back_from=NOW + 1, restored_version=NOW)
    assert (base / str(NOW + 2) / "saved_model.pb").read_text() == "old"
    old, new, again = versions.find_versions(base)
    assert old.content == again.content != new.content
    assert old.manifest is not None
    assert old.manifest.rollback is None  # Its own manifest, not the same file.
    assert (old.path / "saved_model.pb").stat().st_ino == (again.path / "saved_model.pb").stat().st_ino


def test_without_hard_links_files_are_copied(push: Push, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    push("old")
    push("new")

    def refuse(*_paths: str) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(versions.os, "link", refuse)
    restored(base, NOW)
    paths = [base / str(version) / "saved_model.pb" for version in (NOW, NOW + 2)]
    assert [path.read_text() for path in paths] == ["old", "old"]
    assert len({path.stat().st_ino for path in paths}) == 2


def test_a_version_that_decayed_is_not_restored(push: Push, base: Path) -> None:
    push("old")
    push("new")
    (base / str(NOW) / "saved_model.pb").write_text("rot")
    with pytest.raises(PushError, match=r"saved_model\.pb has the SHA-256"):
        restored(base, NOW)
    assert numbers(base) == [NOW, NOW + 1]


def test_a_version_without_a_manifest_is_not_restored(push: Push, base: Path) -> None:
    (base / "1").mkdir(parents=True)
    push()
    with pytest.raises(PushError, match="1 has no manifest, so nothing shows whether it is what was pushed"):
        restored(base, 1)


def test_what_was_rolled_back_from_is_withdrawn_until_it_is_restored(push: Push, base: Path) -> None:
    def withdrawn() -> list[int]:
        existing = versions.find_versions(base)
        digests = versions.withdrawn_models(existing)
        return [v.number - NOW for v in existing if v.manifest and v.manifest.model_digest in digests]

    push("a")
    push("b")
    push("c")
    assert withdrawn() == []
    restored(base, NOW)
    assert withdrawn() == [1, 2]
    push("d")
    assert withdrawn() == [1, 2]
    restored(base, NOW + 1)
    assert withdrawn() == [2, 4]
    shutil.rmtree(base / str(NOW + 2))
    assert withdrawn() == [4]


def test_a_rollback_of_a_rollback_withdraws_nothing(push: Push, base: Path) -> None:
    push("a")
    push("b")
    restored(base, NOW)
    restored(base, NOW + 1)
    assert versions.withdrawn_models(versions.find_versions(base)) == []
