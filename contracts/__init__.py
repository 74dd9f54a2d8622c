"""What the rooms share, without TensorFlow: the file formats one writes and another reads, errors, base settings."""
