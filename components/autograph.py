"""Keeps AutoGraph away from libraries that do not need it.

AutoGraph rewrites the source of every function that a traced function calls, except in modules on TensorFlow's own
list. That list has `keras` but neither `tf_keras`, which is the same code under another name, nor TensorFlow Transform.
Rewriting them takes longer than training a small model and changes nothing: both are written for graphs. User code is
still converted.
"""

from __future__ import annotations

from tensorflow.python.autograph.core import config

LIBRARIES = ("tf_keras", "tensorflow_transform", "tfx_bsl")


def bypass_libraries() -> None:
    """Adds the libraries to TensorFlow's list in this process; calling it again changes nothing."""
    present = {str(rule) for rule in config.CONVERSION_RULES}
    rules = [config.DoNotConvert(name) for name in LIBRARIES]
    config.CONVERSION_RULES = (*(rule for rule in rules if str(rule) not in present), *config.CONVERSION_RULES)
