"""Which engine Beam's work goes to, and with which options."""

from __future__ import annotations

import contextlib
import io
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from components.example_gen.files import InputFiles
from contracts.errors import SettingsError
from pipeline import cli
from pipeline.commands.node import EXIT_TRY_AGAIN
from pipeline.plan import beam, environment, recipe
from pipeline.plan.beam_settings import BeamSettings
from pipeline.plan.environment import Environment
from pipeline.plan.project import ENGINE
from pipeline.run import local, progress
from pipeline.run.context import RunContext
from pipeline.run.folder import Request
from pipeline.run.workplace import Workplace

HERE = "metadata_store: {sqlite: m.sqlite}\npipeline_root: p\nserving_root: s\nlog_root: l\n"
FLINK = {"job_endpoint": "localhost:8099"}


def inputs_of(*files: Path) -> InputFiles:
    return InputFiles(None, files, "csv")


def test_the_flink_environment_connects_to_what_make_flink_starts() -> None:
    assert beam.pipeline_options(environment.load("flink").beam) == [
        "--runner=PortableRunner",
        "--job_endpoint=localhost:8099",
        "--environment_type=LOOPBACK",
        "--sdk_container_image=millrace",
        "--experiments=disable_logging_submission_environment",
        "--environment_cache_millis=60000",
        "--artifact_endpoint=localhost:8098",
        "--parallelism=2",
    ]


def test_directly_without_options_is_beams_own_default() -> None:
    assert beam.pipeline_options(BeamSettings()) == []
    assert beam.pipeline_options(BeamSettings(options=["--direct_num_workers=2"])) == [
        "--direct_num_workers=2",
        f"--setup_file={ENGINE / 'setup.py'}",
    ]


def test_the_users_options_come_last_and_workers_beside_spark_are_named() -> None:
    section = {"job_endpoint": "spark:8099", "environment_type": "EXTERNAL", "environment_config": "localhost:50000"}
    options = beam.pipeline_options(BeamSettings(runner="spark", spark=section, options=["--spark_x=1"]))
    assert options[1] == "--job_endpoint=spark:8099"
    assert options[-3:] == ["--environment_cache_millis=60000", "--environment_config=localhost:50000", "--spark_x=1"]


def test_dataflow_installs_our_package_where_it_has_no_image_of_ours() -> None:
    section: dict[str, Any] = {"project": "p", "region": "europe-west1", "temp_location": "gs://b/t"}
    common = ["--runner=DataflowRunner", "--project=p", "--region=europe-west1", "--temp_location=gs://b/t"]
    without = beam.pipeline_options(BeamSettings(runner="dataflow", dataflow=section))
    assert without == [*common, f"--setup_file={ENGINE / 'setup.py'}"]
    with_image = beam.pipeline_options(
        BeamSettings(runner="dataflow", dataflow=section | {"sdk_container_image": "i:1"})
    )
    assert with_image == [*common, "--sdk_container_image=i:1"]


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("{runner: flink}", "beam: received runner flink and the sections none, expected a section flink"),
        (
            "{runner: auto, flink: {job_endpoint: 'a:1'}, spark: {job_endpoint: 'b:1'}}",
            "beam: received runner auto and the sections flink and spark, expected at most one of flink, spark, "
            "dataflow",
        ),
        (
            "{runner: flink, flink: {job_endpoint: localhost}}",
            "beam.flink.job_endpoint: received 'localhost', expected host:port, such as localhost:8099",
        ),
        (
            "{runner: flink, flink: {job_endpoint: 'a:1', environment_type: EXTERNAL}}",
            "beam.flink: received environment_type EXTERNAL and environment_config none, expected environment_config, "
            "the worker pool's host:port, exactly with EXTERNAL",
        ),
        (
            "{runner: dataflow, dataflow: {project: p, temp_location: 'gs://b'}}",
            "beam.dataflow.region is missing",
        ),
        (
            "{runner: dataflow, dataflow: {project: p, region: r, temp_location: /tmp}}",
            "beam.dataflow.temp_location: received '/tmp', expected a folder of Cloud Storage, such as gs://my-bucket",
        ),
    ],
)
def test_a_mistake_says_what_was_expected(tmp_path: Path, section: str, message: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(f"{HERE}beam: {section}\n")
    with pytest.raises(SettingsError) as caught:
        environment.load(str(file))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("memory", "engine", "where"),
    [(3_000_020_000, "columnar", "in this process"), (3_000_019_999, "flink", "on Flink")],
)
def test_auto_compares_the_data_with_the_memory(tmp_path: Path, memory: int, engine: str, where: str) -> None:
    file = tmp_path / "data.csv"
    file.write_bytes(b"x" * 1000)
    settled, why = beam.resolve_engine(BeamSettings(runner="auto", flink=FLINK), inputs_of(file), memory)
    assert settled.runner == engine
    assert why == (f"Data work runs {where}: 1e-06 GB of raw data need about 3.0 GB, and this machine has 3.0 GB.")


