"""The REST port: HTTP, the API, and TensorFlow Serving's JSON."""
