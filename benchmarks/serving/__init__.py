"""What the model server is held to."""
