"""One run of a recipe's pipeline: its context, folder, processes, nodes and summary."""
