"""The process that `pipeline.run.warm` forks from: imports all that a pipeline's node needs, and does nothing else."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from pipeline.run.folder import redirect_output
from pipeline.run.lean_imports import lean

with redirect_output(Path(os.devnull)), warnings.catch_warnings(), lean():
    # Deprecation warnings of these libraries are of no use in a rehearsal.
    warnings.simplefilter("ignore")
    from pipeline.commands import kubeflow, node
    from pipeline.commands.kubeflow import inside
    from pipeline.plan import dag
    from pipeline.run import tfx_adapter
    from pipeline.schedule.kubeflow import task

__all__ = ["dag", "inside", "kubeflow", "node", "task", "tfx_adapter"]
