"""The report that every run leaves, and `millrace report`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from store_builder import StoreBuilder

from contracts.errors import NodeError
from metadata.queries import Queries
from pipeline import cli
from pipeline.plan import nodes
from pipeline.plan.environment import Environment
from pipeline.plan.fingerprint import Fingerprint
from pipeline.plan.recipe import Recipe
from pipeline.run import local, reports
from pipeline.run.context import RunContext
from pipeline.run.folder import Request
from pipeline.run.workplace import Workplace
from ui.report import page
from ui.report.source import Surroundings

Run = Callable[..., Result]


@pytest.fixture
def invoke(env: str) -> Run:
    """Calls the command line: `invoke("report")`."""

    def call(*words: str) -> Result:
        return CliRunner().invoke(cli.main, [*words, "--env", env])

    return call


@pytest.fixture
def run_ends(places: Environment, builder: StoreBuilder, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes the next run end with its Trainer in a given state, normally or by an exception."""

    def ends(state: str, error: BaseException | None = None, new: bool = True) -> None:
        def run(context: RunContext, _view: object) -> local.Run:
            request = context.request
            (places.log_root / request.run_id).mkdir(parents=True)
            builder.run(request.run_id)
            builder.node("ExampleGen", fingerprint=Fingerprint(settings={"data.path": "data.csv"}))
            builder.node("Trainer", state)
            if error:
                raise error
            return local.Run(request.run_id, {}, new)

        monkeypatch.setattr(local, "run", run)

    return ends


def left(places: Environment) -> Path:
    """The only report."""
    [path] = places.log_root.glob("*/report.html")
    return path


def around(places: Environment, run_id: str, env: str = "local") -> Surroundings:
    store = Queries.open_sqlite(places.metadata_path)
    run = store.run(run_id)
    return reports.surroundings(store, run, Workplace(places, env))


def test_a_run_that_ends_leaves_its_report_and_says_where(
    project: Path, places: Environment, invoke: Run, run_ends: Callable[..., None]
) -> None:
    run_ends("COMPLETE")
    result = invoke("run", "small")
    assert result.exit_code == 0, result.output
    assert f"Report     {left(places)}" in result.stdout.splitlines()
    assert "It ended after Trainer; no model was evaluated." in left(places).read_text()


def test_a_failed_run_leaves_one_too(
    project: Path, places: Environment, invoke: Run, run_ends: Callable[..., None]
) -> None:
    run_ends("FAILED", NodeError("Trainer failed.\nLog: /l"))
    result = invoke("run", "small")
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert lines[:3] == ["error: Trainer failed.", "Log: /l", f"Report     {left(places)}"]
    assert lines[3].startswith("Go on:  ")
    assert "<strong>Trainer failed.</strong>" in left(places).read_text()


def test_a_stopped_run_leaves_one_too(
    project: Path, places: Environment, invoke: Run, run_ends: Callable[..., None]
) -> None:
    run_ends("CANCELED", KeyboardInterrupt())
    result = invoke("run", "small")
    assert result.exit_code == 130
    report, stopped = result.stdout.splitlines()[-2:]
    assert report == f"Report     {left(places)}"
    assert stopped.startswith("Stopped. Nothing half done is left; go on with: ")
    assert "It was stopped in Trainer." in left(places).read_text()


