"""The requests of a training job to Kubernetes' API, for its TFJob, pods and logs; retried while the API is down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import tenacity
import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from contracts.errors import ClusterError, MillraceError, SettingsError
from pipeline.plan.kubeflow_settings import KubeflowSettings
from pipeline.schedule.kubeflow import cluster
from pipeline.schedule.kubeflow.training import CONTAINER, GROUP, PLURAL, VERSION

POLL_SECONDS = 5.0
PATIENCE_SECONDS = 120.0
"""How long the API may be down."""

LAST_PATIENCE_SECONDS = 10.0
"""The same while the job is being deleted: a task that was told to stop has half a minute."""

PASSING = {408, 429}
"""HTTP statuses of refusals that pass, besides those from 500 on."""

JOB_LABEL = "training.kubeflow.org/job-name"
KIND_LABEL = "training.kubeflow.org/replica-type"
INDEX_LABEL = "training.kubeflow.org/replica-index"


DISRUPTED = "DisruptionTarget"
"""The condition, since Kubernetes 1.26, of a pod that the cluster removes: preempted, evicted, or its machine gone."""

TAKEN_AWAY = {"Evicted", "NodeLost", "NodeShutdown", "Preempting", "Shutdown", "Terminated"}
"""The same as a pod's `reason`, which older versions set."""


@dataclass(frozen=True)
class Pod:
    """A pod of the job.

    Attributes:
        name: Its name.
        role: Its process, such as `worker-0`.
        phase: Kubernetes' phase, such as `Running`.
        reason: Why it waits, or how it ended; may be empty.
        exit_code: Its process's exit code; None if it has none.
        ended: When it ended.
        deleted: Whether it is being deleted, as running pods are when another has failed.
        taken_away: Whether the cluster removed it, for reasons of its own.
    """

    name: str
    role: str
    phase: str
    reason: str
    exit_code: int | None
    ended: datetime | None
    deleted: bool
    taken_away: bool

    @classmethod
    def from_api(cls, pod: Any) -> Pod:
        """Converts a pod from Kubernetes' client."""
        labels = pod.metadata.labels
        states = [status.state for status in pod.status.container_statuses or () if status.name == CONTAINER]
        ended = states[0].terminated if states else None
        waits = states[0].waiting if states else None
        conditions = {condition.type for condition in pod.status.conditions or () if condition.status == "True"}
        return cls(
            name=pod.metadata.name,
            role=f"{labels[KIND_LABEL]}-{labels[INDEX_LABEL]}",
            phase=pod.status.phase,
            reason=pod.status.reason or (ended and ended.reason) or (waits and waits.reason) or "",
            exit_code=ended.exit_code if ended else None,
            ended=ended.finished_at if ended else None,
            deleted=pod.metadata.deletion_timestamp is not None,
            taken_away=DISRUPTED in conditions or pod.status.reason in TAKEN_AWAY,
        )

    @property
    def failed(self) -> bool:
        """Whether it failed by itself."""
        return self.phase == "Failed" and not self.deleted

    @property
    def state(self) -> str:
        """Its state in words, as kubectl shows it."""
        if self.deleted:
            return "Terminating"
        return f"{self.phase} ({self.reason})" if self.reason else self.phase


