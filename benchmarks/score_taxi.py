"""Scores two exported taxi models on the same rows: `python -m benchmarks.score_taxi STOCK OURS RESULT`.

STOCK and OURS are the folders in which the benchmark ran the two pipelines; RESULT is the JSON file to write. Each
model gets the raw Examples that its own pipeline kept for evaluation. These must be the same rows, or the benchmark
stops, since a model must not be scored on rows that it was trained on.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import tensorflow as tf
from sklearn.metrics import roc_auc_score

from pipeline.plan import recipe

STOCK_LABEL = "tips_xf"


def main(stock: Path, ours: Path, result: Path) -> None:
    """Writes both AUCs, with our label and with stock's, and the numbers of rows and labels behind them."""
    stock_pipeline, our_pipeline = stock / "pipelines", ours / "pipelines" / "taxi"
    rows = eval_rows(our_pipeline / "ExampleGen")
    if rows != eval_rows(stock_pipeline / "CsvExampleGen"):
        raise SystemExit(
            "The two pipelines did not keep the same rows for evaluation, so their models cannot be compared."
        )
    stock_model, our_model = load(stock_pipeline), load(our_pipeline)
    examples = tf.constant(rows)
    label = recipe.load("taxi").settings.judged_label
    our_labels = values(our_model.signatures["transform_label"](examples)[label])
    stock_labels = values(stock_model.signatures["transform_features"](examples)[STOCK_LABEL])
    scores = {
        name: values(next(iter(model.signatures["serving_default"](examples).values())))
        for name, model in {"stock": stock_model, "ours": our_model}.items()
    }
    summary = {
        "rows": len(rows),
        "labels_that_differ": int((our_labels != stock_labels).sum()),
        "auc": {name: float(roc_auc_score(our_labels, scored)) for name, scored in scores.items()},
        "auc_by_stock_label": {name: float(roc_auc_score(stock_labels, scored)) for name, scored in scores.items()},
    }
    result.write_text(json.dumps(summary), encoding="utf-8")


def eval_rows(example_gen: Path) -> list[bytes]:
    """The Examples of an ExampleGen's `eval` split, serialized in one canonical way and sorted."""
    files = [str(path) for path in example_gen.glob("examples/*/Split-eval/*")]
    records = tf.data.TFRecordDataset(files, compression_type="GZIP").as_numpy_iterator()
    # Stock writes the features of a row in an order that differs between processes.
    return sorted(tf.train.Example.FromString(record).SerializeToString(deterministic=True) for record in records)


def load(pipeline_root: Path) -> Any:
    """The SavedModel that the Trainer exported, whether it was pushed or not."""
    (path,) = pipeline_root.glob("Trainer/model/*/Format-Serving")
    return tf.saved_model.load(str(path))


def values(tensor: Any) -> Any:
    """A tensor with one value per row, as an array of shape [rows]."""
    return tensor.numpy().reshape(-1)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
