"""What an environments/*.yaml may say."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.errors import SettingsError
from pipeline import environment

MINIMAL = """\
metadata_store: {sqlite: a/metadata.sqlite}
pipeline_root: /elsewhere/pipelines
serving_root: a/serving
log_root: a/logs
"""


def test_relative_paths_begin_at_the_project_and_absolute_ones_stay(project: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(MINIMAL)
    loaded = environment.load(str(file))
    assert loaded.metadata_path == project / "a" / "metadata.sqlite"
    assert loaded.pipeline_root == Path("/elsewhere/pipelines")
    assert loaded.serving_root == project / "a" / "serving"
    assert loaded.log_root == project / "a" / "logs"
    assert loaded.beam.runner == "direct"
    assert loaded.beam.options == []


def test_local_keeps_everything_under_artifacts(project: Path) -> None:
    loaded = environment.load("local")
    paths = [loaded.metadata_path, loaded.pipeline_root, loaded.serving_root, loaded.log_root]
    assert all(path.is_relative_to(project / "artifacts") for path in paths)


def test_an_unknown_name_lists_the_known_ones(project: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        environment.load("lokal")
    path = project / "environments" / "lokal.yaml"
    assert str(caught.value) == f"no environment 'lokal': {path} does not exist.\nThere are: kubeflow, local."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MINIMAL + "beam: {runer: direct}\n", "{path}:5: unknown key beam.runer. Did you mean beam.runner?"),
        (MINIMAL + "runner: direct\n", "{path}:5: unknown key runner. Did you mean beam.runner?"),
        (
            MINIMAL + "beam: {runner: spanner}\n",
            "{path}:5: beam.runner: input should be 'direct'; received 'spanner'.",
        ),
        (MINIMAL.replace("log_root: a/logs\n", ""), "{path}: log_root is missing; every mine.yaml needs it."),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        environment.load(str(file))
    assert str(caught.value) == message.format(path=file)
