"""An object store's artifacts as TFX launches nodes: inputs downloaded, outputs uploaded before they are published.

Everything in TFX except the executors (input resolution, cache keys, published artifacts) sees only the URIs of
artifacts, so each pod may have its cache in a different place. See docs/adr/0023-object-stores-at-the-executor.md.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from tfx.orchestration.portable import outputs_utils
from tfx.types import Artifact

from components.artifacts import STORED_AT
from pipeline.run.objects.faults import ObjectStoreError
from pipeline.run.objects.mirror import Mirror

Artifacts = Mapping[str, Sequence[Artifact]]


class ObjectStoreOutputs(outputs_utils.OutputsResolver):
    """Gives outputs the URIs under which they are published; TFX's own files for an execution stay on this machine."""

    def __init__(self, mirror: Mirror, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._mirror = mirror

    def generate_output_artifacts(self, execution_id: int) -> dict[str, list[Artifact]]:
        """See `OutputsResolver`."""
        outputs: dict[str, list[Artifact]] = super().generate_output_artifacts(execution_id)
        for artifact in (artifact for artifacts in outputs.values() for artifact in artifacts):
            artifact.uri = self._mirror.uri_of(artifact.uri)
        return outputs


def uris_of(artifacts: Artifacts) -> list[str]:
    return [artifact.uri for listed in artifacts.values() for artifact in listed]


def local_copies(artifacts: Artifacts, mirror: Mirror, noted: bool = False) -> dict[str, list[Artifact]]:
    """Copies of artifacts with local paths; if `noted`, they also record where they are stored."""
    copies = {key: [copy.deepcopy(artifact) for artifact in listed] for key, listed in artifacts.items()}
    for artifact in (artifact for listed in copies.values() for artifact in listed):
        if noted:
            artifact.set_string_custom_property(STORED_AT, artifact.uri)
        artifact.uri = str(mirror.path_of(artifact.uri))
    return copies


def send_outputs(uris: Sequence[str], mirror: Mirror) -> None:
    try:
        for uri in uris:
            mirror.upload(uri)
    except ObjectStoreError:
        # A store that refuses an upload may refuse to remove it, too: then the part uploaded stays, unused.
        with suppress(ObjectStoreError):
            for uri in uris:
                mirror.discard_upload(uri)
        raise


def rename_to_uris(output: Any, mirror: Mirror) -> None:
    """Replaces local paths by URIs in what an executor reports about its outputs."""
    artifacts = [artifact for listed in output.output_artifacts.values() for artifact in listed.artifacts]
    for artifact in artifacts:
        artifact.uri = mirror.uri_of(artifact.uri)
    values = [value for a in artifacts for held in (a.properties, a.custom_properties) for value in held.values()]
    for value in [*values, *output.execution_properties.values()]:
        if value.HasField("string_value"):
            value.string_value = mirror.uri_of(value.string_value)
