"""TFX's launcher for artifacts in an object store, at the one place where an executor gets and leaves them.

Everything else of TFX - input resolution, cache keys, published artifacts - sees their URIs alone, so that each pod may
have a cache at a place of its own. See docs/adr/0023-object-stores-at-the-executor.md.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import attr
from tfx.dsl.io import filesystem, filesystem_registry
from tfx.orchestration.portable import launcher, outputs_utils
from tfx.types import Artifact

from components.stored import STORED_AT
from metadata import files
from pipeline.objects import mirror as mirrors
from pipeline.objects.faults import ObjectStoreError
from pipeline.objects.mirror import Mirror

Artifacts = Mapping[str, Sequence[Artifact]]

FIRST = 0
"""Before TFX's own file systems, which TensorFlow lacks here."""


class ObjectFilesystem(filesystem.Filesystem):
    """What TFX asks of a file system where it only knows an artifact's URI: whether a cached one is still there."""

    SUPPORTED_SCHEMES = ["s3://", "gs://"]  # noqa: RUF012 (as TFX declares it)

    @staticmethod
    def exists(path: filesystem.PathType) -> bool:
        """Whether there is an artifact.

        Raises:
            UnavailableError: The store is away, or refuses us.
        """
        uri = path.decode() if isinstance(path, bytes) else path
        return not files.gone([uri])


filesystem_registry.DEFAULT_FILESYSTEM_REGISTRY.register(ObjectFilesystem, priority=FIRST)


class _Outputs(outputs_utils.OutputsResolver):
    """Names outputs by where they are published; what TFX itself writes for an execution stays on this machine."""

    def __init__(self, mirror: Mirror, **given: Any) -> None:
        super().__init__(**given)
        self._mirror = mirror

    def generate_output_artifacts(self, execution_id: int) -> dict[str, list[Artifact]]:
        """See TFX's."""
        made: dict[str, list[Artifact]] = super().generate_output_artifacts(execution_id)
        for artifact in (artifact for artifacts in made.values() for artifact in artifacts):
            artifact.uri = self._mirror.uri_of(artifact.uri)
        return made


class Launcher(launcher.Launcher):
    """Brings what an executor takes to this machine, and sends what it made before that is published."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._mirror = mirrors.used()
        if self._mirror is not None:
            own = ("pipeline_node", "pipeline_info", "pipeline_runtime_spec")
            self._output_resolver = _Outputs(self._mirror, **{name: given[name] for name in own})

    def _run_executor(self, execution_info: Any) -> Any:
        if self._mirror is None:
            return super()._run_executor(execution_info)
        return self._run_here(execution_info, self._mirror)

    def _run_here(self, execution_info: Any, mirror: Mirror) -> Any:
        for uri in _uris(execution_info.input_dict):
            mirror.bring(uri)
        outputs = _uris(execution_info.output_dict)
        for uri in outputs:
            mirror.empty(uri)
        here = attr.evolve(
            execution_info,
            input_dict=_here(execution_info.input_dict, mirror, noted=True),
            output_dict=_here(execution_info.output_dict, mirror),
        )
        made = super()._run_executor(here)
        _send(outputs, mirror)
        _name(made, mirror)
        return made


def _uris(artifacts: Artifacts) -> list[str]:
    return [artifact.uri for listed in artifacts.values() for artifact in listed]


def _here(artifacts: Artifacts, mirror: Mirror, noted: bool = False) -> dict[str, list[Artifact]]:
    """Copies of artifacts that lie on this machine; `noted` ones know where they are kept."""
    copies = {key: [copy.deepcopy(artifact) for artifact in listed] for key, listed in artifacts.items()}
    for artifact in (artifact for listed in copies.values() for artifact in listed):
        if noted:
            artifact.set_string_custom_property(STORED_AT, artifact.uri)
        artifact.uri = str(mirror.path_of(artifact.uri))
    return copies


def _send(uris: Sequence[str], mirror: Mirror) -> None:
    try:
        for uri in uris:
            mirror.send(uri)
    except ObjectStoreError:
        # What it refuses to take it may refuse to give back: then the sent part costs room, and nobody knows of it.
        with suppress(ObjectStoreError):
            for uri in uris:
                mirror.take_back(uri)
        raise


def _name(made: Any, mirror: Mirror) -> None:
    """Calls the places on this machine, in what an executor says of its outputs, as they are called in the store."""
    artifacts = [artifact for listed in made.output_artifacts.values() for artifact in listed.artifacts]
    for artifact in artifacts:
        artifact.uri = mirror.uri_of(artifact.uri)
    values = [value for a in artifacts for held in (a.properties, a.custom_properties) for value in held.values()]
    for value in [*values, *made.execution_properties.values()]:
        if value.HasField("string_value"):
            value.string_value = mirror.uri_of(value.string_value)
