"""One training as plain data, which can be passed to another process. Needs neither TensorFlow nor TFX."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from components.trainer.settings import TrainerSettings
from contracts.labels import Label
from contracts.settings import Settings


class Job(Settings):
    """What to train, on what, and where to put it.

    Attributes:
        train_files: Gzip TFRecords of transformed tf.Examples to learn from.
        eval_files: The same to validate with.
        transform_graph: The folder of the TFTransformOutput.
        model_module: Import path of the recipe's model.py.
        label: The transformed feature to predict, or several by the model's outputs.
        settings: The recipe's `trainer` section.
        serving_model_dir: The folder for the SavedModel.
        model_run_dir: The folder for history and summaries.
        checkpoint_root: The folder under which the state of interrupted trainings is kept; None keeps none.
        raw_eval_files: Gzip TFRecords of raw tf.Examples, for warm-up requests; may be empty.
        class_names: The names of the label's classes in the order of their ids, if there is a single label; None if
            they are not known.
    """

    train_files: list[str]
    eval_files: list[str]
    transform_graph: str
    model_module: str
    label: Label
    settings: TrainerSettings
    serving_model_dir: str
    model_run_dir: str
    checkpoint_root: str | None = None
    raw_eval_files: list[str] = Field(default_factory=list)
    class_names: list[str] | None = None

    @property
    def checkpoint_dir(self) -> str | None:
        """The folder for this training's state until it is done, the same for the same data and settings."""
        if self.checkpoint_root is None:
            return None
        outputs = {"serving_model_dir", "model_run_dir", "checkpoint_root"}
        digest = hashlib.sha256(self.model_dump_json(exclude=outputs).encode()).hexdigest()[:16]
        return f"{self.checkpoint_root}/{digest}"


@dataclass(frozen=True)
class Result:
    """How a training went.

    Attributes:
        validation_metrics: Those of the exported model by name, without `val_`; None stands for a non-finite value.
        facts: For the model's card: epochs, steps, replicas, and the strategy in words.
    """

    validation_metrics: dict[str, float | None]
    facts: dict[str, Any]


class Task(Settings):
    """The task of one of several processes that train together.

    Attributes:
        job: The training.
        parent: The id of the process that watches this one; None if that is on another machine.
        failure_path: The file that an error is written to.
    """

    job: Job
    parent: int | None
    failure_path: str


class Failure(Settings):
    """The exception that ended a process, as plain data.

    Attributes:
        kind: The class's name in `contracts.errors`; None for any other exception.
        what: The message; for a MillraceError, only the fault.
        fix: What the user can do about it.
        lost_peer: Whether it only says that another process is gone.
    """

    kind: str | None
    what: str
    fix: str | None = None
    lost_peer: bool = False
