"""What a recipe.yaml may contain, and how mistakes in it are reported."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.errors import SettingsError
from pipeline.plan import recipe

Edit = Callable[[str, str, str], None]
YAML = "recipes/small/recipe.yaml"


def mistake(project: Path, text: str | None = None, *overrides: str) -> str:
    """The error for a recipe.yaml with this text, with its path shortened to `recipe.yaml`."""
    path = project / YAML
    if text is not None:
        path.write_text(text)
    with pytest.raises(SettingsError) as caught:
        recipe.load("small", overrides)
    return str(caught.value).replace(str(path), "recipe.yaml")


def with_line(project: Path, old: str, new: str) -> str:
    text = (project / YAML).read_text()
    assert old in text
    return text.replace(old, new)


def test_defaults_are_filled_in(project: Path) -> None:
    settings = recipe.load("small").settings
    assert settings.trainer.batch_size == 2
    assert settings.trainer.steps_per_execution == 50
    assert settings.gate.on_anomaly == "stop"
    assert settings.pusher.keep_versions == 5
    assert settings.tflite.quantization == "none"
    assert settings.tflite.max_accuracy_loss == 0.01
    assert settings.data.splits == {"train": 2, "eval": 1}


def test_several_labels_are_by_output_and_one_of_them_is_judged(project: Path) -> None:
    judged = "evaluator.prediction_key=tip"
    listed = recipe.load("small", ["label=[tip, paid]", judged]).settings
    assert (listed.label, listed.judged_label) == ({"tip": "tip", "paid": "paid"}, "tip")
    mapped = recipe.load("small", ["label={tip: big, payment: paid}", judged]).settings
    assert (mapped.label, mapped.judged_label) == ({"tip": "big", "payment": "paid"}, "big")
    assert recipe.load("small", [judged]).settings.judged_label == "big"
    assert mistake(project, None, "label={tip: big, payment: paid}") == (
        "recipe.yaml: evaluator.prediction_key is the output that is judged, by its label; received None, expected one "
        "of those in label: tip, payment."
    )


@pytest.mark.parametrize("label", ["5", "[]", "{}", "[tip, tip]", "[[tip]]", "''"])
def test_a_label_is_a_feature_or_several(label: str, project: Path) -> None:
    told = mistake(project, None, f"label={label}")
    assert told.startswith(f"--set label={label}: label: received ")
    assert told.endswith(", expected a feature, a list of features, or features by output.")


def test_a_bare_metric_and_a_bare_slice_are_written_out(project: Path, edit: Edit) -> None:
    edit(YAML, "    AUC: {lower_bound: 0.5}", "    AUC: {lower_bound: 0.5}\n    Recall:\n  slices: [company, [a, b]]")
    evaluator = recipe.load("small").settings.evaluator
    assert evaluator.slices == [["company"], ["a", "b"]]
    assert not evaluator.metrics["Recall"].gates
    assert evaluator.metrics["AUC"].gates


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "  epochs: 1",
            "  epoch: 1",
            "recipe.yaml:6: unknown key trainer.epoch. Did you mean trainer.epochs?",
        ),
        (
            "label: big",
            "label: big\nbatch_size: 3",
            "recipe.yaml:5: unknown key batch_size. Did you mean trainer.batch_size?",
        ),
        (
            "{lower_bound: 0.5}",
            "{lower_bound: 0.5}\n  slice: [a]",
            "recipe.yaml:11: unknown key evaluator.slice. Did you mean evaluator.slices?",
        ),
        (
            "  path: data.csv",
            "  path: data.csv\n  zzz: 1",
            "recipe.yaml:4: unknown key data.zzz. "
            "Known here: columns, decimal, delimiter, encoding, format, header, na_values, on_bad_row, "
            "on_missing_label, on_overflow, path, span, split_by, split_by_time, splits, thousands.",
        ),
        (
            "{lower_bound: 0.5}",
            "{lowerbound: 0.5}",
            "recipe.yaml:10: unknown key evaluator.metrics.AUC.lowerbound. "
            "Did you mean evaluator.metrics.AUC.lower_bound?",
        ),
        (
            "AUC: {",
            "RMSE: {",
            "recipe.yaml:9: evaluator.metrics: there is no metric RMSE. Did you mean RootMeanSquaredError?",
        ),
        (
            "label: big",
            "label: big\nlowerbound: 0.5",
            "recipe.yaml:5: unknown key lowerbound. Did you mean evaluator.metrics.<name>.lower_bound?",
        ),
    ],
)
def test_an_unknown_key_is_reported_with_its_line_and_the_nearest_valid_one(
    project: Path, old: str, new: str, message: str
) -> None:
    assert message in mistake(project, with_line(project, old, new)).splitlines()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "  batch_size: 2",
            "  batch_size: many",
            "recipe.yaml:7: trainer.batch_size: input should be a valid integer, unable to parse string as an integer; "
            "received 'many'.",
        ),
        (
            "  batch_size: 2",
            "  batch_size: 0",
            "recipe.yaml:7: trainer.batch_size: input should be greater than or equal to 1; received 0.",
        ),
        (
            "label: big",
            "label: big\ngate: {on_anomaly: ignore}",
            "recipe.yaml:5: gate.on_anomaly: input should be 'stop' or 'warn'; received 'ignore'.",
        ),
        (
            "label: big",
            "label: big\ntflite: {quantization: int4}",
            "recipe.yaml:5: tflite.quantization: input should be 'none', 'float32', 'dynamic', 'float16', 'int8' or "
            "'int8_with_float_fallback'; received 'int4'.",
        ),
        (
            "label: big",
            "label: big\ntflite: {max_accuracy_loss: 1.5}",
            "recipe.yaml:5: tflite.max_accuracy_loss: input should be less than or equal to 1; received 1.5.",
        ),
        ("label: big\n", "", "recipe.yaml: label is missing; every recipe.yaml needs it."),
        ("  path: data.csv", "  format: csv", "recipe.yaml:2: data.path is missing; every recipe.yaml needs it."),
        (
            "  batch_size: 2",
            "  train_steps: 9",
            "recipe.yaml:5: trainer: give exactly one of train_steps, epochs and phases; "
            "received train_steps=9, epochs=1.",
        ),
        (
            "  epochs: 1\n",
            "",
            "recipe.yaml:5: trainer: give exactly one of train_steps, epochs and phases; received none.",
        ),
        (
            "{lower_bound: 0.5}",
            "{upper_bound: 1.5}",
            "recipe.yaml:8: evaluator: AUC lies between 0 and 1; received the bound 1.5.",
        ),
        (
            "{lower_bound: 0.5}",
            "{lower_bound: -0.5}",
            "recipe.yaml:8: evaluator: AUC lies between 0 and 1; received the bound -0.5.",
        ),
        (
            "{lower_bound: 0.5}",
            "{lower_bound: 0.5, upper_bound: 0.4}",
            "recipe.yaml:10: evaluator.metrics.AUC: lower_bound must not exceed upper_bound; received 0.5 and 0.4.",
        ),
        (
            "{lower_bound: 0.5}",
            "{}",
            "recipe.yaml:8: evaluator: at least one metric needs a lower_bound, an upper_bound or a max_loss, "
            "or nothing would gate.",
        ),
        (
            "{lower_bound: 0.5}",
            "{max_loss: -1}",
            "recipe.yaml:10: evaluator.metrics.AUC.max_loss: input should be greater than or equal to 0; received -1.",
        ),
        (
            "{lower_bound: 0.5}",
            "{lower_bound: 0.5, slices: {lower_bound: 2}}",
            "recipe.yaml:8: evaluator: AUC lies between 0 and 1; received the bound 2.0.",
        ),
        (
            "{lower_bound: 0.5}",
            "{lower_bound: 0.5}\n  slices: [company]\n  max_gap: {Recall: 0.1}",
            "recipe.yaml:8: evaluator: max_gap names Recall, which is not among the metrics: AUC.",
        ),
        (
            "{lower_bound: 0.5}",
            "{lower_bound: 0.5}\n  max_gap: {AUC: 0.1}",
            "recipe.yaml:8: evaluator: max_gap compares slices, and there are none; name a feature under slices.",
        ),
    ],
)
def test_a_wrong_value_is_reported_with_its_line_and_what_was_received(
    project: Path, old: str, new: str, message: str
) -> None:
    assert mistake(project, with_line(project, old, new)) == message


def test_every_mistake_gets_a_line_of_its_own(project: Path) -> None:
    text = with_line(project, "  epochs: 1", "  epoch: 1").replace("label: big\n", "")
    assert len(mistake(project, text).splitlines()) == 2


@pytest.mark.parametrize("bound", [0, 1])
def test_the_ends_of_the_unit_interval_are_allowed(project: Path, edit: Edit, bound: int) -> None:
    edit(YAML, "lower_bound: 0.5", f"lower_bound: {bound}")
    assert recipe.load("small").settings.evaluator.metrics["AUC"].lower_bound == bound


def test_an_unbounded_metric_may_have_any_bound(project: Path, edit: Edit) -> None:
    edit(YAML, "AUC: {lower_bound: 0.5}", "MeanPrediction: {upper_bound: 12}")
    assert recipe.load("small").settings.evaluator.metrics["MeanPrediction"].upper_bound == 12


def test_a_duplicate_key_names_both_lines(project: Path) -> None:
    text = with_line(project, "  batch_size: 2", "  batch_size: 2\n  epochs: 3")
    assert mistake(project, text) == (
        "recipe.yaml:8: trainer.epochs is given twice, first on line 6.\nKeep one of the two."
    )


def test_invalid_yaml_names_the_line(project: Path) -> None:
    text = with_line(project, "label: big", "label: [big")
    assert re.fullmatch(r"recipe\.yaml:5: not valid YAML: .+\.\nMend the syntax on that line\.", mistake(project, text))


@pytest.mark.parametrize(("text", "kind"), [("- a\n- b\n", "list"), ("", "NoneType"), ("word", "str")])
def test_a_file_without_keys_is_refused(project: Path, text: str, kind: str) -> None:
    assert mistake(project, text) == f"recipe.yaml:1: expected `key: value` lines, received {kind}."


def test_an_unknown_recipe_gets_the_nearest_name_or_all_names(project: Path) -> None:
    where = f"under {project / 'recipes'}."
    with pytest.raises(SettingsError, match=re.escape(f"no recipe named 'smal' {where} Did you mean small?")):
        recipe.load("smal")
    with pytest.raises(SettingsError, match=re.escape(f"no recipe named 'zzz' {where} There are: other, small.")):
        recipe.load("zzz")


def test_a_recipe_knows_where_its_code_and_schema_are(project: Path) -> None:
    small = recipe.load("small")
    assert small.preprocessing_fn == "recipes.small.features.preprocessing_fn"
    assert small.model_module == "recipes.small.model"
    assert small.curated_schema == project / "schemas" / "small" / "schema.pbtxt"
    small.curated_schema.unlink()
    assert small.curated_schema is None


def test_a_folder_without_a_recipe_yaml_is_no_recipe(project: Path) -> None:
    (project / "recipes" / "other" / "recipe.yaml").unlink()
    assert recipe.names() == ["small"]
