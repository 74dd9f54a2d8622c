"""Chooses Beam's runner, and gives the options that every node's Beam work runs with."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from components.example_gen.files import InputFiles
from pipeline.beam_settings import BeamSettings, DataflowSettings, FlinkSettings, SparkSettings
from pipeline.recipe import PROJECT_ROOT

GIGABYTE = 1e9
BASE_BYTES = 3e9
"""What a node needs for any data: Python, TensorFlow, Beam."""

MEMORY_PER_BYTE = 20
"""What the Beam work of a node needs in memory for each byte of raw data, about."""

GZIP_RATIO = 6
"""How many bytes of text a byte of gzip holds, about."""

WORKERS_STAY_MILLISECONDS = 60_000
"""How long a worker that has nothing to do waits for the next stage of its job."""

CONTROL_GROUP = Path("/sys/fs/cgroup/memory.max")


def settle(settings: BeamSettings, inputs: InputFiles, memory: int | None = None) -> tuple[BeamSettings, str | None]:
    """Turns `auto` into an engine. The same machine and data give the same answer in each process of a run.

    Args:
        settings: What the environment says.
        inputs: The raw data.
        memory: Bytes of this machine; None asks it.

    Returns:
        The settings with a runner other than `auto`, and why it is that one in one line; None where the environment
        chose it.
    """
    if settings.runner != "auto":
        return settings, None
    there = machine_memory() if memory is None else memory
    raw = _raw_bytes(inputs.files)
    needed = BASE_BYTES + MEMORY_PER_BYTE * raw
    fits = needed <= there
    engine = "direct" if fits else settings.engines[0]
    name = "in memory" if fits else {"flink": "on Flink", "spark": "on Spark", "dataflow": "on Dataflow"}[engine]
    why = (
        f"Data work runs {name}: {raw / GIGABYTE:.3g} GB of raw data need about {needed / GIGABYTE:.1f} GB, "
        f"and this machine has {there / GIGABYTE:.1f} GB."
    )
    return settings.model_copy(update={"runner": engine}), why


def options(settings: BeamSettings) -> list[str]:
    """The pipeline options that every node's Beam work runs with; `settings` are settled.

    None at all means Beam's own default: the DirectRunner in memory, which on two cores beats `multi_processing` up to
    at least 300,000 rows. Given any option, TFX packs itself into a source distribution for remote workers, once a
    node, unless an option says where they have it from.
    """
    if settings.runner == "flink" and settings.flink:
        return [*_flink(settings.flink), *settings.options]
    if settings.runner == "spark" and settings.spark:
        return [*_job_server(settings.spark), *settings.options]
    if settings.runner == "dataflow" and settings.dataflow:
        return [*_dataflow(settings.dataflow), *settings.options]
    return [*settings.options, f"--setup_file={PROJECT_ROOT / 'setup.py'}"] if settings.options else []


def _flink(settings: FlinkSettings) -> list[str]:
    return [*_job_server(settings), f"--parallelism={settings.parallelism}"]


def _job_server(settings: FlinkSettings | SparkSettings) -> list[str]:
    found = [
        "--runner=PortableRunner",
        f"--job_endpoint={settings.job_endpoint}",
        f"--environment_type={settings.environment_type}",
        # Our workers are this very machine's or run our image: there is nothing to install on them, and naming what
        # they run keeps TFX from packing itself up. A list of installed packages, for each job's log, costs a second.
        "--sdk_container_image=millrace",
        "--experiments=disable_logging_submission_environment",
    ]
    if settings.artifact_endpoint:
        found.append(f"--artifact_endpoint={settings.artifact_endpoint}")
    if settings.environment_config:
        # A worker there is a process, which would be started anew, TensorFlow and all, for each stage.
        found += [
            f"--environment_config={settings.environment_config}",
            f"--environment_cache_millis={WORKERS_STAY_MILLISECONDS}",
        ]
    return found


def _dataflow(settings: DataflowSettings) -> list[str]:
    given = {name: value for name, value in settings.model_dump().items() if value is not None}
    found = ["--runner=DataflowRunner", *(f"--{name}={value}" for name, value in given.items())]
    return found if settings.sdk_container_image else [*found, f"--setup_file={PROJECT_ROOT / 'setup.py'}"]


def machine_memory() -> int:
    """The bytes of memory of this machine, or of the container that this runs in."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = CONTROL_GROUP.read_text(encoding="ascii").strip() if CONTROL_GROUP.exists() else "max"
    return physical if limit == "max" else min(physical, int(limit))


def _raw_bytes(files: Iterable[Path]) -> int:
    return sum(path.stat().st_size * (GZIP_RATIO if path.suffix in {".gz", ".tgz"} else 1) for path in files)
