"""Beam's engine: which one does the data work, its pipeline options, and whether it can be reached."""

from __future__ import annotations

import json
import os
import socket
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path

from components.example_gen.files import InputFiles
from contracts.errors import EngineError, SettingsError
from pipeline.plan import project
from pipeline.plan.beam_settings import BeamSettings, DataflowSettings, FlinkSettings, SparkSettings

NO_PACKING = "--sdk_container_image=millrace"
"""Says what image workers run; otherwise TFX packs itself into a source distribution for them, once per node."""

GIGABYTE = 1e9
BASE_BYTES = 3e9
"""Memory that a node needs whatever the data: Python, TensorFlow, Beam."""

MEMORY_PER_BYTE = 20
"""Roughly how many bytes of memory a node's Beam work needs per byte of raw data."""

GZIP_RATIO = 6
"""Roughly how many bytes of text one byte of gzip holds."""

WORKERS_STAY_MILLISECONDS = 60_000
"""How long an idle worker waits for the next stage of its job."""

CONTROL_GROUP = Path("/sys/fs/cgroup/memory.max")


def resolve_engine(
    settings: BeamSettings, inputs: InputFiles, memory: int | None = None
) -> tuple[BeamSettings, str | None]:
    """Resolves `auto` to an engine. The same machine and data give the same result in every process of a run.

    Args:
        settings: The environment's `beam` section.
        inputs: The raw data.
        memory: Bytes of memory of this machine; None: look it up.

    Returns:
        The settings with a runner other than `auto`, and one line that says why it was chosen; None if the environment
            chose it.
    """
    if settings.runner != "auto":
        return settings, None
    if not settings.engines:
        return settings.model_copy(update={"runner": "columnar"}), None
    available = machine_memory() if memory is None else memory
    raw = _raw_bytes(inputs.files)
    needed = BASE_BYTES + MEMORY_PER_BYTE * raw
    fits = needed <= available
    engine = "columnar" if fits else settings.engines[0]
    name = "in this process" if fits else {"flink": "on Flink", "spark": "on Spark", "dataflow": "on Dataflow"}[engine]
    why = (
        f"Data work runs {name}: {raw / GIGABYTE:.3g} GB of raw data need about {needed / GIGABYTE:.1f} GB, "
        f"and this machine has {available / GIGABYTE:.1f} GB."
    )
    return settings.model_copy(update={"runner": engine}), why


def pipeline_options(settings: BeamSettings) -> list[str]:
    """The pipeline options for every node's Beam work; the runner must not be `auto`.

    Without a runner, nodes work by columns (`components.engine`), and Beam, where they need it, on its own default: the
    DirectRunner in memory, which on two cores beats `multi_processing` up to at least 300,000 rows. Given any option,
    TFX packs itself into a source distribution for remote workers, once per node, unless an option says where they get
    it from.
    """
    if settings.runner == "flink" and settings.flink:
        return [*_flink_options(settings.flink), *settings.options]
    if settings.runner == "spark" and settings.spark:
        return [*_job_server_options(settings.spark), *settings.options]
    if settings.runner == "dataflow" and settings.dataflow:
        return [*_dataflow_options(settings.dataflow), *settings.options]
    options = ["--runner=DirectRunner", *settings.options] if settings.runner == "direct" else settings.options
    return [*options, *(_setup_file() or [NO_PACKING])] if options else []


def _flink_options(settings: FlinkSettings) -> list[str]:
    return [*_job_server_options(settings), f"--parallelism={settings.parallelism}"]


def _job_server_options(settings: FlinkSettings | SparkSettings) -> list[str]:
    options = [
        "--runner=PortableRunner",
        f"--job_endpoint={settings.job_endpoint}",
        f"--environment_type={settings.environment_type}",
        # Our workers are on this machine or run our image: there is nothing to install on them, and naming an image
        # keeps TFX from packing itself up. Logging the installed packages for each job would cost a second.
        NO_PACKING,
        "--experiments=disable_logging_submission_environment",
        # Otherwise an external worker would be restarted, TensorFlow and all, for each stage; and one of Beam 2.77 is
        # closed while a stage begins: "SDK harness closed connection".
        f"--environment_cache_millis={WORKERS_STAY_MILLISECONDS}",
    ]
    if settings.artifact_endpoint:
        options.append(f"--artifact_endpoint={settings.artifact_endpoint}")
    if settings.environment_config:
        options.append(f"--environment_config={settings.environment_config}")
    return options


