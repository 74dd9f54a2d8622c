"""SavedModel export: the model with the transform graph inside, so that training and serving cannot differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
import tf_keras

SERVING_ENVIRONMENT = "SERVING"
"""The schema environment of requests to the model; label columns carry `not_in_environment: "SERVING"`."""

EXAMPLES = [tf.TensorSpec([None], tf.string, name="examples")]


def save(model: tf_keras.Model, transform_output: tft.TFTransformOutput, label: str, path: str) -> None:
    """Writes the SavedModel of a trained model to `path`.

    Only variables, vocabularies and the signatures are saved. Saving the Keras model itself as well would trace each of
    its layers again, and take longer to write and to load.
    """
    transform = transform_output.transform_features_layer()
    signatures = _signatures(model, transform, transform_output, label)
    served = tf.Module()
    served.model_variables = model.variables
    served.transform = transform
    tf.saved_model.save(served, path, signatures=signatures)


def _signatures(
    model: tf_keras.Model, transform: tf_keras.layers.Layer, transform_output: tft.TFTransformOutput, label: str
) -> dict[str, Callable[..., Mapping[str, tf.Tensor]]]:
    """The signatures by name; all take serialized tf.Examples of raw features, string [batch]."""
    raw_spec, serving_spec = transform_output.raw_feature_spec(), _serving_spec(transform_output)

    @tf.function(input_signature=EXAMPLES)
    def serving_default(examples: tf.Tensor) -> Mapping[str, tf.Tensor]:
        """The model's output, float32 [batch, ...]; the label's raw columns may be missing."""
        transformed = transform(tf.io.parse_example(examples, serving_spec))
        scores = model({tensor.name: transformed[tensor.name] for tensor in model.inputs}, training=False)
        return {model.output_names[0]: scores}

    @tf.function(input_signature=EXAMPLES)
    def transform_features(examples: tf.Tensor) -> Mapping[str, tf.Tensor]:
        """Every transformed feature, the label included."""
        return dict(transform(tf.io.parse_example(examples, raw_spec)))

    @tf.function(input_signature=EXAMPLES)
    def transform_label(examples: tf.Tensor) -> Mapping[str, tf.Tensor]:
        """The label alone, as the Evaluator needs it."""
        return {label: transform_features(examples)[label]}

    functions = (serving_default, transform_features, transform_label)
    return {function.__name__: function for function in functions}


def _serving_spec(transform_output: tft.TFTransformOutput) -> dict[str, Any]:
    """The raw features that a serving request may hold: all but those that the schema keeps out of SERVING."""
    kept_out = {
        feature.name
        for feature in transform_output.raw_metadata.schema.feature
        if SERVING_ENVIRONMENT in feature.not_in_environment
    }
    return {name: spec for name, spec in transform_output.raw_feature_spec().items() if name not in kept_out}
