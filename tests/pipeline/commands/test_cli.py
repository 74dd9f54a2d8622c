"""The command line, without running a pipeline."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml
from click.testing import Result
from store_builder import StoreBuilder

from contracts.competition import COMPETITION_FILE, Candidate, Competition
from pipeline.plan import recipe
from pipeline.plan.environment import Environment
from pipeline.plan.project import ENGINE
from pipeline.run import local, progress
from serving import main as server

Millrace = Callable[..., Result]


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
    assert list(shown) == [*sections, "tflite", "infra_validator", "pusher", "serving", "nodes"]
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
    # A run with `--set` may have had the node, so it can be explained.
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
    finished = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ENGINE)
    *output, loaded = finished.stdout.splitlines()
    assert loaded == "HEAVY []"
    assert output


def test_show_says_how_candidates_compared_in_the_latest_training(
    millrace: Millrace, builder: StoreBuilder, tmp_path: Path
) -> None:
    assert "#" not in millrace("show", "small").stdout
    figures = [("trees", 0.97, 0.0, 0.0, 0.0), ("linear", 0.9, 0.07, 0.04, 0.1)]
    names = ("name", "value", "ahead", "ahead_low", "ahead_high")
    competition = Competition(
        metric="AUC",
        higher_is_better=True,
        rows=301,
        folds=1,
        candidates=[Candidate(**dict(zip(names, values, strict=True))) for values in figures],
        winner="trees",
        why="ahead of all others",
    )
    (tmp_path / "model_run").mkdir()
    (tmp_path / "model_run" / COMPETITION_FILE).write_text(competition.model_dump_json())
    builder.run("small-1")
    model_run = builder.artifact("ModelRun", tmp_path / "model_run")
    builder.node("Trainer", outputs={"model_run": model_run})
    builder.run("small-2")
    builder.node("Trainer", "FAILED")
    shown = millrace("show", "small").stdout
    assert shown.splitlines()[-5:] == [
        "# In run small-1:",
        "# Candidates on 301 training rows (a part of them that none learned from), by AUC:",
        "#   trees    0.9700",
        "#   linear   0.9000; the winner is ahead by 0.07 (0.04 to 0.1)",
        "# Trained: trees, ahead of all others",
    ]
    assert yaml.safe_load(shown)["label"]
