"""The cache matrix: a change gives a new fingerprint to exactly the nodes that it affects."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields, replace
from importlib.metadata import version
from pathlib import Path

import pytest

from components.example_gen import files
from pipeline.plan import fingerprint, nodes, recipe
from pipeline.plan.environment import Environment
from pipeline.plan.fingerprint import Fingerprint

Change = Callable[[Path], None]


def prints(project: Path, places: Environment, *overrides: str) -> dict[str, Fingerprint]:
    """The current fingerprints of the recipe `small`, as a new process would compute them."""
    small = recipe.load("small", overrides)
    return fingerprint.fingerprints(small, places, files.resolve(small.settings.data, project))


def changed(before: dict[str, Fingerprint], after: dict[str, Fingerprint]) -> set[str]:
    assert before.keys() == after.keys()
    return {node for node in before if before[node].to_json() != after[node].to_json()}


def replaced(path: str, old: str, new: str) -> Change:
    def change(project: Path) -> None:
        text = (project / path).read_text()
        assert old in text
        (project / path).write_text(text.replace(old, new))

    return change


def appended(path: str, text: str) -> Change:
    def change(project: Path) -> None:
        with (project / path).open("a") as file:
            file.write(text)

    return change


def touched(path: str) -> Change:
    def change(project: Path) -> None:
        stat = (project / path).stat()
        os.utime(project / path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 10**9))

    return change


TFLITE = "tflite.quantization=int8"
YAML = "recipes/small/recipe.yaml"
MATRIX = [
    ("model.py", replaced("recipes/small/model.py", "return {}", "return {'loss': 1}"), {"Trainer"}),
    ("features.py", replaced("recipes/small/features.py", "return inputs", "return dict(inputs)"), {"Transform"}),
    ("the schema", appended("schemas/small/schema.pbtxt", 'feature { name: "company" }\n'), {"SchemaGen"}),
    ("a trainer setting", replaced(YAML, "batch_size: 2", "batch_size: 1"), {"Trainer"}),
    ("a model parameter", replaced(YAML, "epochs: 1", "epochs: 1\n  params: {a: [1]}"), {"Trainer"}),
    ("an evaluator bar", replaced(YAML, "lower_bound: 0.5", "lower_bound: 0.6"), {"Evaluator"}),
    ("the gate", replaced(YAML, "label: big", "label: big\ngate: {on_anomaly: warn}"), {"DataGate"}),
    ("the pusher", replaced(YAML, "label: big", "label: big\npusher: {keep_versions: 2}"), {"Pusher"}),
    (
        "the infra check",
        replaced(YAML, "label: big", "label: big\ninfra_validator: {rows: 3}"),
        {"Evaluator", "InfraValidator"},
    ),
    ("the splits", replaced(YAML, "  path:", "  splits: {train: 4, eval: 1}\n  path:"), {"ExampleGen"}),
    ("the label", replaced(YAML, "label: big", "label: bigger"), {"ExampleGen", "Trainer", "Evaluator"}),
    ("the data", replaced("data.csv", "2.0", "2.5"), {"ExampleGen"}),
    ("the description", replaced(YAML, "is it big?", "Is it?"), set()),
    ("the data's time only", touched("data.csv"), set()),
    ("a comment in model.py", replaced("recipes/small/model.py", "# A comment.", "# Another."), set()),
    ("a comment in recipe.yaml", appended(YAML, "# Thoughts.\n"), set()),
    ("another recipe's code", replaced("recipes/other/model.py", "return {}", "return {'loss': 1}"), set()),
    ("another recipe's settings", replaced("recipes/other/recipe.yaml", "epochs: 1", "epochs: 2"), set()),
    ("another recipe's schema", appended("schemas/other/schema.pbtxt", 'feature { name: "a" }\n'), set()),
    ("the pusher's code", appended("components/pusher/versions.py", "\nMORE = 1\n"), {"Pusher"}),
    ("the gate's code", appended("components/data_gate.py", "\nMORE = 1\n"), {"DataGate"}),
    ("the summary's code", appended("components/evaluation/summary.py", "\nMORE = 1\n"), {"Evaluator"}),
    ("TFMA's configuration", appended("components/evaluation/component.py", "\nMORE = 1\n"), {"Evaluator"}),
    ("the ingest's outputs", appended("components/example_gen/component.py", "\nMORE = 1\n"), {"ExampleGen"}),
    ("the trainer's code", appended("components/trainer/inputs.py", "\nMORE = 1\n"), {"Trainer"}),
    ("AutoGraph's rules", appended("components/autograph.py", "\nMORE = 1\n"), {"Transform", "Trainer"}),
    ("the ingest's code", appended("components/example_gen/shards.py", "\nMORE = 1\n"), {"ExampleGen"}),
]


@pytest.mark.parametrize(("change", "expected"), [row[1:] for row in MATRIX], ids=[row[0] for row in MATRIX])
def test_a_change_reaches_exactly(project: Path, places: Environment, change: Change, expected: set[str]) -> None:
    before = prints(project, places)
    change(project)
    assert changed(before, prints(project, places)) == expected


def test_an_override_equals_the_same_words_in_the_file(project: Path, places: Environment) -> None:
    by_flag = prints(project, places, "trainer.batch_size=1")
    replaced(YAML, "batch_size: 2", "batch_size: 1")(project)
    assert changed(by_flag, prints(project, places)) == set()


def test_a_default_written_out_changes_nothing(project: Path, places: Environment) -> None:
    before = prints(project, places)
    replaced(YAML, "label: big", "label: big\ngate: {on_anomaly: stop}")(project)
    assert changed(before, prints(project, places)) == set()


def test_the_serving_folder_is_a_setting_of_the_pusher(project: Path, places: Environment, tmp_path: Path) -> None:
    elsewhere = places.model_copy(update={"serving_root": tmp_path / "elsewhere"})
    assert changed(prints(project, places), prints(project, elsewhere)) == {"Pusher"}


def test_a_new_span_is_a_new_ingest(project: Path, places: Environment) -> None:
    small = recipe.load("small")
    inputs = files.resolve(small.settings.data, project)
    before = fingerprint.fingerprints(small, places, inputs)
    assert changed(before, fingerprint.fingerprints(small, places, replace(inputs, span=3))) == {"ExampleGen"}


def test_a_recipe_without_a_curated_schema_has_no_schema_file(project: Path, places: Environment) -> None:
    assert prints(project, places)["SchemaGen"].files.keys() == {"schemas/small/schema.pbtxt"}
    (project / "schemas" / "small" / "schema.pbtxt").unlink()
    assert prints(project, places)["SchemaGen"].files == {}


def test_the_order_is_that_of_the_data_flow(project: Path, places: Environment) -> None:
    order = [node for node in nodes.NODES if node != "BaselineModel"]
    assert list(prints(project, places, TFLITE)) == order
    assert list(prints(project, places)) == [node for node in order if node != "TFLite"]


def test_asking_for_a_tf_lite_model_changes_the_pusher_alone(project: Path, places: Environment) -> None:
    without, with_it = prints(project, places), prints(project, places, TFLITE)
    assert with_it.pop("TFLite").settings == {
        "tflite.quantization": "int8",
        "tflite.inference_input_type": "float32",
        "tflite.inference_output_type": "float32",
        "tflite.max_accuracy_loss": 0.01,
        "tflite.representative_rows": 200,
        "tflite.threads": 1,
        "label": "big",
        "evaluator.prediction_key": None,
    }
    assert changed(without, with_it) == {"Pusher"}


TFLITE_MATRIX = [
    ("a setting", "tflite.threads=2", None, {"TFLite"}),
    ("the quantization", "tflite.quantization=dynamic", None, {"TFLite", "Pusher"}),
    ("the judge's code", TFLITE, appended("components/tflite/judge.py", "\nMORE = 1\n"), {"TFLite", "InfraValidator"}),
    ("the label", "label=bigger", None, {"ExampleGen", "Trainer", "Evaluator", "TFLite"}),
]


@pytest.mark.parametrize(
    ("override", "change", "expected"), [row[1:] for row in TFLITE_MATRIX], ids=[row[0] for row in TFLITE_MATRIX]
)
def test_a_change_of_the_tf_lite_node_reaches_exactly(
    project: Path, places: Environment, override: str, change: Change | None, expected: set[str]
) -> None:
    before = prints(project, places, TFLITE)
    if change:
        change(project)
    assert changed(before, prints(project, places, TFLITE, override)) == expected


def test_names_are_those_a_user_knows(project: Path, places: Environment) -> None:
    by_node = prints(project, places)
    assert by_node["Trainer"].settings["trainer.batch_size"] == 2
    assert by_node["Evaluator"].settings["evaluator.metrics.AUC.lower_bound"] == 0.5
    assert "recipes/small/model.py" in by_node["Trainer"].code
    assert list(by_node["ExampleGen"].files) == ["data.csv"]
    assert by_node["Transform"].packages == {name: version(name) for name in ("tensorflow", "tensorflow-transform")}


def test_images_count_by_folder(project: Path, places: Environment) -> None:
    for name in ("cats/1.png", "cats/2.png", "dogs/1.png"):
        (project / "photos" / name).parent.mkdir(parents=True, exist_ok=True)
        (project / "photos" / name).write_text(name)
    before = prints(project, places, "data.path=photos")["ExampleGen"]
    assert list(before.files) == ["photos/cats", "photos/dogs"]
    assert before.packages.keys() - prints(project, places)["ExampleGen"].packages.keys() == {"pillow"}
    for change in (
        lambda folder: (folder / "2.png").write_text("x"),
        lambda folder: (folder / "2.png").rename(folder / "3.png"),
        lambda folder: (folder / "3.png").unlink(),
    ):
        change(project / "photos/cats")
        after = prints(project, places, "data.path=photos")["ExampleGen"]
        assert {name for name in after.files if after.files[name] != before.files[name]} == {"photos/cats"}
        before = after


def test_json_round_trip() -> None:
    whole = Fingerprint({"a.b": [1, None]}, {"x.py": "12"}, {"tfx": "1"}, {"data.csv": "34"})
    assert Fingerprint.from_json(whole.to_json()) == whole
    swapped = Fingerprint(**{field.name: dict(reversed(getattr(whole, field.name).items())) for field in fields(whole)})
    assert swapped.to_json() == whole.to_json()