def _dataflow_options(settings: DataflowSettings) -> list[str]:
    options_given = {name: value for name, value in settings.model_dump().items() if value is not None}
    options = ["--runner=DataflowRunner", *(f"--{name}={value}" for name, value in options_given.items())]
    if settings.sdk_container_image:
        return options
    if not (setup_file := _setup_file()):
        raise SettingsError(
            f"Dataflow's workers would install the recipes by {project.root() / 'setup.py'}, which is not there.",
            "Name an image that holds them, beam.dataflow.sdk_container_image, or write that file; see "
            "docs/projects.md.",
        )
    return [*options, *setup_file]


def _setup_file() -> list[str]:
    """The option that makes remote workers install the project's code, if the project can be installed."""
    path = project.root() / "setup.py"
    return [f"--setup_file={path}"] if path.exists() else []


def machine_memory() -> int:
    """The memory of this machine, or of the container that this runs in, in bytes."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = CONTROL_GROUP.read_text(encoding="ascii").strip() if CONTROL_GROUP.exists() else "max"
    return physical if limit == "max" else min(physical, int(limit))


def _raw_bytes(files: Iterable[Path]) -> int:
    return sum(path.stat().st_size * (GZIP_RATIO if path.suffix in {".gz", ".tgz"} else 1) for path in files)


REACH_SECONDS = 5.0
START_FLINK = "Start one on this machine with `make flink`, or correct beam.flink.{setting} in the environment."


def reach_engine(settings: BeamSettings) -> str | None:
    """Checks that the engine can be reached; for `auto`, the one that large data go to.

    Returns:
        One line that describes it; None if the data work stays in memory or goes to Dataflow, which only the first job
        can reach.

    Raises:
        EngineError: It cannot be reached now.
        SettingsError: It has too few slots.
    """
    engine = next(iter(settings.engines), None) if settings.runner == "auto" else settings.runner
    if engine == "flink" and settings.flink:
        return _reach_flink(settings.flink)
    if engine == "spark" and settings.spark:
        return _reach_job_server(
            settings.spark, "Spark", "Start Beam's Spark job server, or correct beam.spark.job_endpoint."
        )
    return None


def _reach_flink(settings: FlinkSettings) -> str:
    described = _reach_job_server(settings, "Flink", START_FLINK.format(setting="job_endpoint"))
    if settings.flink_master is None:
        return described
    overview = _flink_overview(settings.flink_master)
    slots, workers = int(overview["slots-total"]), int(overview["taskmanagers"])
    if slots < settings.parallelism:
        raise SettingsError(
            f"Flink at {settings.flink_master} has {slots} task slots in {workers} TaskManagers, expected at least "
            f"{settings.parallelism}, as beam.flink.parallelism says: jobs would wait for them in vain.",
            f"Set parallelism to {slots} or fewer, or add TaskManagers." if slots else "Start its TaskManagers.",
        )
    return f"{described}; Flink {overview['flink-version']}: {workers} TaskManagers, {slots} slots"


def _reach_job_server(settings: FlinkSettings | SparkSettings, name: str, fix: str) -> str:
    host, _, port = settings.job_endpoint.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=REACH_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise EngineError(
            f"Beam's job server for {name} cannot be reached at {settings.job_endpoint}: {error}.", fix
        ) from error
    return f"{name}'s job server at {settings.job_endpoint}"


def _flink_overview(master: str) -> dict[str, str]:
    try:
        with urllib.request.urlopen(f"http://{master}/overview", timeout=REACH_SECONDS) as response:
            overview: dict[str, str] = json.load(response)
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise EngineError(
            f"Flink's JobManager cannot be reached at {master}: {error}.", START_FLINK.format(setting="flink_master")
        ) from error
    return overview
