"""What `pipeline.warm` forks from: imports all that a node of a pipeline needs, and does nothing with it."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from pipeline import worker
from pipeline.lean_imports import lean

with worker.output_to(Path(os.devnull)), warnings.catch_warnings(), lean():
    # Their new versions' announcements are no news to who rehearses.
    warnings.simplefilter("ignore")
    from pipeline import dag, runner
    from pipeline.commands import kubeflow, node
    from pipeline.kubeflow import ending, task

__all__ = ["dag", "ending", "kubeflow", "node", "runner", "task"]
