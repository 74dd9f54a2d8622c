"""The model server, its clients, and deployments of the real TensorFlow Serving."""
