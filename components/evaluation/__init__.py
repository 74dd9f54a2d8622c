"""The Evaluator: TFMA's metrics, slices and thresholds, and a summary that needs no TensorFlow to read."""
