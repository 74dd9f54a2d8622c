"""Trains on Kubernetes: creates a TFJob, watches its pods, and deletes it however the training ends."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from components.trainer import processes
from components.trainer.processes import Launch
from contracts.errors import ClusterError, MillraceError, TrainingError
from pipeline.plan.kubeflow_settings import KubeflowSettings
from pipeline.schedule.kubeflow import cluster, training, training_api
from pipeline.schedule.kubeflow.training import Owner
from pipeline.schedule.kubeflow.training_api import Pod, TrainingApi

POD_NAME_VARIABLE = "KFP_POD_NAME"
POD_UID_VARIABLE = "KFP_POD_UID"
"""Kubeflow Pipelines sets both in each task, through Kubernetes' downward API."""


class TrainingJob:
    """Trains in a TFJob; a `components.trainer.processes.Launcher`.

    Args:
        recipe_name: The recipe to train.
        run_id: The run's id.
        settings: The cluster, and the pods' settings.
        core: A `kubernetes.client.CoreV1Api`; by default made from the pod or the kubeconfig.
    """

    def __init__(self, recipe_name: str, run_id: str, settings: KubeflowSettings, core: Any | None = None) -> None:
        self._recipe_name, self._run_id, self._settings = recipe_name, run_id, settings
        self._core = core
        self._name = training.job_name(recipe_name, run_id)

    def __call__(self, launch: Launch) -> None:
        """Trains.

        Raises:
            TrainingError: A pod failed, or the job did.
            MillraceError: The error that a pod's process raised.
            SettingsError: The cluster has no TFJobs, or we may not create one.
            ClusterError: Kubernetes' API stayed down, or the cluster removed a pod.
        """
        api = TrainingApi(self._name, self._settings, self._core or cluster.connect())
        manifest = training.job_manifest(self._recipe_name, self._run_id, self._settings, launch, _owner())
        try:
            api.create(manifest)
            _log(f"TFJob {self._name} in the namespace {self._settings.namespace}: {', '.join(launch.names)}")
            self._watch(api, launch)
        finally:
            if why := api.delete():
                _log(f"The TFJob {self._name} could not be deleted: {why}.")

    def _watch(self, api: TrainingApi, launch: Launch) -> None:
        shown: dict[str, str] = {}
        while True:
            # In this order: a failed pod makes the job fail, so the pods must not be read before the job's conditions.
            conditions = api.conditions()
            pods = api.pods()
            _log_changes(pods, shown)
            if conditions is None:
                raise TrainingError(f"somebody deleted the TFJob {self._name} while it trained.", "Run again.")
            if "Succeeded" in conditions:
                _show_chief(api, launch, pods)
                return
            if failed := {pod.role: pod for pod in pods if pod.failed}:
                # Pods that fail because another did follow at once.
                time.sleep(training_api.POLL_SECONDS)
                failed |= {pod.role: pod for pod in api.pods() if pod.failed}
                _show_chief(api, launch, pods)
                raise _error(api, launch, list(failed.values()))
            if "Failed" in conditions:
                states = ", ".join(f"{pod.role} {pod.state}" for pod in pods) or "it has no pods"
                raise TrainingError(
                    f"the TFJob {self._name} failed: {conditions['Failed']} Its pods: {states}.",
                    "Mend the cause, and run again: what was trained is kept.",
                )
            time.sleep(training_api.POLL_SECONDS)


def _error(api: TrainingApi, launch: Launch, failed: Sequence[Pod]) -> MillraceError:
    """The error of the pod that most likely caused the others' failures."""
    if lost := [pod for pod in failed if pod.taken_away]:
        names = ", ".join(f"{pod.name} ({pod.reason})" for pod in lost)
        return ClusterError(
            f"the cluster took pods of the training away: {names}.", "Run the node again: what was trained is kept."
        )
    failures = {pod.role: processes.read_failure(launch.failure_path(pod.role)) for pod in failed}
    ends = {pod.role: pod.ended.timestamp() if pod.ended else float("inf") for pod in failed}
    cause = min(failed, key=lambda pod: (processes.rank_failure(failures[pod.role]), ends[pod.role]))
    end = "failed" if cause.exit_code is None else f"ended with exit code {cause.exit_code}"
    why = f" ({cause.reason})" if cause.reason and cause.reason != "Error" else ""
    ending = f"the pod {cause.name} of the training {end}{why}"
    lines = processes.last_lines(api.log(cause, tail_lines=processes.LAST_LINES))
    error = processes.known_error(failures[cause.role])
    if error:
        _log(f"{ending}; its last lines:\n{lines}")
        return type(error)(f"{error.what}\n({ending})", error.fix)
    return TrainingError(
        f"{ending}; its last lines:\n{lines}",
        "Mend the cause, or give the Trainer more memory if that was it, and run again: what was trained is kept.",
    )


def _owner() -> Owner | None:
    name, uid = os.environ.get(POD_NAME_VARIABLE), os.environ.get(POD_UID_VARIABLE)
    return Owner(name, uid) if name and uid else None


def _log_changes(pods: Sequence[Pod], shown: dict[str, str]) -> None:
    for pod in pods:
        if shown.get(pod.role) != pod.state:
            shown[pod.role] = pod.state
            _log(f"{pod.role} {pod.state}")


def _show_chief(api: TrainingApi, launch: Launch, pods: Sequence[Pod]) -> None:
    for pod in pods:
        if pod.role == launch.names[0]:
            _log(api.log(pod))


def _log(text: str) -> None:
    """Writes a line to the node's log."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
