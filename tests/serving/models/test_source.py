"""Which folders count as versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from serving.errors import Code, ServingError
from serving.models.loader import aspired_versions
from serving.settings import All, ModelConfig


def test_folders_named_by_integers_are_versions(tmp_path: Path) -> None:
    for name in ("1", "00000123", "7.tmp", "-4", "²", "1_000", "99999999999999999999", "v2", ".3"):
        (tmp_path / name).mkdir()
    (tmp_path / "5").write_text("a file")
    versions = aspired_versions(ModelConfig("m", tmp_path, All()))
    assert versions == {1: tmp_path / "1", 123: tmp_path / "00000123"}


def test_of_two_folders_for_one_version_the_first_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("12", "0012"):
        (tmp_path / name).mkdir()
    assert aspired_versions(ModelConfig("m", tmp_path)) == {12: tmp_path / "0012"}
    assert f"Version 12 will be loaded from {tmp_path}/0012; {tmp_path}/12 will be ignored." in caplog.text


def test_a_base_path_that_cannot_be_listed_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name, reason in (("none", "No such file or directory"), ("file", "Not a directory")):
        with pytest.raises(ServingError) as caught:
            aspired_versions(ModelConfig("m", tmp_path / name))
        assert caught.value.code is Code.NOT_FOUND
        assert str(caught.value) == f"Could not find base path {tmp_path / name} for servable m with error {reason}"
