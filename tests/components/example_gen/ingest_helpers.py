"""What the tests of the ingest share: running ours and stock TFX's, and reading Examples back."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import components  # noqa: F401  # settles the environment before TensorFlow loads

# The warnings of libraries while they load are about their own versions; afterwards warnings are errors again.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from tfx.components.example_gen.csv_example_gen import executor as stock
    from tfx.types import standard_artifacts

    from components.example_gen.component import Executor, RejectedRows

Splits = dict[str, Counter[bytes]]


def run_executor(
    settings: dict[str, Any],
    folder: Path,
    span: int | None = None,
    labels: Sequence[str] = (),
    beam_pipeline_args: Sequence[str] = (),
) -> tuple[Any, Any]:
    """Runs our executor, with relative paths starting from `folder`, and returns its artifacts."""
    outputs = folder / "outputs"
    examples, rejected = standard_artifacts.Examples(), RejectedRows()
    for artifact, name in ((examples, "examples"), (rejected, "rejected")):
        artifact.uri = str(outputs / f"{name}-{len(list(outputs.glob('*')))}")
        Path(artifact.uri).mkdir(parents=True)
    properties = {
        "settings": json.dumps(settings),
        "base_dir": str(folder),
        "labels": json.dumps(labels),
        "span": span,
        "fingerprint": "",
    }
    Executor(Executor.Context(beam_pipeline_args=list(beam_pipeline_args))).Do(
        {}, {"examples": [examples], "rejected_rows": [rejected]}, properties
    )
    return examples, rejected


def read_splits(examples: Any) -> Splits:
    """Returns each split's Examples in their deterministic form, with the number of times that each occurs."""
    import tensorflow as tf

    splits = {}
    for split in json.loads(examples.split_names):
        files = sorted(map(str, Path(examples.uri, f"Split-{split}").iterdir()))
        records = tf.data.TFRecordDataset(files, "GZIP").as_numpy_iterator()
        splits[split] = Counter(canonical(record) for record in records)
    return splits


def canonical(record: bytes) -> bytes:
    """Returns a serialized Example with its features in the order of their names."""
    import tensorflow as tf

    return tf.train.Example.FromString(record).SerializeToString(deterministic=True)


def rows(examples: Any) -> list[dict[str, list[Any]]]:
    """Returns all Examples of all splits as plain values, sorted; a feature without a list is absent."""
    return sorted((row for rows_of_split in rows_by_split(examples).values() for row in rows_of_split), key=repr)


def rows_by_split(examples: Any) -> dict[str, list[dict[str, list[Any]]]]:
    """Returns each split's Examples as plain values, sorted; a feature without a list is absent."""
    import tensorflow as tf

    splits: dict[str, list[dict[str, list[Any]]]] = {}
    for split, counter in read_splits(examples).items():
        rows = []
        for record in counter.elements():
            features = tf.train.Example.FromString(record).features.feature
            kinds = {name: feature.WhichOneof("kind") for name, feature in features.items()}
            rows.append({n: list(getattr(features[n], kind).value) for n, kind in sorted(kinds.items()) if kind})
        splits[split] = sorted(rows, key=repr)
    return splits


def image_rows(examples: Any) -> dict[str, dict[str, tuple[int, str, bytes]]]:
    """Returns split -> name -> (label, class, encoded image) of Examples that hold images."""
    return {
        split: {row["name"][0].decode(): (row["label"][0], row["class"][0].decode(), row["image"][0]) for row in rows}
        for split, rows in rows_by_split(examples).items()
    }


def pixels(encoded: bytes) -> list[Any]:
    """Returns the (height, width, channels) values of an image, decoded by TensorFlow."""
    import tensorflow as tf

    return tf.io.decode_image(encoded).numpy().tolist()


def rejected_rows(rejected: Any) -> list[dict[str, Any]]:
    """Returns the lines of a RejectedRows artifact."""
    files = sorted(Path(rejected.uri).iterdir())
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def stock_splits(folder: Path, outputs: Path) -> Splits:
    """Runs TFX's CsvExampleGen over the CSV files of a folder, in memory, and returns its splits."""
    from tfx.components.example_gen import utils
    from tfx.utils import proto_utils

    examples = standard_artifacts.Examples()
    examples.uri = str(outputs)
    input_config = utils.make_default_input_config()
    properties = {
        "input_base": str(folder),
        "input_config": proto_utils.proto_to_json(input_config),
        "output_config": proto_utils.proto_to_json(utils.make_default_output_config(input_config)),
        "output_data_format": 6,
        "output_file_format": 5,
    }
    stock.Executor().Do({}, {"examples": [examples]}, properties)
    return read_splits(examples)
