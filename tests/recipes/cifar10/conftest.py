"""Loads the heavy libraries once, before any test in this folder, and ignores their own import-time warnings."""

import warnings

with warnings.catch_warnings():
    # httplib2 (pyparsing), google.api_core (Python 3.10) and google.auth (grpcio) warn when imported; not ours to fix.
    warnings.simplefilter("ignore")
    import components  # isort: skip  # sets TF_USE_LEGACY_KERAS before TensorFlow loads
    import tensorflow_data_validation
    import tensorflow_transform.beam

__all__ = ["components", "tensorflow_data_validation", "tensorflow_transform"]
