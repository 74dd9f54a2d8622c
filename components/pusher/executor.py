"""The Pusher's executor: a blessed model appears in the serving folder whole, under a new version, or not at all."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from tfx.components.util import model_utils
from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils
from tfx.utils import path_utils
from tfx.utils.typing_utils import ArtifactMultiDict as Artifacts

from components import stored
from components.errors import PushError
from components.pusher import manifest, record, versions
from components.tflite.settings import MODEL_FILE


class Executor(base_executor.BaseExecutor):
    """Copies a blessed SavedModel, and with it a blessed TF Lite model, to `<base_directory>/<version>` by a rename."""

    def Do(self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]) -> None:  # noqa: N802
        """Pushes, or notes why not; see `record`.

        Raises:
            PushError: The version cannot be written, or the model is not the one that was tried.
        """
        pushed = artifact_utils.get_single_instance(output_dict["pushed_model"])
        model = artifact_utils.get_single_instance(input_dict["model"])
        origin = manifest.Origin(model_id=model.id, model_uri=stored.place_of(model), run_id=exec_properties["run_id"])
        base = Path(exec_properties["base_directory"])
        reason = _refusal(input_dict)
        withdrawn = None if reason else _withdrawn_version(input_dict, base)
        if withdrawn is not None:
            reason = f"the model was rolled back from: it is version {withdrawn}"
        if reason is None:
            serving = Path(path_utils.serving_model_path(model.uri))
            tflite_model = _blessed_tflite_model(input_dict)
            path, written = versions.push(serving, base, exec_properties["keep_versions"], origin, tflite_model)
            properties = record.pushed(path, written)
            Path(pushed.uri, "pushed.json").write_text(json.dumps(properties, indent=2), encoding="utf-8")
        else:
            logging.warning("Not pushed: %s.", reason)
            properties = record.not_pushed(origin, reason, withdrawn)
        for name, value in properties.items():
            if isinstance(value, int):
                pushed.set_int_custom_property(name, value)
            else:
                pushed.set_string_custom_property(name, value)


def _refusal(input_dict: Artifacts) -> str | None:
    """Which node did not bless the model, or None."""
    if not model_utils.is_model_blessed(artifact_utils.get_single_instance(input_dict["model_blessing"])):
        return record.NOT_BLESSED
    if not model_utils.is_infra_validated(artifact_utils.get_single_instance(input_dict["infra_blessing"])):
        return record.NOT_SERVABLE
    return None


def _withdrawn_version(input_dict: Artifacts, base: Path) -> int | None:
    """The version of this model that a rollback took out of service, if one did.

    Raises:
        PushError: The model is not the one that was tried.
    """
    infra_blessing = artifact_utils.get_single_instance(input_dict["infra_blessing"])
    model = Path(path_utils.serving_model_path(artifact_utils.get_single_uri(input_dict["model"])))
    digest = manifest.digest(manifest.files_of(model))
    tried = infra_blessing.get_string_custom_property(manifest.MODEL_DIGEST_PROPERTY)
    if digest != tried:
        raise PushError(
            f"{model} has the digest {digest}, expected {tried}: it changed after the InfraValidator had tried it.",
            "Train it anew: run with --force.",
        )
    existing = versions.find(base)
    if digest not in versions.withdrawn_models(existing):
        return None
    return max(version.number for version in existing if version.manifest and version.manifest.model_digest == digest)


def _blessed_tflite_model(input_dict: Artifacts) -> Path | None:
    for tflite_model in input_dict.get("tflite_model", []):
        if tflite_model.blessed:
            return Path(tflite_model.uri, MODEL_FILE)
    return None
