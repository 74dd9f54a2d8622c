"""What a training left."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import tensorflow as tf
from tiny_artifacts import Tiny

from components.trainer.job import Job
from contracts.file_names import HISTORY_FILE


def scores(job: Job, tiny: Tiny) -> Any:
    """The exported model's scores of the eval rows."""
    served = tf.saved_model.load(job.serving_model_dir).signatures["serving_default"]
    [output] = served(examples=tf.constant(tiny.serialized("eval"))).values()
    return output.numpy()


def history(job: Job) -> list[dict[str, float]]:
    """The numbers of each epoch."""
    rows = csv.DictReader(Path(job.model_run_dir, HISTORY_FILE).read_text().splitlines())
    return [{name: float(value) for name, value in row.items()} for row in rows]
