"""What several rooms share, without TensorFlow: formats that one writes and another reads, errors, settings."""
