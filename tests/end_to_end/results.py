"""Reads the results of runs of the taxi recipe, to compare them."""

from __future__ import annotations

import gzip
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
"""Outputs whose files have the same bytes in equal runs. Transform writes the features of an example in any order, and
for the model and its evaluation the numbers are compared instead."""


def opened(environment: Path) -> Queries:
    """Opens the metadata store of an environment file, which must not be empty."""
    store = Workplace.load(str(environment)).open_store()
    assert store is not None
    return store


def digests(store: Store, run: str) -> dict[str, dict[str, str]]:
    """Node -> the digest of each file of the outputs that are compared."""
    records = store.node_runs("taxi", run)
    by_node = {}
    for node, output in SAME.items():
        folder = Path(store.outputs(records[node].id)[output][0].uri)
        by_node[node] = digests_of(folder)
        assert by_node[node]
    return by_node


def digests_of(folder: Path) -> dict[str, str]:
    """The digest of each file in a folder; for a compressed file, of its content."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): sha256(_content(path)).hexdigest() for path in files}


def _content(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def transformed(store: Store, run: str) -> list[dict[str, str]]:
    """The transformed rows of the eval split, each as its features in text form."""
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
    rows = json.loads((folder / "summary.json").read_text())["metrics"]
    return {metric["name"]: metric["value"] for metric in rows}
