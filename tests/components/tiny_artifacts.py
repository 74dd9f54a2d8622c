"""Makes TFX artifacts of a few rows, and runs executors on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
import tiny_recipe
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import artifact_utils, standard_artifacts

from components.artifacts import split_files
from components.trainer.job import Job

Row = dict[str, Any]
Artifacts = dict[str, list[Any]]


def execute(executor: type[BaseBeamExecutor], inputs: Artifacts, outputs: Artifacts, properties: Row) -> None:
    """Runs an executor that needs a folder for temporary files beside its first output."""
    place = next(iter(outputs.values()))[0].uri
    context = BaseBeamExecutor.Context(beam_pipeline_args=[], tmp_dir=f"{place}-temporary", unique_id="1")
    executor(context).Do(inputs, outputs, properties)


def new_artifact(folder: Path, artifact_class: Any, **properties: Any) -> Any:
    """Makes an artifact with its own empty folder under `folder`."""
    artifact = artifact_class()
    place = folder / f"{artifact_class.TYPE_NAME}-{len(list(folder.glob('*')))}"
    place.mkdir(parents=True)
    artifact.uri = str(place)
    for name, value in properties.items():
        setattr(artifact, name, value)
    return artifact


def new_examples(folder: Path, splits: dict[str, Sequence[Row]]) -> Any:
    """Makes raw Examples, one file per split; the value None is a feature of no kind, [] is text without values."""
    names = artifact_utils.encode_split_names(list(splits))
    examples = new_artifact(folder, standard_artifacts.Examples, split_names=names)
    for split, rows in splits.items():
        path = Path(examples.uri, f"Split-{split}", "data_tfrecord-00000-of-00001.gz")
        path.parent.mkdir()
        with tf.io.TFRecordWriter(str(path), "GZIP") as writer:
            for row in rows:
                writer.write(serialized(row))
    return examples


def serialized(row: Row) -> bytes:
    """A row as a tf.Example."""
    features = {name: _feature(value) for name, value in row.items()}
    example = tf.train.Example(features=tf.train.Features(feature=features))
    return bytes(example.SerializeToString(deterministic=True))


def _feature(value: Any) -> tf.train.Feature:
    if value is None:
        return tf.train.Feature()
    if value == []:
        return tf.train.Feature(bytes_list=tf.train.BytesList())
    values = value if isinstance(value, list) else [value]
    if isinstance(values[0], str):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[text.encode() for text in values]))
    if isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


@dataclass(frozen=True)
class Tiny:
    """The tiny recipe's data, raw and transformed by our Transform.

    Attributes:
        inputs: `examples` and `schema`, the inputs of a Transform.
        transformed: The Examples artifact that our Transform wrote.
        graph: The folder of the transform graph.
    """

    inputs: dict[str, list[Any]]
    transformed: Any
    graph: str

    @property
    def output(self) -> tft.TFTransformOutput:
        """The transform graph."""
        return tft.TFTransformOutput(self.graph)

    def files(self, split: str) -> list[str]:
        """The transformed files of a split."""
        return split_files(self.transformed, split)

    def job(self, folder: Path, module: str = "tiny_recipe", label: Any = "big", **settings: Any) -> Job:
        """A training of a recipe on these rows, in float32 and batches of 30.

        Args:
            folder: For its outputs, which is made; the state of trainings is kept beside it, in `checkpoints`.
            module: The recipe's model.py.
            label: As in recipe.yaml.
            **settings: The section `trainer`.
        """
        folder.mkdir(parents=True, exist_ok=True)
        return Job(
            train_files=self.files("train"),
            eval_files=self.files("eval"),
            transform_graph=self.graph,
            model_module=module,
            label=label,
            settings={"batch_size": 30, "precision": "float32", **settings},
            serving_model_dir=str(folder / "serving"),
            model_run_dir=str(folder),
            checkpoint_root=str(folder.parent / "checkpoints"),
        )

    def serialized(self, split: str, without: str | None = None) -> list[bytes]:
        """The raw rows of a split as serialized tf.Examples, optionally without one column."""
        rows = {"train": tiny_recipe.TRAIN, "eval": tiny_recipe.EVAL}[split]
        return [serialized({name: value for name, value in row.items() if name != without}) for row in rows]

    def tensors(self, transformed: Any, split: str) -> dict[str, Any]:
        """A split of transformed Examples as numpy arrays, in the order of `id`."""
        records = tf.data.TFRecordDataset(split_files(transformed, split), compression_type="GZIP")
        spec = self.output.transformed_feature_spec()
        parsed = tf.io.parse_example(list(records.as_numpy_iterator()), spec)
        order = tf.argsort(parsed["id"])
        return {name: tf.gather(tensor, order).numpy() for name, tensor in parsed.items()}
