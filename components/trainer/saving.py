"""The SavedModel's files: signatures for servers, and a model that `tf_keras.models.load_model` gives back.

Keras's objects have their configuration saved and not the traces of each layer's functions (`save_traces=False`): these
would take longer to trace than the signatures and make the files several times larger, and are only needed for a class
that whoever loads the model does not have.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tf_keras
from tf_keras.src.saving.legacy.saved_model import json_utils
from tf_keras.src.saving.legacy.saved_model.layer_serialization import get_serialized


def save(model: tf_keras.Model, resources: Any, functions: Mapping[str, Any], path: str) -> None:
    """Writes a SavedModel with these signatures; it can be loaded as a Keras model unless a layer's config forbids it.

    Args:
        model: Its variables are saved, and its layers' configurations, but neither its optimizer nor its loss.
        resources: What else the signatures use, such as the transform graph's vocabularies.
        functions: Concrete functions by signature name.
        path: The folder.
    """
    holder = tf.Module()
    holder.resources = resources
    if fault := find_fault(model):
        logging.warning("tf_keras.models.load_model will not load this model: %s", fault)
        holder.model_variables = model.variables
        tf.saved_model.save(holder, path, signatures=dict(functions))
        return
    # Saved with the model, since Keras saves what its attributes refer to.
    model.serving_resources = holder
    model.save(path, save_format="tf", include_optimizer=False, save_traces=False, signatures=dict(functions))


def find_fault(model: tf_keras.Model) -> str | None:
    """Why the configuration of one of the model's layers or metrics cannot be saved; None if all can."""
    # Layers first: the config of a model holds those of its layers.
    for layer in (*model._flatten_layers(include_self=False), *model.metrics, model):
        try:
            json_utils.Encoder().encode(get_serialized(layer))
        # Whatever a get_config in model.py raises: the model is trained by now, and can be served without it.
        except Exception as error:
            return f"{type(layer).__name__}.get_config of {layer.name!r}: {type(error).__name__}: {error}"
    return None
