"""The gRPC port: TensorFlow Serving's services, health and reflection."""
