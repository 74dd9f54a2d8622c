"""What each node does that stock TFX does not do, or does badly.

Importing this package sets the environment variables of every process that may load TensorFlow, before it does so: the
pipeline, Beam's workers, training workers and the tests all import it first.
"""

import os

# With Keras 3 on TF 2.16, multi-worker strategies fail in fit (docs/adr/0002-tf-keras.md).
os.environ["TF_USE_LEGACY_KERAS"] = "1"
# TensorFlow logs the absence of CUDA as errors; real failures reach Python as exceptions.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Several processes may share a GPU, and Beam uses it before training does in the same process.
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
