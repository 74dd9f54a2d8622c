"""The Pusher, at the end of the pipeline: a blessed model appears in the serving folder, whole, as a new version."""

import json
import logging
from pathlib import Path

from tfx.components.util import model_utils
from tfx.dsl.compiler import constants
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.orchestration import data_types
from tfx.types import Artifact, standard_artifacts, system_executions
from tfx.utils import path_utils

from components.artifacts import TFLiteModel, artifact_location
from components.pusher import manifest, versions
from components.tflite.settings import MODEL_FILE
from contracts.content import read_record
from contracts.errors import PushError
from contracts.model_reports import NOT_BLESSED, REPORT_FILE, InfraReport

RUN_ID = data_types.RuntimeParameter(name=constants.PIPELINE_RUN_ID_PARAMETER_NAME, ptype=str)
"""The run that pushes. It keeps a Pusher from being cached: what a Pusher does depends on what is already served."""


@component(component_annotation=system_executions.Deploy)
def Pusher(  # noqa: N802  # TFX's form of a component
    model: InputArtifact[standard_artifacts.Model],
    model_blessing: InputArtifact[standard_artifacts.ModelBlessing],
    infra_blessing: InputArtifact[standard_artifacts.InfraBlessing],
    pushed_model: OutputArtifact[standard_artifacts.PushedModel],
    base_directory: Parameter[str],
    keep_versions: Parameter[int],
    run_id: Parameter[str],
    tflite_model: InputArtifact[TFLiteModel] = None,
) -> None:
    """Pushes a blessed model, by a rename, to a folder that TF Serving watches, or records why not.

    Args:
        model: The SavedModel.
        model_blessing: The Evaluator's verdict.
        infra_blessing: The InfraValidator's verdict.
        pushed_model: Records what was done; see `manifest`.
        base_directory: The folder of the versions.
        keep_versions: How many versions to keep.
        run_id: `RUN_ID`.
        tflite_model: Pushed beside the SavedModel if it is itself blessed; None if the recipe has none.

    Raises:
        PushError: The version cannot be written, or the model is not the one that the InfraValidator tried.
    """
    tried = read_record(Path(infra_blessing.uri, REPORT_FILE), InfraReport)
    origin = manifest.Origin(
        model_id=model.id, model_uri=artifact_location(model), run_id=run_id, differences=tried.paths
    )
    base, saved_model = Path(base_directory), Path(path_utils.serving_model_path(model.uri))
    reason = _refusal(model_blessing, infra_blessing)
    withdrawn = None if reason else _withdrawn_version(saved_model, infra_blessing, base)
    if withdrawn is not None:
        reason = f"the model was rolled back from: it is version {withdrawn}"
    if reason is None:
        tflite = Path(tflite_model.uri, MODEL_FILE) if tflite_model and tflite_model.blessed else None
        path, pushed_manifest = versions.push_version(saved_model, base, keep_versions, origin, tflite)
        properties = manifest.pushed_properties(path, pushed_manifest)
        Path(pushed_model.uri, "pushed.json").write_text(json.dumps(properties, indent=2), encoding="utf-8")
    else:
        logging.warning("Not pushed: %s.", reason)
        properties = manifest.not_pushed_properties(origin, reason, withdrawn)
    for name, value in properties.items():
        if isinstance(value, int):
            pushed_model.set_int_custom_property(name, value)
        else:
            pushed_model.set_string_custom_property(name, value)


def _refusal(model_blessing: Artifact, infra_blessing: Artifact) -> str | None:
    """Says which node did not bless the model; None if both did."""
    if not model_utils.is_model_blessed(model_blessing):
        return NOT_BLESSED
    if not model_utils.is_infra_validated(infra_blessing):
        return manifest.NOT_SERVABLE
    return None


def _withdrawn_version(model: Path, infra_blessing: Artifact, base: Path) -> int | None:
    """The version of this model that a rollback took out of service, if any.

    Raises:
        PushError: The model is not the one that the InfraValidator tried.
    """
    digest = manifest.digest_of_files(manifest.files_of(model))
    tried_digest = infra_blessing.get_string_custom_property(manifest.MODEL_DIGEST_PROPERTY)
    if digest != tried_digest:
        raise PushError(
            f"{model} has the digest {digest}, expected {tried_digest}: "
            "it changed after the InfraValidator had tried it.",
            "Train it again: run with --force.",
        )
    existing = versions.find_versions(base)
    if digest not in versions.withdrawn_models(existing):
        return None
    return max(version.number for version in existing if version.manifest and version.manifest.model_digest == digest)
