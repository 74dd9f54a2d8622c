"""The command line, without a pipeline behind it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from store_builder import StoreBuilder

from components.errors import AnomalyError, DataError, NodeError
from pipeline import cli, local, progress, recipe, stores
from pipeline.environment import Environment
from pipeline.recipe import PROJECT_ROOT
from serving import main as server

Millrace = Callable[..., Result]


@pytest.fixture
def millrace(project: Path, places: Environment, monkeypatch: pytest.MonkeyPatch) -> Millrace:
    """Calls the command line in `project`, with an environment file whose paths lie in the test's folder."""
    environment = places.model_dump(mode="json")
    (project / "environments" / "local.yaml").write_text(yaml.safe_dump(environment))

    monkeypatch.chdir(project)

    def call(*words: str) -> Result:
        return CliRunner().invoke(cli.main, list(words), prog_name="millrace")

    return call


def test_help_lists_the_commands(millrace: Millrace) -> None:
    result = millrace("--help")
    assert result.exit_code == 0
    commands = result.stdout.split("Commands:")[1].split("\n")
    assert {"run", "show", "recipes", "rollback", "why", "serve", "deploy", "predict"} <= {
        line.split()[0] for line in commands if line.strip()
    }


def test_recipes_lists_name_and_description(millrace: Millrace) -> None:
    assert millrace("recipes").stdout == "other        is it big?\nsmall        is it big?\n"


def test_show_prints_every_setting_resolved(millrace: Millrace) -> None:
    result = millrace("show", "small", "--set", "trainer.batch_size=9", "--set", "trainer.params={a: 1}")
    shown = yaml.safe_load(result.stdout)
    sections = ["description", "data", "label", "gate", "transform", "trainer", "evaluator"]
    assert list(shown) == [*sections, "tflite", "infra_validator", "pusher", "serving"]
    assert shown["trainer"]["batch_size"] == 9
    assert shown["trainer"]["params"] == {"a": 1}
    assert shown["pusher"] == {"keep_versions": 5}


def test_what_show_prints_is_a_recipe_with_the_same_settings(millrace: Millrace, project: Path) -> None:
    settings = recipe.load("small", ["trainer.batch_size=9"]).settings
    shown = millrace("show", "small", "--set", "trainer.batch_size=9").stdout
    (project / "recipes" / "small" / "recipe.yaml").write_text(shown)
    assert recipe.load("small").settings == settings


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "smal"], "Did you mean small?"),
        (["show", "small", "--set", "batch_size=1"], "Did you mean trainer.batch_size?"),
        (["run", "small", "--set", "trainer.epochs=0"], "trainer.epochs: input should be greater than or equal to 1"),
        (["run", "small", "--env", "lokal"], "no environment 'lokal'"),
        (["run", "small", "--from", "trainr"], "no node named 'trainr'. Did you mean Trainer?"),
        (
            ["run", "small", "--from", "tflite"],
            "the pipeline of small has no node TFLite: tflite.quantization is none.",
        ),
        (["run", "small", "--to", "TFLite"], "Ask for it in recipe.yaml or with `--set tflite.quantization=int8`."),
        (["run", "small", "--set", "evaluator.slices=[compny]"], "Did you mean company?"),
    ],
)
def test_wrong_settings_end_with_2(millrace: Millrace, words: list[str], message: str) -> None:
    result = millrace(*words)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert result.stdout == ""


def test_data_that_do_not_fit_end_with_1(millrace: Millrace, project: Path) -> None:
    (project / "data.csv").write_text("price\n1\n")
    result = millrace("run", "small")
    assert result.exit_code == 1
    assert "lacks columns that schemas/small/schema.pbtxt requires: fare" in result.stderr


def test_why_before_the_first_run(millrace: Millrace) -> None:
    result = millrace("why", "trainer", "--recipe", "small")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: small has not run yet.\nRun it with: ")
    assert result.stderr.endswith("millrace run small\n")


def test_why_of_an_unknown_recipe(millrace: Millrace) -> None:
    result = millrace("why", "trainer", "--recipe", "smal")
    assert (result.exit_code, "Did you mean small?" in result.stderr) == (2, True)


def test_why_of_a_node_that_has_not_run(millrace: Millrace, builder: StoreBuilder) -> None:
    result = millrace("why", "trainer", "--recipe", "small")
    assert (result.exit_code, result.stderr.splitlines()[0]) == (1, "error: Trainer of small has not run yet.")


def test_why_says_one_sentence(millrace: Millrace, builder: StoreBuilder) -> None:
    builder.run("one")
    builder.node("Trainer")
    result = millrace("why", "trainer", "--recipe", "small")
    assert (result.exit_code, result.stdout) == (0, "Trainer ran because it had never run to its end before.\n")