class TrainingApi:
    """A client for one TFJob.

    Args:
        name: Its name.
        settings: The cluster.
        core: A `kubernetes.client.CoreV1Api`.
    """

    def __init__(self, name: str, settings: KubeflowSettings, core: Any) -> None:
        self._settings = settings
        self._core = core
        self._jobs = client.CustomObjectsApi(core.api_client)
        self._kind = (GROUP, VERSION, settings.namespace, PLURAL)
        self._name = name

    def create(self, manifest: Mapping[str, Any]) -> None:
        """Creates the job, after deleting one with the same name, which a killed attempt left.

        Raises:
            SettingsError: The cluster has no TFJobs, or we may not create one.
            ClusterError: The API stayed down, or refuses the job.
        """

        def delete_the_other(_state: tenacity.RetryCallState) -> None:
            self.delete()

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda error: getattr(error, "status", None) == cluster.CONFLICT),
            before_sleep=delete_the_other,
            **_pacing(PATIENCE_SECONDS),
        )
        make = self._jobs.create_namespaced_custom_object
        try:
            retrying(self._patiently, "make the TFJob", make, *self._kind, manifest)
        except ApiException as error:
            if error.status == cluster.NOT_FOUND:
                raise SettingsError(
                    f"the cluster knows no {GROUP}/{VERSION} TFJob, or no namespace {self._settings.namespace}.",
                    "Install Kubeflow's training operator; see docs/kubeflow.md.",
                ) from error
            raise ClusterError(f"Kubernetes refused the TFJob {self._name}: {describe_error(error)}.") from error

    def conditions(self) -> dict[str, str] | None:
        """The conditions that hold for the job, with their messages; None if the job is gone.

        Raises:
            SettingsError: We have no permission.
            ClusterError: The API stayed down, or refuses.
        """
        try:
            job = self._patiently("get the TFJob", self._jobs.get_namespaced_custom_object, *self._kind, self._name)
        except ApiException as error:
            if error.status == cluster.NOT_FOUND:
                return None
            raise ClusterError(
                f"Kubernetes refused to show the TFJob {self._name}: {describe_error(error)}."
            ) from error
        conditions = job.get("status", {}).get("conditions") or []
        return {entry["type"]: entry.get("message", "") for entry in conditions if entry["status"] == "True"}

    def pods(self) -> list[Pod]:
        """The job's pods.

        Raises:
            SettingsError: We have no permission.
            ClusterError: The API stayed down, or refuses.
        """
        wanted = f"{JOB_LABEL}={self._name}"
        ask = self._core.list_namespaced_pod
        try:
            listed = self._patiently("list pods", ask, self._settings.namespace, label_selector=wanted)
        except ApiException as error:
            raise ClusterError(
                f"Kubernetes refused to list the pods of {self._name}: {describe_error(error)}."
            ) from error
        return [Pod.from_api(pod) for pod in listed.items]

    def log(self, pod: Pod, **keywords: int) -> str:
        """A pod's log, or why it cannot be read, which does not fail the training.

        Args:
            pod: The pod.
            **keywords: Arguments of `CoreV1Api.read_namespaced_pod_log`, such as `tail_lines`.
        """
        arguments: dict[str, Any] = {"container": CONTAINER, **keywords}
        ask = self._core.read_namespaced_pod_log
        try:
            return str(self._patiently("read a pod's log", ask, pod.name, self._settings.namespace, **arguments))
        except (ApiException, MillraceError) as error:
            return f"Its log cannot be read: {describe_error(error)}.\n"

    def delete(self) -> str | None:
        """Deletes the job with its pods.

        Returns:
            Why it could not be deleted, or None; if it could not, the job's own time limits do it later.
        """
        ask = self._jobs.delete_namespaced_custom_object
        arguments: dict[str, Any] = {"patience": LAST_PATIENCE_SECONDS, "propagation_policy": "Foreground"}
        try:
            self._patiently("delete the TFJob", ask, *self._kind, self._name, **arguments)
        except (ApiException, MillraceError) as error:
            if getattr(error, "status", None) != cluster.NOT_FOUND:
                return describe_error(error)
        return None

    def _patiently(
        self, what: str, ask: Callable[..., Any], *positional: Any, patience: float | None = None, **named: Any
    ) -> Any:
        """Calls the API, retrying while it is down.

        Raises:
            SettingsError: We have no permission.
            ClusterError: It stayed down.
            ApiException: It refuses for another reason.
        """
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_may_pass),
            **_pacing(PATIENCE_SECONDS if patience is None else patience),
        )
        try:
            return retrying(ask, *positional, _request_timeout=cluster.TIMEOUT_SECONDS, **named)
        except (ApiException, urllib3.exceptions.HTTPError) as error:
            if _may_pass(error):
                raise ClusterError(
                    f"Kubernetes' API stayed away when asked to {what}: {describe_error(error)}.", "Run the node again."
                ) from error
            if error.status in cluster.FORBIDDEN:
                raise SettingsError(
                    f"Kubernetes does not let the ServiceAccount {self._settings.service_account} {what} in the "
                    f"namespace {self._settings.namespace}: {describe_error(error)}.",
                    "Apply environments/kubeflow/namespace.yaml again; see docs/kubeflow.md.",
                ) from error
            raise


def _pacing(patience: float) -> dict[str, Any]:
    """tenacity's settings for how often, and for how long, a call is retried."""
    wait, stop = tenacity.wait_fixed(POLL_SECONDS), tenacity.stop_after_delay(patience)
    return {"wait": wait, "stop": stop, "reraise": True}


def _may_pass(error: BaseException) -> bool:
    """Whether an error means that the API is down, not that it refuses."""
    if isinstance(error, ApiException):
        return error.status in PASSING or error.status >= 500
    return isinstance(error, urllib3.exceptions.HTTPError)


def describe_error(error: Exception) -> str:
    """An error in a few words."""
    if isinstance(error, ApiException):
        return f"{error.status} {error.reason}"
    return error.what if isinstance(error, MillraceError) else str(error)
