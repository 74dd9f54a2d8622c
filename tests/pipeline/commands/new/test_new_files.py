"""The files of a recipe: they parse, hold what was decided, and are no longer than taxi's."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import yaml
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.commands.new import files
from pipeline.commands.new.baseline import Measured
from pipeline.commands.new.columns import Found
from pipeline.commands.new.plan import Plan
from pipeline.commands.new.task import Task
from pipeline.plan.recipe import RecipeSettings

TAXI = Path(__file__).resolve().parents[4] / "recipes" / "taxi"
AUC = Measured("AUC", 0.9, 0.01, True, 1000)
ODD_NAMES = ["mean radius", 'said "yes"', "größe", "a: b", "x|y"]


def planned(columns: list[Found], task: Task, measured: list[Measured]) -> Plan:
    """A plan for 2,000 rows to learn from and 1,000 to be judged on."""
    data = {"path": "my rows.csv", "na_values": ["NA"], "columns": {"a: b": "text"}}
    kinds = {found.name: "FLOAT" for found in columns} | {task.label: "BYTES"}
    return Plan("mine", "millrace new mine …", data, columns, kinds, task, 2000, 1000, measured, ["take care"])


@pytest.fixture
def plan() -> Plan:
    """A plan of 500 numbers, and columns with odd names."""
    numbers = [Found(f"column {number}", "number", "numbers") for number in range(500)]
    odd = [Found(name, "category", "words") for name in ODD_NAMES]
    return planned(
        [*numbers, *odd, Found("id", "left out", "ids", "every row has another")],
        Task("y", ("no", "yes"), (2900, 100)),
        [AUC],
    )


def test_features_py_declares_every_column_that_is_used(plan: Plan) -> None:
    text = files.features_py(plan)
    names = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
    assert [name for name in names if name in ODD_NAMES] == ODD_NAMES
    assert {f"column {number}" for number in range(500)} <= set(names)
    assert "id" not in names
    assert max(map(len, text.splitlines())) <= files.WIDTH


def test_no_module_is_longer_than_the_taxi_recipes(plan: Plan) -> None:
    for name, text in (("features.py", files.features_py(plan)), ("model.py", files.model_py(plan))):
        assert len(text.splitlines()) < len((TAXI / name).read_text(encoding="utf-8").splitlines())


def test_recipe_yaml_is_a_recipe(plan: Plan) -> None:
    settings = RecipeSettings.model_validate(yaml.safe_load(files.recipe_yaml(plan)))
    assert settings.label == "y"
    assert settings.data.columns["a: b"].type == "text"
    assert settings.evaluator.prediction_key == "probability"
    # Balanced weights are 0.52 and 15: their roots.
    assert settings.trainer.params["class_weights"] == [0.72, 3.9]


def test_bars_leave_room_for_chance_on_both_sides(plan: Plan) -> None:
    # The deviation of a difference between 1,000 rows and 1,000 others is 0.01 times the root of 2.
    assert plan.metrics == {"AUC": {"lower_bound": 0.871, "max_loss": 0.02}}
    perfect = Measured("SparseCategoricalAccuracy", 1.0, 0.0, True, 96)
    # 98 of 100 right, as if two more had been right and two wrong.
    assert perfect.bar(10**9) == 0.98
    rmse = Measured("RootMeanSquaredError", 50.0, 1.0, False, 1000)
    amounts = planned([Found("x", "number", "numbers")], Task("y", mean=1.0, deviation=2.0), [rmse])
    assert amounts.metrics["RootMeanSquaredError"]["upper_bound"] == 52.8
    assert amounts.metrics["RootMeanSquaredError"]["direction"] == "lower_is_better"


def test_the_schema_knows_every_column_and_what_requests_lack(plan: Plan) -> None:
    schema = text_format.Parse(files.schema_pbtxt(plan), schema_pb2.Schema())
    by_name = {feature.name: feature for feature in schema.feature}
    assert set(by_name) == {found.name for found in plan.columns} | {"y"}
    assert list(by_name["y"].not_in_environment) == ["SERVING"]
    assert by_name["y"].presence.min_fraction == 1.0
    assert not by_name["id"].HasField("presence")
    assert list(by_name["mean radius"].not_in_environment) == []


def test_small_data_are_seen_often_and_in_small_batches(plan: Plan) -> None:
    assert (plan.batch_size, plan.epochs) == (128, 50)
