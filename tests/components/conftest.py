"""Fixtures that make TFX artifacts of a few rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
import tensorflow as tf
from tfx.types import Artifact, artifact_utils, standard_artifacts

Row = dict[str, Any]
AnyArtifact = TypeVar("AnyArtifact", bound=Artifact)
MakeArtifact = Callable[..., Any]
MakeExamples = Callable[..., Any]


@pytest.fixture
def artifact(tmp_path: Path) -> MakeArtifact:
    """Makes an artifact with an empty folder of its own: `artifact(Model)`."""

    def make(artifact_class: type[AnyArtifact], **properties: Any) -> AnyArtifact:
        made = artifact_class()
        folder = tmp_path / "artifacts" / f"{artifact_class.TYPE_NAME}-{len(list(tmp_path.glob('artifacts/*')))}"
        folder.mkdir(parents=True)
        made.uri = str(folder)
        for name, value in properties.items():
            setattr(made, name, value)
        return made

    return make


@pytest.fixture
def examples(artifact: MakeArtifact) -> MakeExamples:
    """Makes raw Examples: `examples(train=rows, eval=rows)`; a row's value None is a feature without values."""

    def make(**splits: Sequence[Row]) -> Any:
        made = artifact(standard_artifacts.Examples, split_names=artifact_utils.encode_split_names(list(splits)))
        for split, rows in splits.items():
            write_rows(Path(made.uri, f"Split-{split}", "data_tfrecord-00000-of-00001.gz"), rows)
        return made

    return make


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Writes a gzip TFRecord file of tf.Examples."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tf.io.TFRecordWriter(str(path), "GZIP") as writer:
        for row in rows:
            features = {name: _feature(value) for name, value in row.items()}
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString(deterministic=True))


def _feature(value: Any) -> tf.train.Feature:
    if value is None:
        return tf.train.Feature()
    if isinstance(value, str):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value.encode()]))
    if isinstance(value, float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
