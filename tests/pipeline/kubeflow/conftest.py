"""A project whose cluster is a stand-in."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from kfp_standin import PROJECT, Millrace, Standin

from components.errors import ClusterError
from pipeline import cli
from pipeline.kubeflow import cluster, tasks, watch


@pytest.fixture
def standin() -> Iterator[Standin]:
    """Kubeflow Pipelines' API; every request and answer must be as the published document has it."""
    made = Standin().start()
    yield made
    made.stop()
    assert made.faults == []


@pytest.fixture
def no_kubernetes(monkeypatch: pytest.MonkeyPatch) -> None:
    """No way to Kubernetes' API from here."""

    def refuse() -> None:
        raise ClusterError("no way to Kubernetes' API from here: no kubeconfig")

    monkeypatch.setattr(cluster, "connect", refuse)


@pytest.fixture
def millrace(project: Path, standin: Standin, no_kubernetes: None, monkeypatch: pytest.MonkeyPatch) -> Millrace:
    """Calls `millrace kubeflow` in `project`, whose environment `kubeflow` is the stand-in."""
    text = (PROJECT / "environments" / "kubeflow.yaml").read_text()
    (project / "environments" / "kubeflow.yaml").write_text(text.replace("http://localhost:8080", standin.url))
    monkeypatch.chdir(project)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.setattr(tasks, "PROJECT_ROOT", project)
    monkeypatch.setattr(watch, "SECONDS_BETWEEN_LOOKS", 0)
    return lambda *words: CliRunner().invoke(cli.main, ["kubeflow", *words], prog_name="millrace")
