"""Pusher: a blessed model appears in the serving folder whole, under a new version, or not at all."""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
import uuid
from pathlib import Path
from typing import Any

from tfx.components.util import model_utils
from tfx.dsl.components.base import base_component, base_executor, executor_spec
from tfx.types import (
    BaseChannel,
    Channel,
    artifact_utils,
    component_spec,
    standard_artifacts,
    system_executions,
)
from tfx.utils import path_utils
from tfx.utils.typing_utils import ArtifactMultiDict as Artifacts

from components.tflite.artifacts import TFLiteModel
from components.tflite.settings import MODEL_FILE

STAGING_PREFIX = ".incoming-"
"""Folders of this name are pushes under way; TF Serving takes only folders with a number for a name."""


class PusherSpec(component_spec.ComponentSpec):
    """Inputs, outputs and parameters of the Pusher."""

    PARAMETERS = {  # noqa: RUF012 (TFX reads a plain dict)
        "base_directory": component_spec.ExecutionParameter(type=str),
        "keep_versions": component_spec.ExecutionParameter(type=int),
    }
    INPUTS = {  # noqa: RUF012
        "model": component_spec.ChannelParameter(type=standard_artifacts.Model),
        "model_blessing": component_spec.ChannelParameter(type=standard_artifacts.ModelBlessing),
        "tflite_model": component_spec.ChannelParameter(type=TFLiteModel, optional=True),
    }
    OUTPUTS = {"pushed_model": component_spec.ChannelParameter(type=standard_artifacts.PushedModel)}  # noqa: RUF012
    TYPE_ANNOTATION = system_executions.Deploy


class Executor(base_executor.BaseExecutor):
    """Copies a blessed SavedModel, and with it a blessed TF Lite model, to `<base_directory>/<version>` by a rename."""

    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:  # noqa: N802
        """Pushes, or notes that the model was not blessed; TFX's own property names say which."""
        pushed = artifact_utils.get_single_instance(output_dict["pushed_model"])
        blessing = artifact_utils.get_single_instance(input_dict["model_blessing"])
        if not model_utils.is_model_blessed(blessing):
            logging.warning("Not pushed: the Evaluator did not bless the model.")
            pushed.set_int_custom_property("pushed", 0)
            return
        model = artifact_utils.get_single_instance(input_dict["model"])
        base = Path(exec_properties["base_directory"])
        serving = Path(path_utils.serving_model_path(model.uri))
        target = push(serving, base, exec_properties["keep_versions"], _blessed_tflite_model(input_dict))
        pushed.set_int_custom_property("pushed", 1)
        pushed.set_string_custom_property("pushed_destination", str(target))
        pushed.set_string_custom_property("pushed_version", target.name)
        Path(pushed.uri, "pushed.json").write_text(json.dumps({"destination": str(target)}), encoding="utf-8")


class Pusher(base_component.BaseComponent):
    """Pushes a blessed model to a folder that TF Serving watches.

    Args:
        model: The SavedModel.
        model_blessing: The Evaluator's verdict.
        base_directory: The folder of the versions.
        keep_versions: How many stay.
        tflite_model: Pushed beside the SavedModel where it is blessed itself; None where there is none.
    """

    SPEC_CLASS = PusherSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(
        self,
        model: BaseChannel,
        model_blessing: BaseChannel,
        base_directory: str,
        keep_versions: int,
        tflite_model: BaseChannel | None = None,
    ) -> None:
        tflite = {} if tflite_model is None else {"tflite_model": tflite_model}
        super().__init__(
            PusherSpec(
                model=model,
                model_blessing=model_blessing,
                base_directory=base_directory,
                keep_versions=keep_versions,
                pushed_model=Channel(type=standard_artifacts.PushedModel),
                **tflite,
            )
        )


def _blessed_tflite_model(input_dict: Artifacts) -> Path | None:
    for tflite_model in input_dict.get("tflite_model", []):
        if tflite_model.blessed:
            return Path(tflite_model.uri, MODEL_FILE)
    return None


def versions(base: Path) -> list[int]:
    """The versions in a serving folder, oldest first."""
    if not base.is_dir():
        return []
    return sorted(int(entry.name) for entry in base.iterdir() if entry.is_dir() and entry.name.isdigit())


def push(model: Path, base: Path, keep_versions: int, tflite_model: Path | None = None) -> Path:
    """Copies `model` to a new version under `base`, and removes all but the newest `keep_versions`.

    A TF Lite model goes with it as `model.tflite`, which TF Serving takes when run with `--prefer_tflite_model`.

    The copy is written beside the versions and renamed, so that a server which polls `base` never sees half a model.

    Returns:
      The new version's folder. Versions are seconds since 1970, as TF Serving's users expect, and always increase.
    """
    base.mkdir(parents=True, exist_ok=True)
    for abandoned in base.glob(f"{STAGING_PREFIX}*"):
        shutil.rmtree(abandoned)
    staging = base / f"{STAGING_PREFIX}{uuid.uuid4().hex}"
    shutil.copytree(model, staging)
    if tflite_model is not None:
        shutil.copyfile(tflite_model, staging / MODEL_FILE)
    existing = versions(base)
    version = max(int(time.time()), existing[-1] + 1 if existing else 0)
    target = base / str(version)
    os.replace(staging, target)
    for old in versions(base)[:-keep_versions]:
        shutil.rmtree(base / str(old))
    return target
