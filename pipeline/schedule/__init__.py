"""Runs the pipeline on a scheduler: each node is a command of ours that a task of the scheduler calls."""
