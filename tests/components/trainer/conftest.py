"""Fixtures of the Trainer's tests."""

from __future__ import annotations

import pytest
import tf_keras
import tiny_recipe
from tiny_artifacts import Tiny

from components.trainer import features


@pytest.fixture(scope="module")
def model(tiny: Tiny) -> tf_keras.Model:
    """The tiny recipe's model with its first weights."""
    tf_keras.utils.set_random_seed(3)
    return tiny_recipe.build_model(features.from_schema(tiny.output.transformed_metadata.schema, "big"), {})
