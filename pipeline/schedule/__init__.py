"""The pipeline run by a scheduler: each node is a command of ours that a task of the scheduler calls."""
