"""Training in processes of its own."""

from __future__ import annotations

from components.trainer.job import Job
from components.trainer.settings import TrainerSettings


def is_needed(settings: TrainerSettings) -> bool:
    """Whether this training needs processes of its own."""
    return False


def train(job: Job) -> None:
    """Trains in processes of its own."""
    raise NotImplementedError
