"""SavedModel export: the model with the transform graph inside, so that training and serving cannot differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
import tf_keras

SERVING_ENVIRONMENT = "SERVING"
"""The schema environment of requests to the model; label columns carry `not_in_environment: "SERVING"`."""

SIGNATURES = ("serving_default", "transform_features", "transform_label")
EXAMPLES = [tf.TensorSpec([None], tf.string, name="examples")]


class ServedModel(tf.Module):
    """What is saved: variables, vocabularies and signatures, without Keras's call functions of every layer.

    All signatures take serialized tf.Examples of raw features, string [batch]:

        serving_default: to the model's output, float32 [batch, ...]. The label's raw columns may be missing.
        transform_features: to every transformed feature, the label included.
        transform_label: to the label alone, as the Evaluator needs it.
    """

    def __init__(self, model: tf_keras.Model, transform_output: tft.TFTransformOutput, label: str) -> None:
        super().__init__()
        self._model = model
        self._label = label
        self._transform = transform_output.transform_features_layer()
        self._raw_spec = transform_output.raw_feature_spec()
        self._serving_spec = _serving_spec(transform_output)

    @tf.function(input_signature=EXAMPLES)
    def serving_default(self, examples: tf.Tensor) -> Mapping[str, tf.Tensor]:
        """Scores serialized tf.Examples of raw features."""
        transformed = self._transform(tf.io.parse_example(examples, self._serving_spec))
        scores = self._model({tensor.name: transformed[tensor.name] for tensor in self._model.inputs}, training=False)
        return {self._model.output_names[0]: scores}

    @tf.function(input_signature=EXAMPLES)
    def transform_features(self, examples: tf.Tensor) -> Mapping[str, tf.Tensor]:
        """Transforms serialized tf.Examples of raw features."""
        return dict(self._transform(tf.io.parse_example(examples, self._raw_spec)))

    @tf.function(input_signature=EXAMPLES)
    def transform_label(self, examples: tf.Tensor) -> Mapping[str, tf.Tensor]:
        """The label of serialized tf.Examples of raw features."""
        return {self._label: self.transform_features(examples)[self._label]}


def save(model: tf_keras.Model, transform_output: tft.TFTransformOutput, label: str, path: str) -> None:
    """Writes the SavedModel of a trained model to `path`."""
    served = ServedModel(model, transform_output, label)
    signatures = {name: getattr(served, name) for name in SIGNATURES}
    tf.saved_model.save(served, path, signatures=signatures)


def _serving_spec(transform_output: tft.TFTransformOutput) -> dict[str, Any]:
    """The raw features that a serving request may hold: all but those that the schema keeps out of SERVING."""
    kept_out = {
        feature.name
        for feature in transform_output.raw_metadata.schema.feature
        if SERVING_ENVIRONMENT in feature.not_in_environment
    }
    return {name: spec for name, spec in transform_output.raw_feature_spec().items() if name not in kept_out}
