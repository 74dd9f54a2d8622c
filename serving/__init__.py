"""The model server, its client, and deployments of the real TensorFlow Serving."""