def test_why_of_a_node_that_the_recipe_does_not_ask_for(millrace: Millrace, builder: StoreBuilder) -> None:
    builder.run("one")
    builder.node("Trainer")
    result = millrace("why", "tflite", "--recipe", "small")
    assert result.exit_code == 2
    assert "the pipeline of small has no node TFLite: tflite.quantization is none." in result.stderr
    # A run with `--set` may have had it: that can be told.
    builder.node("TFLite")
    assert millrace("why", "tflite", "--recipe", "small").stdout.startswith("TFLite ran because ")


@pytest.mark.parametrize(("words", "listed"), [((), False), (("--set", "tflite.quantization=dynamic"), True)])
def test_only_nodes_of_the_recipes_pipeline_are_shown(
    millrace: Millrace, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], listed: bool
) -> None:
    shown: list[str] = []

    def view(_console: object, _title: str, nodes: Sequence[str]) -> None:
        shown.extend(nodes)

    monkeypatch.setattr(progress, "View", view)
    monkeypatch.setattr(local, "run", lambda *_arguments: local.Run("small-7", {}, new=False))
    assert millrace("run", "small", *words).exit_code == 0
    assert ("TFLite" in shown, "Pusher" in shown) == (listed, True)


@pytest.fixture
def ends_with(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], None]:
    """Makes the run end with an exception or a `local.Run`."""

    def set_end(end: object) -> None:
        def run(*_arguments: object) -> object:
            if isinstance(end, BaseException):
                raise end
            return end

        monkeypatch.setattr(local, "run", run)

    return set_end


SLICES = ("--set", "evaluator.slices=[tips, company]", "--env", "environments/local.yaml")
AGAIN = "millrace run small --set 'evaluator.slices=[tips, company]' --env environments/local.yaml"


def test_an_interrupted_run_ends_with_130_and_says_how_to_go_on(
    millrace: Millrace, ends_with: Callable[[object], None]
) -> None:
    ends_with(KeyboardInterrupt())
    result = millrace("run", "small", *SLICES)
    assert result.exit_code == 130
    assert result.stdout.startswith("Stopped. Nothing half done is left; go on with: ")
    assert result.stdout.endswith(f"{AGAIN}\n")


def test_a_failed_node_says_how_to_go_on(millrace: Millrace, ends_with: Callable[[object], None]) -> None:
    ends_with(NodeError("Trainer failed.\nLog: /l"))
    result = millrace("run", "small", *SLICES)
    assert result.exit_code == 1
    first, log, go_on = result.stderr.splitlines()
    assert (first, log) == ("error: Trainer failed.", "Log: /l")
    assert go_on.startswith("Go on:  ")
    assert go_on.endswith(AGAIN)


def test_anomalies_may_be_right_and_the_schema_behind(millrace: Millrace, ends_with: Callable[[object], None]) -> None:
    ends_with(NodeError("DataGate failed.\nLog: /l", kind="AnomalyError"))
    see, go_on = millrace("run", "small", *SLICES).stderr.splitlines()[2:]
    assert see.startswith("See what would have to change:  ")
    assert see.endswith("millrace schema propose small --env environments/local.yaml")
    assert go_on.endswith(AGAIN)


def test_a_column_that_is_gone_points_to_the_schema_where_there_are_runs_to_compare_with(
    millrace: Millrace, builder: StoreBuilder, ends_with: Callable[[object], None]
) -> None:
    ends_with(AnomalyError("data.csv lacks columns.", "Add them."))
    assert millrace("run", "small").stderr == "error: data.csv lacks columns.\nAdd them.\n"
    builder.run("small-1")
    fix, see = millrace("run", "small").stderr.splitlines()[1:]
    assert fix == "Add them."
    assert see.startswith("See what would have to change:  ")
    assert see.endswith("millrace schema propose small --set data.path=data.csv")
    see = millrace("run", "small", "--set", "data.path=./data.csv").stderr.splitlines()[-1]
    assert see.endswith("millrace schema propose small --set data.path=./data.csv")


def test_anomalies_that_were_let_pass_point_to_the_schema(
    millrace: Millrace, builder: StoreBuilder, places: Environment, ends_with: Callable[[object], None]
) -> None:
    builder.run("small-7")
    builder.node("DataGate", outputs={"verdict": builder.artifact("GateVerdict", num_anomalies=2)})
    store = stores.opened(places)
    assert store is not None
    ends_with(local.Run("small-7", store.node_runs("small", "small-7"), new=True))
    output = millrace("run", "small").stdout.splitlines()
    assert output[0].startswith("Let pass   2 anomalies of the data, listed in ")
    assert output[1].startswith("See what would have to change:  ")
    assert output[1].endswith("millrace schema propose small")


def test_another_error_ends_with_1(millrace: Millrace, ends_with: Callable[[object], None]) -> None:
    ends_with(DataError("The file is empty.", "Fill it."))
    result = millrace("run", "small")
    assert (result.exit_code, result.stderr) == (1, "error: The file is empty.\nFill it.\n")


