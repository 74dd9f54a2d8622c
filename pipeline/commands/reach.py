"""Checks that everything an environment names can be reached: what is fine, what is not, and how to mend it."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import ml_metadata as mlmd
from ml_metadata.proto import metadata_store_pb2 as mlmd_pb2

from contracts.errors import MillraceError
from metadata.connection import BUSY, LOST
from pipeline.plan import beam
from pipeline.plan.environment import Environment
from pipeline.plan.kubeflow_settings import KubeflowSettings
from pipeline.run.objects.mirror import Mirror
from pipeline.run.workplace import Workplace

LEAST_FREE_BYTES = 1_000_000_000
GIGABYTE = 1e9
CHECK_CONTEXT = "millrace_check"
"""The type and name of a context that each check rewrites, to see whether the store can be written to."""


@dataclass(frozen=True)
class Reached:
    """The result of checking one thing that an environment names.

    Attributes:
        name: The setting.
        fine: Whether it can be used.
        text: What it is, or what is wrong.
        fix: How to mend it.
    """

    name: str
    fine: bool
    text: str
    fix: str | None = None


def reach_everything(workplace: Workplace) -> Iterator[Reached]:
    """Checks everything that an environment names, one thing after another."""
    environment, objects = workplace.environment, workplace.mirror
    yield _check_setting("metadata_store", lambda: _reach_store(workplace))
    if objects is not None:
        yield _check_setting("pipeline_root", lambda: _reach_objects(objects))
    folders = {
        "object_store" if objects else "pipeline_root": environment.pipeline_root,
        "serving_root": environment.serving_root,
        "log_root": environment.log_root,
    }
    for name, folder in folders.items():
        yield _check_setting(name, lambda folder=folder: _reach_folder(folder))  # type: ignore[misc]
    if (cluster := environment.kubeflow) is not None:
        yield _check_setting("kubeflow", lambda: _reach_kubeflow(cluster))
    if environment.beam.engines and environment.beam.runner in {"auto", "flink", "spark"}:
        yield _check_setting("beam", lambda: _reach_beam(environment))


def _reach_objects(objects: Mirror) -> str:
    objects.probe()
    return f"{objects.root}: can be listed, read, written to and deleted from"


def _reach_beam(environment: Environment) -> str:
    engine = beam.reach_engine(environment.beam)
    return engine or "Dataflow, which only the first job reaches"


def _check_setting(name: str, reach: Callable[[], str]) -> Reached:
    try:
        return Reached(name, True, reach())
    except MillraceError as error:
        return Reached(name, False, error.what, error.fix)


def _reach_kubeflow(settings: KubeflowSettings) -> str:
    # Imported here because its REST client takes a third of a second.
    from pipeline.schedule.kubeflow.client import Client

    Client(settings).check_reachable()
    return f"Kubeflow Pipelines at {settings.host} answers"


def _reach_store(workplace: Workplace) -> str:
    described, environment = workplace.described_store, workplace.environment
    if environment.metadata_store.sqlite is not None:
        folder = _reach_folder(environment.metadata_path.parent)
        if not environment.metadata_path.exists():
            return f"{described}: the first run makes it; {folder}"
    store = workplace.open_for_writing()
    try:
        _write(store)
        runs = len(store.get_contexts_by_type("pipeline_run"))
    except (*BUSY, *LOST) as error:
        raise MillraceError(
            f"{described} can be read, but not written to: {' '.join(str(error).split())}",
            "Let the user write to all tables, or, where a run holds it, try again.",
        ) from error
    return f"{described}: can be read and written; runs: {runs}"


def _write(store: mlmd.MetadataStore) -> None:
    context_type = store.put_context_type(mlmd_pb2.ContextType(name=CHECK_CONTEXT), can_omit_fields=True)
    context = store.get_context_by_type_and_name(CHECK_CONTEXT, CHECK_CONTEXT)
    context = context or mlmd_pb2.Context(type_id=context_type, name=CHECK_CONTEXT)
    context.custom_properties["checked"].string_value = str(time.time_ns())
    store.put_contexts([context])


def _reach_folder(folder: Path) -> str:
    """Checks that files can be created and locked in a folder, or in its nearest parent that exists."""
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=existing) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        free = shutil.disk_usage(existing).free
    except OSError as error:
        raise MillraceError(
            f"{existing} cannot be written to: {error.strerror}.", "Make it a folder that this user may write to."
        ) from error
    if free < LEAST_FREE_BYTES:
        raise MillraceError(f"{existing} has {free / GIGABYTE:.1f} GB free, expected at least 1.", "Make room in it.")
    note = "" if existing == folder else "will be made, "
    return f"{folder}: {note}{free / GIGABYTE:.0f} GB free"