def test_an_up_to_date_run_names_the_report_of_the_earlier_one(
    project: Path, places: Environment, invoke: Run, run_ends: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_ends("COMPLETE")
    invoke("run", "small")
    written = left(places).read_text()
    earlier = local.Run(left(places).parent.name, {}, new=False)
    monkeypatch.setattr(local, "run", lambda *_arguments: earlier)
    result = invoke("run", "small")
    assert result.stdout.splitlines()[-1] == f"Report     {left(places)}"
    assert left(places).read_text() == written


def test_a_report_that_cannot_be_written_does_not_make_a_good_run_fail(
    project: Path, places: Environment, invoke: Run, run_ends: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    run_ends("COMPLETE")
    monkeypatch.setattr(page, "write", full)
    result = invoke("run", "small")
    assert result.exit_code == 0
    [line] = [line for line in result.stdout.splitlines() if line.startswith("Report")]
    [log] = places.log_root.glob("*/report.log")
    assert line == f"Report     not written: OSError: [Errno 28] No space left on device; see {log}"
    assert log.read_text().startswith("Traceback")
    assert "in full" in log.read_text()


def test_a_log_that_cannot_be_written_either_is_reported(
    small: Recipe, places: Environment, builder: StoreBuilder
) -> None:
    builder.run("small-1")
    line = reports.write_after_run(Workplace(places), "small-1", small)
    # The folder does not exist.
    assert line.startswith("Report     not written: FileNotFoundError: ")
    assert "; see the log, which cannot be written either: [Errno 2]" in line


def test_a_run_that_never_reached_the_store_leaves_none(
    small: Recipe, places: Environment, builder: StoreBuilder
) -> None:
    assert reports.write_after_run(Workplace(places), "small-9", small) is None


def test_what_is_needed_is_loaded_while_the_worker_runs() -> None:
    script = (
        "import sys\nfrom pipeline import cli\nfrom pipeline.run import reports\n"
        "assert 'jinja2' not in sys.modules\n"
        "reports.prepare()\n"
        "from ui.report import page\n"
        "before = set(sys.modules)\n"
        "templates = page.rendering.templates()\n"
        "[templates.get_template(name) for name in templates.list_templates(extensions=['html'])]\n"
        "assert set(sys.modules) == before\n"
        "assert not {'tensorflow', 'tfx', 'apache_beam', 'tensorflow_data_validation'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(cli.__file__).parent.parent)


def test_millrace_report_rewrites_it(
    project: Path, places: Environment, builder: StoreBuilder, invoke: Run, tmp_path: Path
) -> None:
    builder.run("small-1")
    builder.node("ExampleGen", "FAILED")
    path = places.log_root / "small-1" / "report.html"
    assert invoke("report", "small-1").stdout == f"{path}\n"
    assert "ExampleGen failed." in path.read_text()
    elsewhere = tmp_path / "mail" / "taxi.html"
    assert invoke("report", "--output", str(elsewhere)).stdout == f"{elsewhere}\n"
    assert "<title>small-1</title>" in elsewhere.read_text()
    result = invoke("report", "--output", str(path / "below.html"))
    assert result.exit_code == 1
    assert f"the report cannot be written to {path}/below.html: " in result.stderr
    assert "Choose a place with --output." in result.stderr
    assert "no run 'small-2'. Did you mean small-1?" in invoke("report", "small-2").stderr


def test_the_page_knows_the_recipe_as_the_run_had_it(project: Path, places: Environment, builder: StoreBuilder) -> None:
    builder.run("small-1")
    (project / "recipes" / "small" / "README.md").write_text("# Is it big?")
    asked = Request(
        recipe="small", overrides=("tflite.quantization=int8",), environment="local", run_id="small-1", span=None
    )
    (places.log_root / "small-1").mkdir(parents=True)
    (places.log_root / "small-1" / "request.json").write_text(asked.model_dump_json())
    surroundings = around(places, "small-1")
    assert list(surroundings.graph) == list(nodes.NODES)
    assert (surroundings.recipe_text, surroundings.log_folder) == ("# Is it big?", places.log_root / "small-1")


def test_a_recipe_that_is_gone_leaves_a_page_without_edges(
    project: Path, places: Environment, builder: StoreBuilder
) -> None:
    builder.run("small-1")
    (project / "recipes" / "small" / "recipe.yaml").unlink()
    surroundings = around(places, "small-1")
    assert (surroundings.graph, surroundings.recipe_text, surroundings.commands) == ({}, "", ())


def test_a_request_of_another_version_counts_as_none(project: Path, places: Environment, builder: StoreBuilder) -> None:
    builder.run("small-1")
    builder.node("ExampleGen", "FAILED")
    (places.log_root / "small-1").mkdir(parents=True)
    (places.log_root / "small-1" / "request.json").write_text('{"recipe": "small", "horse": 1}')
    surroundings = around(places, "small-1")
    assert "Go on" not in dict(surroundings.commands)
    assert list(surroundings.graph) == [node for node in nodes.NODES if node != "TFLite"]


def test_a_run_that_did_not_end_well_names_the_command_that_goes_on(
    project: Path, places: Environment, builder: StoreBuilder
) -> None:
    builder.run("small-1")
    builder.node("Trainer")
    builder.run("small-2")
    builder.node("Trainer", "FAILED")
    asked = {"recipe": "small", "overrides": ["trainer.epochs=2"], "environment": "e.yaml", "run_id": "small-2"}
    (places.log_root / "small-2").mkdir(parents=True)
    (places.log_root / "small-2" / "request.json").write_text(json.dumps(asked | {"span": None}))
    commands = {
        heading: line.partition("millrace ")[2] for heading, line in around(places, "small-2", "e.yaml").commands
    }
    assert commands == {
        "Go on": "run small --set trainer.epochs=2 --env e.yaml",
        "Why the Trainer ran": "why Trainer --recipe small --env e.yaml",
        "What changed since the run before": "diff small-1 small-2 --env e.yaml",
    }


def test_a_pushed_model_names_how_to_serve_it_and_go_back(
    project: Path, places: Environment, builder: StoreBuilder
) -> None:
    version = places.serving_root / "small" / "7"
    version.mkdir(parents=True)
    pushed = builder.artifact("PushedModel", pushed=1, pushed_version="7", pushed_destination=str(version))
    builder.run("small-1")
    builder.node("Pusher", outputs={"pushed_model": pushed})
    surroundings = around(places, "small-1")
    assert surroundings.served == f"It is served from {version}."
    assert dict(surroundings.commands)["Serve it"].endswith("millrace serve small")
    assert dict(surroundings.commands)["Inspect it"].endswith(f"show --dir {version} --all")
    assert dict(surroundings.commands)["Versions to roll back to"].endswith("millrace rollback small --list")
    later = version.with_name("8")
    later.mkdir()
    (later / "saved_model.pb").write_text("another")
    surroundings = around(places, "small-1")
    assert surroundings.served == "Not served: version 8 is, which was pushed later; this run's model is version 7."
    assert dict(surroundings.commands)["Serve this model again"].endswith("millrace rollback small --to 7")


def test_a_serving_folder_that_cannot_be_read_is_reported(
    project: Path, places: Environment, builder: StoreBuilder
) -> None:
    version = places.serving_root / "small" / "7"
    (version / "assets.extra").mkdir(parents=True)
    (version / "assets.extra" / "manifest.json").write_text("{")
    pushed = builder.artifact("PushedModel", pushed=1, pushed_version="7", pushed_destination=str(version))
    builder.run("small-1")
    builder.node("Pusher", outputs={"pushed_model": pushed})
    assert around(places, "small-1").served.startswith("It is not known what is served: ")