def test_an_up_to_date_run_ends_with_0(millrace: Millrace, ends_with: Callable[[object], None]) -> None:
    ends_with(local.Run("small-7", {}, new=False))
    result = millrace("run", "small")
    first, report = result.stdout.splitlines()
    assert (result.exit_code, first) == (0, "Up to date: nothing changed since run small-7.")
    # It left none, so the line says how to make it.
    assert report.startswith("Report     ")
    assert report.endswith("millrace report small-7")


def evaluated(places: Environment, blessed: bool, pushed_to: Path | None) -> local.Run:
    """A finished run in the store."""
    folder = places.pipeline_root / "evaluation"
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(
        f'{{"blessed": {str(blessed).lower()}, "rows": 9, "metrics": [], "slices": []}}'
    )
    builder = StoreBuilder(places.metadata_path, places.pipeline_root)
    builder.run("small-7")
    builder.node("Evaluator", outputs={"evaluation": builder.artifact("ModelEvaluation", folder)})
    properties = {"pushed_destination": str(pushed_to)} if pushed_to else {}
    builder.node("Pusher", outputs={"pushed_model": builder.artifact("PushedModel", **properties)})
    store = stores.opened(places)
    assert store is not None
    return local.Run("small-7", store.node_runs("small", "small-7"), new=True)


def test_a_model_that_is_not_good_enough_ends_with_3(
    millrace: Millrace, places: Environment, ends_with: Callable[[object], None]
) -> None:
    ends_with(evaluated(places, blessed=False, pushed_to=None))
    result = millrace("run", "small")
    assert result.exit_code == 3
    assert "Not pushed: the model did not reach every bar." in result.stdout
    assert "why Trainer --recipe small: what changed since the last good model" in result.stdout


def test_a_pushed_model_ends_with_0_and_the_next_commands(
    millrace: Millrace, places: Environment, ends_with: Callable[[object], None]
) -> None:
    pushed_to = places.serving_root / "small" / "17"
    ends_with(evaluated(places, blessed=True, pushed_to=pushed_to))
    result = millrace("run", "small")
    assert result.exit_code == 0
    assert f"Pushed to  {pushed_to}\n" in result.stdout
    assert f"Logs       {places.log_root / 'small-7'}\n" in result.stdout
    assert f"--dir {pushed_to} --all\n" in result.stdout
    assert "millrace serve small\n" in result.stdout


def test_serve_hands_the_pushed_models_and_the_flags_to_the_server(
    millrace: Millrace, places: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed: list[list[str]] = []
    monkeypatch.setattr(server.main, "main", lambda words, **_: handed.append(words))
    (places.serving_root / "small").mkdir(parents=True)
    (places.serving_root / "taxi").mkdir()
    assert millrace("serve", "small", "--port=9000", "--rest_api_port", "9001").exit_code == 0
    assert millrace("serve", "--port=9000").exit_code == 0
    assert handed == [
        [
            "--model_name=small",
            f"--model_base_path={places.serving_root / 'small'}",
            "--rest_api_port=8501",
            "--port=9000",
            "--rest_api_port",
            "9001",
        ],
        [
            "--model_name=taxi",
            f"--model_base_path={places.serving_root / 'taxi'}",
            "--rest_api_port=8501",
            "--port=9000",
        ],
    ]


def test_serve_says_how_to_make_a_model_where_there_is_none(millrace: Millrace, places: Environment) -> None:
    result = millrace("serve", "small")
    assert result.exit_code == 1
    assert f"small has no pushed model: {places.serving_root / 'small'} does not exist." in result.stderr
    assert "Make one:  " in result.stderr


HEAVY = (
    "tensorflow",
    "apache_beam",
    "tfx",
    "tf_keras",
    "tensorflow_transform",
    "tensorflow_model_analysis",
    "pyarrow",
    "jinja2",
    "kfp",
    "kubernetes",
)
LIGHT = """
import sys
from pipeline import cli
try:
    cli.main(sys.argv[1:], prog_name="millrace")
finally:
    print("HEAVY", sorted(set(sys.modules) & {heavy}))
"""


@pytest.mark.parametrize(
    "words", [["--help"], ["serve", "--help"], ["recipes"], ["show"], ["why", "Trainer", "--env", "{environment}"]]
)
def test_quick_answers_load_no_tensorflow(places: Environment, tmp_path: Path, words: list[str]) -> None:
    environment = tmp_path / "quick.yaml"
    environment.write_text(yaml.safe_dump(places.model_dump(mode="json")))
    builder = StoreBuilder(places.metadata_path, places.pipeline_root, "taxi")
    builder.run("one")
    builder.node("Trainer")
    source = LIGHT.format(heavy=set(HEAVY))
    command = [sys.executable, "-W", "ignore", "-c", source, *(word.format(environment=environment) for word in words)]
    finished = subprocess.run(command, capture_output=True, text=True, check=True, cwd=PROJECT_ROOT)
    *answer, loaded = finished.stdout.splitlines()
    assert loaded == "HEAVY []"
    assert answer
