"""One run of a recipe's pipeline: what is handed down in it, its folder, its processes, its nodes, its summary."""
