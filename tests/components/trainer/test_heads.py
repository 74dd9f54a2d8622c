"""A model of several outputs learns a label for each, and serves all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import two_heads_recipe
from tiny_artifacts import Tiny
from trained import history

from components.trainer import building, train
from components.trainer.job import Job
from contracts import model_card
from contracts.errors import TrainingError

LABELS = {"odds": "big", "kind": "fare_bucket"}
METRICS = ("loss", "odds_loss", "kind_loss", "odds_auc", "kind_accuracy")


def job(tiny: Tiny, folder: Path, label: Any = LABELS, params: Any = None, **settings: Any) -> Job:
    return tiny.job(folder, "two_heads_recipe", label, **{"epochs": 2, "params": params or {}, **settings})


@pytest.fixture(scope="module")
def trained(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Job:
    task = job(tiny, tmp_path_factory.mktemp("heads") / "run")
    train.train(task)
    return task


def test_each_head_has_its_loss_and_its_metric(trained: Job) -> None:
    for epoch in history(trained):
        assert set(epoch) == {"epoch", *METRICS, *(f"val_{name}" for name in METRICS)}
        assert epoch["val_loss"] == pytest.approx(epoch["val_odds_loss"] + epoch["val_kind_loss"])


def test_all_heads_and_all_labels_are_exported(trained: Job, tiny: Tiny) -> None:
    loaded = tf.saved_model.load(trained.serving_model_dir)
    rows = tf.constant(tiny.serialized("eval"))
    served, labels = loaded.signatures["serving_default"](examples=rows), loaded.signatures["transform_label"]
    assert {name: values.shape.as_list() for name, values in served.items()} == {"odds": [30, 1], "kind": [30, 4]}
    expected = tiny.tensors(tiny.transformed, "eval")
    found = labels(examples=rows)
    assert set(found) == {"big", "fare_bucket"}
    for name, values in found.items():
        np.testing.assert_array_equal(np.ravel(values), np.ravel(expected[name]))
    card = model_card.read_card(Path(trained.serving_model_dir))
    assert card.label == LABELS
    accuracy = np.mean(np.argmax(served["kind"], axis=1) == np.ravel(expected["fare_bucket"]))
    assert card.validation_metrics["kind_accuracy"] == pytest.approx(accuracy)
    # Neither API has an answer for two predictions.
    assert card.task is None
    assert set(card.signatures) == {
        *("serving_default", "predict", "predict_transformed", "transform_features", "transform_label")
    }


@pytest.mark.parametrize(
    "settings",
    [
        {"params": {"listed": True}},
        {"optimization": {"gradient_accumulation": 3}},
        {"input": {"cache": "none", "shuffle_rows": 1}, "debug": True},
    ],
    ids=["outputs_as_a_list", "in_groups", "debugged"],
)
def test_however_the_heads_are_trained(settings: dict[str, Any], tiny: Tiny, tmp_path: Path) -> None:
    whole = job(tiny, tmp_path / "whole", input={"cache": "none", "shuffle_rows": 1})
    other = job(tiny, tmp_path / "other", **{"input": {"cache": "none", "shuffle_rows": 1}, **settings})
    for task in (whole, other):
        train.train(task)
    for one, expected in zip(history(other), history(whole), strict=True):
        assert one == pytest.approx(expected, rel=1e-4)


def test_a_sample_weight_weighs_every_head(tiny: Tiny, tmp_path: Path) -> None:
    labels = {"odds": "big"}
    losses = {"compile": {"loss": {"odds": "binary_crossentropy"}, "metrics": {}, "weighted_metrics": {"odds": "mse"}}}
    train.train(job(tiny, tmp_path / "weighted", labels, losses, sample_weight="fare_bucket"))
    assert set(history(job(tiny, tmp_path / "weighted"))[0]) == {
        *("epoch", "loss", "odds_loss", "odds_mse", "val_loss", "val_odds_loss", "val_odds_mse")
    }


@pytest.mark.parametrize(
    ("label", "params", "message"),
    [
        (
            {**LABELS, "colour": "id"},
            {},
            "label in recipe.yaml has a feature for colour, expected outputs of the model: odds, kind.\n"
            'Name the outputs in build_model, as in tf_keras.Model(inputs, {"tip": …, "payment": …}), and use '
            "these names in recipe.yaml.",
        ),
        (
            {"odds": "big"},
            {},
            "The model's output 'kind' has a loss, but label in recipe.yaml has no feature for it.\n"
            "Give it one (label: {kind: …}), or leave its loss out of compile_arguments.",
        ),
        (
            LABELS,
            {"compile": {"metrics": {"kinds": "accuracy"}}},
            "compile_arguments in model.py has metrics for kinds, expected outputs of the model: odds, kind.\n"
            'Name the outputs in build_model, as in tf_keras.Model(inputs, {"tip": …, "payment": …}), and use '
            "these names in compile_arguments.",
        ),
        (
            LABELS,
            {"classes": 3},
            "The label 'fare_bucket' has the ids 0 to 3 in the train split, but the model has 3 units in its output "
            "'kind', for the ids 0 to 2.\n"
            "Give the model 4 units in its output 'kind' (trainer.params), or look at how the label is made.",
        ),
        (
            {**LABELS, "odds": "bigger"},
            {},
            "The label 'bigger' is not among the transformed features: big, company, fare, fare_bucket, id.\n"
            "Return it from preprocessing_fn, or name another label in recipe.yaml.",
        ),
    ],
    ids=["no_output", "no_label", "metric_of_no_output", "class_ids", "no_feature"],
)
def test_what_does_not_go_together_is_refused(
    label: Any, params: Any, message: str, tiny: Tiny, tmp_path: Path
) -> None:
    with pytest.raises(TrainingError) as caught:
        train.train(job(tiny, tmp_path / "run", label, params))
    assert str(caught.value) == message


def test_one_label_is_learned_by_all_heads(tiny: Tiny, tmp_path: Path) -> None:
    losses = {"compile": {"loss": "mse", "metrics": {}}, "classes": 1}
    train.train(job(tiny, tmp_path / "run", "big", losses))
    assert model_card.read_card(tmp_path / "run" / "serving").label == "big"


def test_a_step_is_traced_once(tiny: Tiny, tmp_path: Path) -> None:
    task = job(tiny, tmp_path / "run")
    features, data = train.open_data(task, tiny.output)
    model = building.build(two_heads_recipe, features, task.settings)
    train.fit(model, two_heads_recipe, task, data, tf.distribute.get_strategy())
    assert model.train_function.experimental_get_tracing_count() == 1
    assert {feature.name for feature in features} == {"company", "fare", "id"}
