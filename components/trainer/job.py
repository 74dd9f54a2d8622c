"""One training as plain data, so that a process of its own can be given it."""

from __future__ import annotations

import hashlib
from typing import Any

from pydantic import Field
from tfx.components.trainer.fn_args_utils import FnArgs
from tfx.dsl.io import fileio

from components.settings import Settings
from components.trainer.settings import TrainerSettings


class Job(Settings):
    """What to train, on what, and where to put it.

    Attributes:
        train_files: Gzip TFRecords of transformed tf.Examples to learn from.
        eval_files: Those to validate with.
        transform_graph: The folder of the TFTransformOutput.
        model_module: Import path of the recipe's model.py.
        label: The transformed feature to predict.
        settings: The recipe's `trainer` section.
        serving_model_dir: Where the SavedModel goes.
        model_run_dir: Where history and summaries go.
        checkpoint_root: The folder under which an interrupted training is kept; None keeps none.
        raw_eval_files: Gzip TFRecords of raw tf.Examples, for warm-up requests; may be empty.
        class_names: The names of the label's classes in the order of their ids; None where they are not known.
    """

    train_files: list[str]
    eval_files: list[str]
    transform_graph: str
    model_module: str
    label: str
    settings: TrainerSettings
    serving_model_dir: str
    model_run_dir: str
    checkpoint_root: str | None = None
    raw_eval_files: list[str] = Field(default_factory=list)
    class_names: list[str] | None = None

    @classmethod
    def from_fn_args(cls, fn_args: FnArgs) -> Job:
        """The job that TFX's Trainer was given; see `run.run_fn`."""
        config: dict[str, Any] = fn_args.custom_config
        return cls(
            train_files=_files(fn_args.train_files),
            eval_files=_files(fn_args.eval_files),
            transform_graph=fn_args.transform_output,
            model_module=config["model_module"],
            label=config["label"],
            settings=TrainerSettings.model_validate(config["trainer"]),
            serving_model_dir=fn_args.serving_model_dir,
            model_run_dir=fn_args.model_run_dir,
            checkpoint_root=config.get("checkpoint_root"),
            raw_eval_files=config.get("raw_eval_files", []),
            class_names=config.get("class_names"),
        )

    @property
    def checkpoint_dir(self) -> str | None:
        """Where this training is kept while it goes on: the same folder for the same data and settings."""
        if self.checkpoint_root is None:
            return None
        outputs = {"serving_model_dir", "model_run_dir", "checkpoint_root"}
        digest = hashlib.sha256(self.model_dump_json(exclude=outputs).encode()).hexdigest()[:16]
        return f"{self.checkpoint_root}/{digest}"


def _files(patterns: list[str]) -> list[str]:
    return sorted(path for pattern in patterns for path in fileio.glob(pattern))
