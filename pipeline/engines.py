"""Whether the engine of an environment's Beam work can be reached, before anything is given to it."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request

from components.errors import EngineError, SettingsError
from pipeline.beam_settings import BeamSettings, FlinkSettings, SparkSettings

SECONDS = 5.0
START = "Start one on this machine with `make flink`, or correct beam.flink.{setting} in the environment."


def reach(settings: BeamSettings) -> str | None:
    """Reaches for the engine; `settings` with `auto` are those of the engine that large data go to.

    Returns:
        What it is in one line; None where the data work stays in memory, or is Dataflow's, which only the first job
        reaches.

    Raises:
        EngineError: It cannot be reached now.
        SettingsError: It has too few slots.
    """
    engine = settings.engines[0] if settings.runner == "auto" else settings.runner
    if engine == "flink" and settings.flink:
        return _flink(settings.flink)
    if engine == "spark" and settings.spark:
        return _job_server(
            settings.spark, "Spark", "Start Beam's Spark job server, or correct beam.spark.job_endpoint."
        )
    return None


def _flink(settings: FlinkSettings) -> str:
    described = _job_server(settings, "Flink", START.format(setting="job_endpoint"))
    if settings.flink_master is None:
        return described
    overview = _overview(settings.flink_master)
    slots, workers = int(overview["slots-total"]), int(overview["taskmanagers"])
    if slots < settings.parallelism:
        raise SettingsError(
            f"Flink at {settings.flink_master} has {slots} task slots in {workers} TaskManagers, expected at least "
            f"{settings.parallelism}, as beam.flink.parallelism says: jobs would wait for them in vain.",
            f"Set parallelism to {slots} or fewer, or add TaskManagers." if slots else "Start its TaskManagers.",
        )
    return f"{described}; Flink {overview['flink-version']}: {workers} TaskManagers, {slots} slots"


def _job_server(settings: FlinkSettings | SparkSettings, name: str, fix: str) -> str:
    host, _, port = settings.job_endpoint.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=SECONDS).close()
    except (OSError, OverflowError) as error:
        raise EngineError(
            f"Beam's job server for {name} cannot be reached at {settings.job_endpoint}: {error}.", fix
        ) from error
    return f"{name}'s job server at {settings.job_endpoint}"


def _overview(master: str) -> dict[str, str]:
    try:
        with urllib.request.urlopen(f"http://{master}/overview", timeout=SECONDS) as answer:
            found: dict[str, str] = json.load(answer)
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise EngineError(
            f"Flink's JobManager cannot be reached at {master}: {error}.", START.format(setting="flink_master")
        ) from error
    return found
