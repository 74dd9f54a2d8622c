"""The weights of embeddings for TensorBoard's projector, each beside the word that it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import tensorflow_transform as tft
import tf_keras

from components.trainer.callback_settings import EmbeddingSettings
from components.trainer.callbacks import TENSORBOARD_FOLDER
from contracts.errors import TrainingError
from contracts.near_names import did_you_mean


class Projector(tf_keras.callbacks.Callback):
    """Writes embeddings at the end of the training, in the projector's own format.

    `projector_config.pbtxt` names a table of tensors and one of words for each layer; see
    tensorboard/plugins/projector/projector_config.proto.

    Args:
        settings: By the name of a layer; its weights are one matrix, [ids, size].
        model: The model, built.
        transform_output: The transform graph, which has the vocabularies.
        run_dir: The folder of the training's files.

    Raises:
        TrainingError: There is no such layer or vocabulary, or the layer's weights are not one matrix.
    """

    def __init__(
        self,
        settings: Mapping[str, EmbeddingSettings],
        model: tf_keras.Model,
        transform_output: tft.TFTransformOutput,
        run_dir: str,
    ) -> None:
        super().__init__()
        self._layers = {name: _layer(model, name) for name in settings}
        self._words = {name: _words(transform_output, name, each) for name, each in settings.items()}
        self._folder = Path(run_dir, TENSORBOARD_FOLDER)

    def on_train_end(self, logs: Mapping[str, float] | None = None) -> None:
        """Keras's hook."""
        # Imported here: few trainings need it.
        from tensorboard.plugins import projector

        self._folder.mkdir(parents=True, exist_ok=True)
        config = projector.ProjectorConfig()
        for name, layer in self._layers.items():
            [weights] = layer.get_weights()
            tensors, labels = f"{name}.tensors.tsv", f"{name}.words.tsv"
            np.savetxt(self._folder / tensors, weights, fmt="%.6g", delimiter="\t")
            words = self._words[name]
            lines = [words.get(number, f"#{number}") for number in range(len(weights))]
            (self._folder / labels).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            config.embeddings.add(tensor_name=name, tensor_path=tensors, metadata_path=labels)
        projector.visualize_embeddings(str(self._folder), config)


def _layer(model: tf_keras.Model, name: str) -> tf_keras.layers.Layer:
    layers = {layer.name: layer for layer in model._flatten_layers(include_self=False) if layer.weights}
    if name not in layers:
        raise TrainingError(
            f"trainer.callbacks.tensorboard.embeddings names the layer {name!r}, which the model does not have. "
            f"{did_you_mean(name, list(layers))}",
            "Name a layer of the model that has weights.",
        )
    shapes = [tuple(weight.shape) for weight in layers[name].weights]
    if len(shapes) != 1 or len(shapes[0]) != 2:
        raise TrainingError(
            f"trainer.callbacks.tensorboard.embeddings names the layer {name!r}, whose weights have the shapes "
            f"{', '.join(map(str, shapes))}, expected one matrix, [ids, size].",
            "Name a layer such as tf_keras.layers.Embedding.",
        )
    return layers[name]


def _words(transform_output: tft.TFTransformOutput, layer: str, settings: EmbeddingSettings) -> dict[int, str]:
    """Words by id."""
    if settings.vocabulary is None:
        return {}
    try:
        words = transform_output.vocabulary_by_name(settings.vocabulary)
    except ValueError as error:
        raise TrainingError(
            f"trainer.callbacks.tensorboard.embeddings.{layer} names the vocabulary {settings.vocabulary!r}, which the "
            "transform graph does not have.",
            "Give tft.vocabulary, or compute_and_apply_vocabulary, that name: vocab_filename.",
        ) from error
    texts = (word.decode("utf-8", "replace").replace("\t", " ") for word in words)
    return dict(enumerate(texts, start=settings.first_id))
