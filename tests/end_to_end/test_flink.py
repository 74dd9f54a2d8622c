"""A pipeline whose data work runs on a real Flink cluster, against the same work in memory."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml
from copied_project import SOURCE, Project

from benchmarks import equality
from flink.cluster import Ports

OUTPUTS = {"examples", "statistics", "transform_graph", "transformed_examples", "evaluation"}
TOLERANCE = 1e-6

pytestmark = pytest.mark.skipif(
    not (shutil.which("java") and shutil.which("mvn")), reason="Flink needs Java and Maven, which are not here."
)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Ports]:
    """A cluster started like `make flink` does, on its own ports."""
    with ExitStack() as taken:
        sockets = [taken.enter_context(socket.socket()) for _ in range(5)]
        for bound in sockets:
            bound.bind(("localhost", 0))
        ports = Ports(*(bound.getsockname()[1] for bound in sockets))
    options = ["--folder", str(tmp_path / "flink")]
    started = command("start", *options, *(f"--{name}-port={port}" for name, port in asdict(ports).items()))
    try:
        # A line about downloading the jars may come before it.
        assert "Flink runs: 2 TaskManagers" in started.splitlines()[-2]
        yield ports
    finally:
        assert command("stop", *options) == "Flink is stopped.\n"


def command(*arguments: str) -> str:
    """Runs what `make flink` and `make flink-stop` run."""
    program = [sys.executable, "-m", "flink.cluster", *arguments]
    ended = subprocess.run(program, cwd=SOURCE, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def write_environment(project: Project, cluster: Ports) -> str:
    """Writes the project's local environment with its Beam work on a cluster: the same store, the same artifacts."""
    settings = yaml.safe_load((project.folder / "environments" / "flink.yaml").read_text())
    settings["beam"]["flink"] |= {
        "job_endpoint": f"localhost:{cluster.job}",
        "artifact_endpoint": f"localhost:{cluster.artifact}",
        "flink_master": f"localhost:{cluster.rest}",
    }
    path = project.folder / "environments" / "cluster.yaml"
    path.write_text(yaml.safe_dump(settings))
    return path.stem


def outputs(project: Project) -> dict[str, str]:
    """Output -> the folder that the newest run's data work wrote."""
    return {name: str(folder) for name, folder in project.outputs().items() if name in OUTPUTS}


def test_on_flink_a_pipeline_makes_what_it_makes_in_memory(project: Project, cluster: Ports) -> None:
    # Four files per split, as from four times 64 MB, so that there is something to distribute.
    project.edit("components/example_gen/contract.py", "SHARD_BYTES = 64 << 20", "SHARD_BYTES = 512 << 10")
    project.edit("components/example_gen/blocks.py", "BLOCK_BYTES = 4 << 20", "BLOCK_BYTES = 128 << 10")
    environment = write_environment(project, cluster)

    on_flink = project.millrace("run", "taxi", "--env", environment)
    assert on_flink.code == 0, on_flink.output + on_flink.errors
    flink_outputs = outputs(project)
    assert flink_outputs.keys() == OUTPUTS
    assert len(list(Path(flink_outputs["examples"], "Split-train").iterdir())) == 4

    # First evaluates the very model that was evaluated on Flink, then repeats the data work from the start.
    again = project.millrace("run", "taxi", "--force", "--from", "Evaluator", "--to", "Evaluator")
    assert again.code == 0, again.output + again.errors
    assert equality.metrics_difference(flink_outputs["evaluation"], outputs(project)["evaluation"]) <= TOLERANCE
    again = project.millrace("run", "taxi", "--force", "--to", "Transform")
    assert again.code == 0, again.output + again.errors
    in_memory = outputs(project)
    assert flink_outputs["examples"] != in_memory["examples"]
    assert equality.count_different_examples(flink_outputs["examples"], in_memory["examples"]) == 0
    assert equality.statistics_difference(flink_outputs["statistics"], in_memory["statistics"]) <= TOLERANCE
    assert equality.different_vocabularies(flink_outputs["transform_graph"], in_memory["transform_graph"]) == []
    assert (
        equality.transformed_difference(flink_outputs["transformed_examples"], in_memory["transformed_examples"])
        <= TOLERANCE
    )
