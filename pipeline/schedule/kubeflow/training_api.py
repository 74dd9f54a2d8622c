"""What a training asks of Kubernetes' API: its TFJob, the pods, their logs; again and again while the API is away."""

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

SECONDS_BETWEEN_LOOKS = 5.0
PATIENCE_SECONDS = 120.0
"""How long the API may be away."""

LAST_PATIENCE_SECONDS = 10.0
"""The same when the job is deleted: a task that was told to end has half a minute."""

PASSING = {408, 429}
"""Refusals that pass, besides those from 500 on."""

JOB_LABEL = "training.kubeflow.org/job-name"
KIND_LABEL = "training.kubeflow.org/replica-type"
INDEX_LABEL = "training.kubeflow.org/replica-index"


DISRUPTED = "DisruptionTarget"
"""The condition of a pod that the cluster takes away: preempted, evicted, its machine gone; from Kubernetes 1.26 on."""

TAKEN_AWAY = {"Evicted", "NodeLost", "NodeShutdown", "Preempting", "Shutdown", "Terminated"}
"""The same in a pod's own `reason`, as older ones have it."""


@dataclass(frozen=True)
class Pod:
    """A pod of the job.

    Attributes:
        name: Its name.
        role: Its process, such as `worker-0`.
        phase: Kubernetes' word for how far it is.
        reason: Why it waits, or how it ended; empty where there is nothing to say.
        exit_code: Its process's; None where it has none.
        ended: When it ended.
        deleted: Whether it is being deleted, as those are that still run when another one has failed.
        taken_away: Whether the cluster took it away, for its own reasons.
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
        """The pod as Kubernetes' client gives it."""
        labels = pod.metadata.labels
        states = [status.state for status in pod.status.container_statuses or () if status.name == CONTAINER]
        ended = states[0].terminated if states else None
        waits = states[0].waiting if states else None
        disrupted = {one.type for one in pod.status.conditions or () if one.status == "True"} & {DISRUPTED}
        return cls(
            name=pod.metadata.name,
            role=f"{labels[KIND_LABEL]}-{labels[INDEX_LABEL]}",
            phase=pod.status.phase,
            reason=pod.status.reason or (ended and ended.reason) or (waits and waits.reason) or "",
            exit_code=ended.exit_code if ended else None,
            ended=ended.finished_at if ended else None,
            deleted=pod.metadata.deletion_timestamp is not None,
            taken_away=bool(disrupted) or pod.status.reason in TAKEN_AWAY,
        )

    @property
    def failed(self) -> bool:
        """Whether it failed by itself."""
        return self.phase == "Failed" and not self.deleted

    @property
    def state(self) -> str:
        """How far it is, in words, as kubectl shows it."""
        if self.deleted:
            return "Terminating"
        return f"{self.phase} ({self.reason})" if self.reason else self.phase


class TrainingApi:
    """Speaks of one TFJob.

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
        """Makes the job; one of its name is what a killed attempt left, and goes first.

        Raises:
            SettingsError: The cluster knows no TFJobs, or we may not make one.
            ClusterError: The API stayed away, or refuses the job.
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
        """The conditions that the job is in, with their messages; None where the job is gone.

        Raises:
            SettingsError: We may not look.
            ClusterError: The API stayed away, or refuses.
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
        return {one["type"]: one.get("message", "") for one in conditions if one["status"] == "True"}

    def pods(self) -> list[Pod]:
        """The job's pods.

        Raises:
            SettingsError: We may not look.
            ClusterError: The API stayed away, or refuses.
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
        """What a pod printed, or why that cannot be read: a training does not fail for that.

        Args:
            pod: The pod.
            **keywords: Of `CoreV1Api.read_namespaced_pod_log`, such as `tail_lines`.
        """
        given: dict[str, Any] = {"container": CONTAINER, **keywords}
        ask = self._core.read_namespaced_pod_log
        try:
            return str(self._patiently("read a pod's log", ask, pod.name, self._settings.namespace, **given))
        except (ApiException, MillraceError) as error:
            return f"Its log cannot be read: {describe_error(error)}.\n"

    def delete(self) -> str | None:
        """Deletes the job with its pods.

        Returns:
            Why it could not be, where it could not; the job's own time limits do it then.
        """
        ask = self._jobs.delete_namespaced_custom_object
        given: dict[str, Any] = {"patience": LAST_PATIENCE_SECONDS, "propagation_policy": "Foreground"}
        try:
            self._patiently("delete the TFJob", ask, *self._kind, self._name, **given)
        except (ApiException, MillraceError) as error:
            if getattr(error, "status", None) != cluster.NOT_FOUND:
                return describe_error(error)
        return None

    def _patiently(
        self, what: str, ask: Callable[..., Any], *given: Any, patience: float | None = None, **named: Any
    ) -> Any:
        """Asks the API, again and again while it is away.

        Raises:
            SettingsError: We may not ask this.
            ClusterError: It stayed away.
            ApiException: It refuses for another reason.
        """
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_may_pass),
            **_pacing(PATIENCE_SECONDS if patience is None else patience),
        )
        try:
            return retrying(ask, *given, _request_timeout=cluster.TIMEOUT_SECONDS, **named)
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
    """How often, and how long, something is tried."""
    wait, stop = tenacity.wait_fixed(SECONDS_BETWEEN_LOOKS), tenacity.stop_after_delay(patience)
    return {"wait": wait, "stop": stop, "reraise": True}


def _may_pass(error: BaseException) -> bool:
    """Whether an error says that the API is away, and not that it refuses."""
    if isinstance(error, ApiException):
        return error.status in PASSING or error.status >= 500
    return isinstance(error, urllib3.exceptions.HTTPError)


def describe_error(error: Exception) -> str:
    """What an error says, in few words."""
    if isinstance(error, ApiException):
        return f"{error.status} {error.reason}"
    return error.what if isinstance(error, MillraceError) else str(error)