def test_auto_counts_uncompressed_bytes(tmp_path: Path) -> None:
    file = tmp_path / "data.csv.gz"
    file.write_bytes(b"x" * 1000)
    settings = BeamSettings(runner="auto", flink=FLINK)
    assert beam.resolve_engine(settings, inputs_of(file), 3_000_119_999)[0].runner == "flink"
    assert beam.resolve_engine(settings, inputs_of(file), 3_000_120_000)[0].runner == "columnar"


def test_auto_without_an_engine_stays_in_this_process(tmp_path: Path) -> None:
    settled, why = beam.resolve_engine(BeamSettings(), inputs_of(tmp_path / "gone.csv"), 1)
    assert (settled.runner, why) == ("columnar", None)
    assert beam.pipeline_options(settled) == []


def test_a_runner_that_was_chosen_stays(tmp_path: Path) -> None:
    settings = BeamSettings(runner="flink", flink=FLINK)
    assert beam.resolve_engine(settings, inputs_of(tmp_path / "gone.csv"), 1) == (settings, None)


@pytest.fixture
def master() -> Iterator[int]:
    """The port of a server that responds as a JobManager with two slots does."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"taskmanagers": 2, "slots-total": 2, "flink-version": "1.19.0"}).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("localhost", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def flink(job: int, master: int, parallelism: int = 2) -> BeamSettings:
    section = {"job_endpoint": f"localhost:{job}", "flink_master": f"localhost:{master}", "parallelism": parallelism}
    return BeamSettings(runner="flink", flink=section)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        return int(taken.getsockname()[1])


def test_a_cluster_is_described(master: int) -> None:
    description = beam.reach_engine(flink(master, master))
    assert description == f"Flink's job server at localhost:{master}; Flink 1.19.0: 2 TaskManagers, 2 slots"


def test_more_workers_than_slots_would_wait_for_ever(master: int) -> None:
    with pytest.raises(SettingsError) as caught:
        beam.reach_engine(flink(master, master, 3))
    assert "has 2 task slots in 2 TaskManagers, expected at least 3" in str(caught.value)
    assert caught.value.fix == "Set parallelism to 2 or fewer, or add TaskManagers."


def test_check_tells_how_to_start_flink(sqlite_places: Environment, tmp_path: Path) -> None:
    port = free_port()
    path = tmp_path / "places.yaml"
    path.write_text(sqlite_places.model_copy(update={"beam": flink(port, port)}).model_dump_json())
    result = CliRunner().invoke(cli.main, ["check", "--env", str(path)])
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert lines[-2].startswith(
        f"beam             fails  Beam's job server for Flink cannot be reached at localhost:{port}:"
    )
    assert lines[-1].strip() == (
        "Start one on this machine with `make flink`, or correct beam.flink.job_endpoint in the environment."
    )


def test_no_server_is_contacted_in_memory() -> None:
    assert beam.reach_engine(BeamSettings()) is None


def test_a_run_does_not_begin_while_flink_is_away(project: Path, sqlite_places: Environment, tmp_path: Path) -> None:
    port = free_port()
    path = tmp_path / "places.yaml"
    path.write_text(sqlite_places.model_copy(update={"beam": flink(port, port)}).model_dump_json())
    result = CliRunner().invoke(cli.main, ["run", "small", "--env", str(path)])
    assert result.exit_code == 1
    assert f"Beam's job server for Flink cannot be reached at localhost:{port}" in result.output
    assert "`make flink`" in result.output
    assert not sqlite_places.log_root.exists()
    # The exit code tells a scheduler to try again.
    result = CliRunner().invoke(cli.main, ["node", "run", "small", "ExampleGen", "--run", "one", "--env", str(path)])
    assert result.exit_code == EXIT_TRY_AGAIN


def test_auto_says_what_it_chose_before_the_run_begins(
    project: Path, sqlite_places: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen, output = recipe.load("small"), io.StringIO()
    places = sqlite_places.model_copy(update={"beam": BeamSettings(runner="auto", flink=FLINK)})
    monkeypatch.setattr(local, "_started_worker", lambda _context: contextlib.nullcontext(()))
    monkeypatch.setattr(local, "_watch", lambda *_: output.write("begins"))
    request = Request(recipe="small", overrides=(), environment="", run_id="one", span=None)
    view = progress.View(Console(file=output, width=200), "small", [])
    local.run(RunContext(chosen, Workplace(places), chosen.find_inputs(), request), view)
    assert output.getvalue().startswith("Data work runs in this process: ")
    assert output.getvalue().endswith("begins")
