"""The REST port: HTTP, what its requests mean, and TensorFlow Serving's JSON."""
