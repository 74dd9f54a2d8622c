"""TFX's entry point to training: here, or in processes of its own."""

from __future__ import annotations

from typing import Any

from tfx.components.trainer.fn_args_utils import FnArgs
from tfx.dsl.io import fileio

from components.trainer import cluster
from components.trainer.job import Job
from components.trainer.processes import SURROUNDINGS, Surroundings
from components.trainer.settings import TrainerSettings
from components.trainer.train import train


def run_fn(fn_args: FnArgs) -> None:
    """Trains with the arguments of TFX's Trainer.

    Args:
        fn_args: TFX's training arguments; `custom_config` holds `model_module` (import path of the recipe's model.py),
            `label` (the transformed feature to predict, or several by output), `trainer` (a TrainerSettings as a dict),
            and optionally `checkpoint_root` (the folder for the state of interrupted trainings), `raw_eval_files` (raw
            rows for warm-up requests), `class_names` (the label's classes by id) and `surroundings` (see Surroundings).

    Raises:
        TrainingError: Settings, data, model and devices are incompatible, or training failed.
    """
    job = _job(fn_args)
    surroundings: Surroundings = fn_args.custom_config.get(SURROUNDINGS) or Surroundings()
    if cluster.is_needed(job.settings):
        cluster.train(job, surroundings)
    else:
        train(job, surroundings.progress)


def _job(fn_args: FnArgs) -> Job:
    config: dict[str, Any] = fn_args.custom_config
    return Job(
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
        # They belong to the label in the data; if there are several labels, it is not known which one that is.
        class_names=config.get("class_names") if isinstance(config["label"], str) else None,
    )


def _files(patterns: list[str]) -> list[str]:
    return sorted(path for pattern in patterns for path in fileio.glob(pattern))
