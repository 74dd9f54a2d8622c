"""What runs of the taxi recipe made, so that it can be compared."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

from metadata.queries import Queries
from metadata.store import Store
from pipeline.run.workplace import Workplace

SAME = {
    "ExampleGen": "examples",
    "SchemaGen": "schema",
    "ExampleValidator": "anomalies",
}
"""Outputs whose every file has the same bytes in equal runs. Transform writes the features of an example in any order,
and of the model and its evaluation the numbers are compared."""


def opened(environment: Path) -> Queries:
    """The metadata store of an environment's file, in which there is something."""
    store = Workplace.load(str(environment)).open_store()
    assert store is not None
    return store


def digests(store: Store, run: str) -> dict[str, dict[str, str]]:
    """By node, the digest of each file of the outputs that are compared."""
    records = store.node_runs("taxi", run)
    made = {}
    for node, output in SAME.items():
        folder = Path(store.outputs(records[node].id)[output][0].uri)
        made[node] = digests_of(folder)
        assert made[node]
    return made


def digests_of(folder: Path) -> dict[str, str]:
    """The digest of each file of a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in files}


def transformed(store: Store, run: str) -> list[dict[str, str]]:
    """The transformed rows of the eval split, each as its features in text."""
    import tensorflow as tf

    transform = store.node_runs("taxi", run)["Transform"]
    folder = Path(store.outputs(transform.id)["transformed_examples"][0].uri) / "Split-eval"
    records = tf.data.TFRecordDataset([str(path) for path in folder.iterdir()], compression_type="GZIP")
    rows = [tf.train.Example.FromString(record.numpy()).features.feature for record in records]
    return [{name: str(feature) for name, feature in row.items()} for row in rows]


def metrics(store: Store, run: str) -> dict[str, float]:
    """The metrics of the run's model."""
    evaluator = store.node_runs("taxi", run)["Evaluator"]
    folder = Path(store.outputs(evaluator.id)["evaluation"][0].uri)
    found = json.loads((folder / "summary.json").read_text())["metrics"]
    return {metric["name"]: metric["value"] for metric in found}
