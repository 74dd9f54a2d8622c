"""What the files of artifacts hold, as plain typed records, read without TensorFlow."""
