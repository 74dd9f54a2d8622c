"""What preflight finds wrong before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.errors import AnomalyError, DataError, MillraceError, SettingsError
from pipeline.plan import preflight, recipe

Edit = Callable[[str, str, str], None]
HERE = "recipes/small"


def check(*overrides: str) -> tuple[Path, ...]:
    chosen = recipe.load("small", overrides)
    inputs = chosen.find_inputs()
    preflight.check(chosen, inputs)
    return inputs.files


def mistake(kind: type[MillraceError], *overrides: str) -> str:
    with pytest.raises(kind) as caught:
        check(*overrides)
    return str(caught.value)


def test_a_sound_recipe_passes_and_its_files_are_found(project: Path) -> None:
    assert check() == (project / "data.csv",)


@pytest.mark.parametrize(
    ("module", "functions"),
    [("features.py", "preprocessing_fn"), ("model.py", "build_model and compile_arguments")],
)
def test_a_missing_module(project: Path, module: str, functions: str) -> None:
    path = project / HERE / module
    path.unlink()
    assert mistake(SettingsError) == f"{path} does not exist.\nWrite it, with {functions}."


@pytest.mark.parametrize(
    ("module", "function"),
    [("features.py", "preprocessing_fn"), ("model.py", "build_model"), ("model.py", "compile_arguments")],
)
def test_a_missing_function(project: Path, edit: Edit, module: str, function: str) -> None:
    edit(f"{HERE}/{module}", f"def {function}(", "def other(")
    path = project / HERE / module
    assert mistake(SettingsError) == f"{path} has no function {function}.\nDefine {function} in it."


def test_a_training_of_the_recipe_s_own_runs_on_one_device(project: Path) -> None:
    path = project / HERE / "model.py"
    check("trainer.workers=2")
    path.write_text(path.read_text() + "\n\ndef train(training):\n    return training.fit(training.build())\n")
    assert check()
    assert mistake(SettingsError, "trainer.workers=2") == (
        f"{path} has a function train, which trains on one device in one process; received trainer.workers 2.\n"
        "Take that back, or remove train from model.py: then `model.fit` trains what build_model returns."
    )


@pytest.mark.parametrize(
    "source",
    [
        "from recipes.other.features import preprocessing_fn\n",
        "from recipes.other.features import prepare as preprocessing_fn\n",
        "preprocessing_fn = print\n",
    ],
)
def test_a_function_may_be_imported_or_assigned(project: Path, source: str) -> None:
    (project / HERE / "features.py").write_text(source)
    check()


def test_a_syntax_error_names_the_line(project: Path, edit: Edit) -> None:
    edit(f"{HERE}/features.py", "return inputs", "return (inputs")
    path = project / HERE / "features.py"
    assert mistake(SettingsError) == f"{path}:2: '(' was never closed.\nMend the syntax on that line."


@pytest.mark.parametrize("line", ["import keras", "import keras.layers as layers", "from keras import layers"])
def test_keras_3_is_refused(project: Path, line: str) -> None:
    path = project / HERE / "model.py"
    path.write_text(f"import tf_keras\n{line}\n{path.read_text()}")
    assert mistake(SettingsError) == (
        f"{path}:2: imports keras, which is Keras 3; models are built with tf_keras.\n"
        "Import tf_keras instead, whose names are those of Keras 2 (docs/adr/0002-tf-keras.md)."
    )


@pytest.mark.parametrize("line", ["from tensorflow import keras", "from .keras import layers", "import keras_nlp"])
def test_other_modules_called_keras_are_not(project: Path, line: str) -> None:
    path = project / HERE / "model.py"
    path.write_text(f"{line}\n{path.read_text()}")
    check()


def test_a_column_that_the_schema_requires(project: Path, edit: Edit) -> None:
    edit("data.csv", "fare", "price")
    assert mistake(AnomalyError) == (
        f"{project / 'data.csv'} lacks columns that schemas/small/schema.pbtxt requires: fare; "
        "it has price, tips, company.\nAdd them to the data, or make them optional in the schema."
    )


def test_a_required_column_that_is_deprecated_may_be_missing(project: Path, edit: Edit) -> None:
    edit("data.csv", "fare", "price")
    edit("schemas/small/schema.pbtxt", "min_count: 1 }", "min_count: 1 } lifecycle_stage: DEPRECATED")
    check()


def test_an_optional_column_may_be_missing(project: Path, edit: Edit) -> None:
    edit("data.csv", "tips", "gratuity")
    check()


def test_a_file_that_is_not_a_schema(project: Path, edit: Edit) -> None:
    edit("schemas/small/schema.pbtxt", 'name: "tips"', 'nam: "tips"')
    assert mistake(SettingsError).startswith("schemas/small/schema.pbtxt:2: not a schema: ")


def test_without_a_curated_schema_no_column_is_required(project: Path, edit: Edit) -> None:
    (project / "schemas" / "small" / "schema.pbtxt").unlink()
    edit("data.csv", "fare", "price")
    check()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("evaluator.slices=[tips, compny]", "evaluator.slices.1: {data} has no column 'compny'. Did you mean company?"),
        (
            "evaluator.slices=[[tips, zzz]]",
            "evaluator.slices.0: {data} has no column 'zzz'. There are: fare, tips, company.",
        ),
        (
            "evaluator.example_weight=fares",
            "evaluator.example_weight: {data} has no column 'fares'. Did you mean fare?",
        ),
        ("data.split_by=fares", "data.split_by: {data} has no column 'fares'. Did you mean fare?"),
        (
            "data.splits={train: 2, test: 1}",
            "data.splits has no 'eval'; received train, test.\n"
            "The Trainer learns from `train`, the Evaluator judges on `eval`: name both.",
        ),
        (
            "data.splits={eval: 1}",
            "data.splits has no 'train'; received eval.\n"
            "The Trainer learns from `train`, the Evaluator judges on `eval`: name both.",
        ),
        (
            'data.splits={train: "*"}',
            "data.splits has no 'eval'; received train.\n"
            "The Trainer learns from `train`, the Evaluator judges on `eval`: name both.",
        ),
    ],
)
def test_a_setting_that_does_not_fit_the_data(project: Path, override: str, message: str) -> None:
    expected = f"{project / HERE / 'recipe.yaml'}: {message.format(data=project / 'data.csv')}"
    assert mistake(SettingsError, override) == expected


def test_splits_by_pattern_pass(project: Path) -> None:
    (project / "data.csv").rename(project / "train.csv")
    (project / "eval.csv").write_text((project / "train.csv").read_text())
    splits = "data.splits={train: train*, eval: eval*}"
    assert check("data.path='*.csv'", splits) == (project / "eval.csv", project / "train.csv")
    (project / "more.csv").write_text("fare\n1\n")
    assert "data.splits: more.csv matches none of the patterns" in mistake(DataError, "data.path='*.csv'", splits)


def test_splits_by_pattern_leave_nothing_to_split_by(project: Path) -> None:
    message = mistake(SettingsError, "data.splits={train: train*, eval: eval*}", "data.split_by=fare")
    assert "received split_by 'fare' with the patterns {'train': 'train*', 'eval': 'eval*'}, expected" in message


def test_the_columns_of_images_are_known_beforehand(project: Path) -> None:
    (project / "schemas/small/schema.pbtxt").unlink()
    (project / "photos/cats").mkdir(parents=True)
    (project / "photos/cats/1.png").write_bytes(b"")
    photos = "data.path=photos"
    assert check(photos, "evaluator.slices=[class]") == (project / "photos/cats/1.png",)
    assert "There are: image, label, class, name." in mistake(SettingsError, photos, "evaluator.slices=[zzz]")


def test_a_column_that_the_features_read_and_the_data_lack(project: Path, edit: Edit) -> None:
    edit(f"{HERE}/features.py", "return inputs", 'return {"big": inputs["tips"], "fare": inputs["fares"]}')
    path = project / HERE / "features.py"
    assert mistake(SettingsError) == f"{path}:2: {project}/data.csv has no column 'fares'. Did you mean fare?"
    edit(f"{HERE}/features.py", 'inputs["fares"]', 'inputs["fare"]')
    check()
    # What the schema has may be missing from the data, and what the function adds is its own.
    edit("schemas/small/schema.pbtxt", 'name: "tips"', 'name: "bonus"')
    edit(f"{HERE}/features.py", 'inputs["fare"]', 'inputs["bonus"]')
    check()
    edit(f"{HERE}/features.py", "return {", 'inputs = {"new": 1}; return {"new": inputs["new"], ')
    check()


def test_a_label_that_is_a_misspelt_column(project: Path) -> None:
    where = f"{project}/recipes/small/recipe.yaml: label: {project}/data.csv has no column"
    assert mistake(SettingsError, "label=compny") == f"{where} 'compny'. Did you mean company?"
    check("label=company")
    check("label=company_xf")
    check("label=anything")


def test_a_declared_column_that_the_data_lack(project: Path) -> None:
    message = (
        f"{project}/recipes/small/recipe.yaml: data.columns: {project}/data.csv has no column 'tip'. Did you mean tips?"
    )
    assert mistake(SettingsError, "data.columns={tip: float}") == message
