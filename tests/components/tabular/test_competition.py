"""Which candidate is chosen, why, and that each is the model it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import table_recipe
import tensorflow as tf
import tf_keras
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from components.tabular import competition, models
from components.tabular.analysis import InMemory
from components.tabular.candidates import Boosted, Linear, Rows, averaged, design, predicted
from components.tabular.features import Categories, Numbers, Texts, transformed
from components.tabular.labels import Amount, Classes, LabelColumn, SeveralOf
from components.trainer import saving
from components.trainer.features import Feature
from components.trainer.inputs import Layout, Split
from components.trainer.job import Job
from components.trainer.own_training import Training
from contracts.errors import TrainingError

TWO = Classes("y", ["no", "yes"])
THREE = Classes("y", ["a", "b", "c"])
ROWS = 240


def table(label: LabelColumn, wanted: Any) -> tuple[Rows, list[Feature]]:
    """Rows of which `x` and `c` decide the label, `gap` is missing in half, and `t` is a text."""
    draw = np.random.default_rng(3)
    x, c = draw.normal(size=ROWS), draw.integers(0, 3, ROWS)
    gap = np.where(draw.random(ROWS) < 0.5, np.nan, x + draw.normal(size=ROWS))
    values = wanted(x, c)
    inputs = {
        "x": tf.constant(x, tf.float32),
        "gap": tf.constant(gap, tf.float32),
        "c": tf.constant([["red", "blue", "green"][i] for i in c]),
        "t": tf.constant(["some words" if i else "other words" for i in c]),
        "y": tf.constant(values, tf.float32)
        if isinstance(label, Amount)
        else tf.constant([label.names[int(v)] for v in values]),
    }
    analysis = InMemory()
    outputs = transformed(inputs, [Numbers(["x", "gap"]), Categories(["c"]), Texts(["t"])], label, analysis)
    labels = outputs.pop("y").numpy()
    features = [Feature(n, t.dtype, tuple(t.shape[1:]), analysis.sizes.get(n)) for n, t in outputs.items()]
    return Rows({name: tensor.numpy() for name, tensor in outputs.items()}, labels, np.ones(ROWS)), features


def new_training(rows: Rows, features: list[Feature], folder: Path, **params: Any) -> Training:
    job = Job(
        train_files=[],
        eval_files=[],
        transform_graph="",
        model_module="table_recipe",
        label="y",
        settings={"epochs": 2, "batch_size": 32, "precision": "float32", "params": {"members": 2, **params}},
        serving_model_dir=str(folder / "serving"),
        model_run_dir=str(folder),
        checkpoint_root=str(folder / "checkpoints"),
    )
    columns = {**{name: tf.constant(column) for name, column in rows.inputs.items()}, "y": tf.constant(rows.label)}
    spec = {name: tf.io.FixedLenFeature(column.shape[1:], column.dtype) for name, column in columns.items()}
    split = Split([], Layout(spec, features, "y"), len(rows), columns)

    def refuse(model: tf_keras.Model, *, job: Job) -> Any:
        raise AssertionError(f"the network is not asked for: {model.name} {job.label}")

    return Training(table_recipe, job, features, {"train": split, "eval": split}, refuse)


def test_the_linear_model_is_scikit_learn_s(tmp_path: Path) -> None:
    rows, features = table(TWO, lambda x, c: (x + c > 1).astype(int))
    training = new_training(rows, features, tmp_path)
    linear = Linear(training, TWO)
    found = predicted(linear.fit(rows), rows)[:, 0]
    from scipy import sparse

    matrix = sparse.hstack(list(design(features, rows.inputs).values()), format="csr")
    expected = LogisticRegression(C=linear._regularization, solver="liblinear", max_iter=1000, tol=1e-8)
    expected.fit(matrix, rows.label)
    np.testing.assert_allclose(found, expected.decision_function(matrix), rtol=0.05, atol=0.05)
    assert roc_auc_score(rows.label, found) > 0.95


@pytest.mark.parametrize(
    ("label", "wanted", "units"),
    [
        (TWO, lambda x, c: (x * (c - 1) > 0).astype(int), 1),
        (THREE, lambda x, c: np.digitize(x * (c - 1), [-0.3, 0.3]), 3),
        (Amount("y", mean=1000.0, deviation=50.0), lambda x, c: 1000 + 50 * x * (c - 1), 1),
    ],
    ids=["two_classes", "three_classes", "amount"],
)
def test_trees_learn_what_no_line_divides_and_serve_it(label: LabelColumn, wanted: Any, units: int) -> None:
    rows, features = table(label, wanted)
    model = Boosted(features, label, seed=1).fit(rows)
    logits = model(rows.inputs)
    assert logits.shape == (ROWS, 1, units)
    served = models.serving_outputs({"logits": logits}, label, {})
    if isinstance(label, Amount):
        assert np.sqrt(np.mean((served["prediction"][:, 0] - rows.label) ** 2)) < 15
    else:
        names = [label.names[int(i)].encode() for i in rows.label]
        assert np.mean(served["class"].numpy() == names) > 0.9


def test_weights_of_classes_count_in_the_trees_and_not_in_what_they_serve() -> None:
    rows, features = table(TWO, lambda x, c: (x > 1).astype(int))
    weights = (1.0, 8.0)
    weighed = Boosted(features, TWO, seed=1).fit(Rows(rows.inputs, rows.label, rows.weights, weights))
    plain = Boosted(features, TWO, seed=1).fit(rows)
    assert predicted(weighed, rows).mean() > predicted(plain, rows).mean()
    served = models.serving_outputs({"logits": weighed(rows.inputs)}, TWO, {"class_weights": weights})
    assert abs(float(tf.reduce_mean(served["probability"])) - rows.label.mean()) < 0.05


def test_the_average_is_the_mean_of_the_logits(tmp_path: Path) -> None:
    rows, features = table(TWO, lambda x, c: (x + c > 1).astype(int))
    parts = [Boosted(features, TWO, seed=1).fit(rows), Linear(new_training(rows, features, tmp_path), TWO).fit(rows)]
    expected = np.mean([predicted(part, rows) for part in parts], axis=0)
    np.testing.assert_allclose(predicted(averaged(parts, features), rows), expected, rtol=1e-5, atol=1e-5)


def judged(label: LabelColumn, wanted: np.ndarray, **served: np.ndarray) -> Any:
    return competition.judge(
        label, wanted, {kind: scores[:, np.newaxis] for kind, scores in served.items()}, np.ones(len(wanted)), 1
    )


def test_what_is_clearly_better_is_chosen_with_its_interval() -> None:
    draw = np.random.default_rng(0)
    wanted = draw.integers(0, 2, 500)
    good, bad = wanted + draw.normal(size=500), wanted + 4 * draw.normal(size=500)
    result = judged(TWO, wanted, trees=good, linear=bad)
    assert [candidate.name for candidate in result.candidates] == ["trees", "linear"]
    assert result.candidates[0].value == pytest.approx(roc_auc_score(wanted, good))
    assert (result.winner, result.why) == ("trees", "ahead of all others")
    other = result.candidates[1]
    assert other.ahead == pytest.approx(roc_auc_score(wanted, good) - roc_auc_score(wanted, bad))
    assert 0 < other.ahead_low < other.ahead < other.ahead_high
    assert re.fullmatch(
        r"  linear   0\.\d{4}; the winner is ahead by 0\.\d+ \(0\.\d+ to 0\.\d+\)", result.described()[2]
    )


def test_where_nothing_separates_the_best_from_the_mean_the_mean_is_chosen() -> None:
    draw = np.random.default_rng(0)
    wanted = draw.normal(size=300)
    first = wanted + draw.normal(size=300)
    amount = Amount("y")
    result = judged(amount, wanted, linear=first, average=first + 0.01 * draw.normal(size=300))
    assert result.winner == "average"
    assert result.metric == "RootMeanSquaredError"
    assert not result.candidates[1].is_separated
    level = judged(amount, wanted, linear=first, trees=first + 0.01 * draw.normal(size=300))
    assert "though nothing separates it from" in level.why


def test_ties_and_weights_count_in_the_area_as_in_scikit_learn() -> None:
    draw = np.random.default_rng(1)
    wanted, scores, weights = draw.integers(0, 2, 200), draw.integers(0, 5, 200).astype(float), draw.random(200)
    [found, alone] = competition._areas(scores, wanted, [weights, (wanted == 1).astype(float)])
    assert found == pytest.approx(roc_auc_score(wanted, scores, sample_weight=weights))
    assert alone == 0.5


def test_a_finished_competition_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, features = table(TWO, lambda x, c: (x * (c - 1) > 0).astype(int))
    params = {"model": "best", "models": ["trees", "linear"]}
    training = new_training(rows, features, tmp_path, **params)
    model = competition.train(training, TWO)
    assert model.name in ("trees", "average")
    assert training.result(model).validation_metrics["auc"] > 0.9
    text = (tmp_path / "competition.json").read_text()
    (tmp_path / "competition.json").unlink()
    monkeypatch.setattr(competition, "compete", lambda *_: pytest.fail("repeated"))
    assert competition.train(new_training(rows, features, tmp_path, **params), TWO).name == model.name
    assert (tmp_path / "competition.json").read_text() == text


@pytest.mark.parametrize(("rows", "folds"), [(100, 5), (700, 3), (2000, 1)])
def test_few_rows_are_all_judged(rows: int, folds: int) -> None:
    label = np.arange(rows) % 2
    found = competition._folds(Rows({}, label, np.ones(rows)), False, seed=1)
    assert len(found) == folds
    others = np.concatenate([judged_rows for _, judged_rows in found])
    assert len(set(others.tolist())) == len(others) == (rows if folds > 1 else rows // 4)
    assert all(not set(learned) & set(judged_rows) for learned, judged_rows in found)


def test_load_model_gives_back_what_won(tmp_path: Path) -> None:
    rows, features = table(TWO, lambda x, c: (x + c > 1).astype(int))
    training = new_training(rows, features, tmp_path)
    network = training.build(model="network")
    model = averaged([Boosted(features, TWO, seed=0).fit(rows), network], features)
    training.compile(model)
    assert saving.find_fault(model) is None
    saving.save(model, tf.Module(), {}, str(tmp_path / "saved"))
    loaded = tf_keras.models.load_model(tmp_path / "saved")
    np.testing.assert_allclose(loaded(rows.inputs), model(rows.inputs), rtol=1e-6)


def test_several_labels_are_left_to_the_network(tmp_path: Path) -> None:
    rows, features = table(TWO, lambda x, c: (x > 0).astype(int))
    training = new_training(rows, features, tmp_path, model="best")
    with pytest.raises(TrainingError, match="model is 'best', and 'y' is several labels at once, which the network"):
        competition.train(training, SeveralOf("y", ["a", "b"]))
