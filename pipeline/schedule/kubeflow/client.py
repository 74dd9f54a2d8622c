"""A client of Kubeflow Pipelines' API for the commands; its errors become ours."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import kfp_server_api as api
import urllib3

from contracts.errors import ClusterError, SettingsError
from pipeline.plan.kubeflow_settings import KubeflowSettings

REFUSALS = {
    401: "Set the variable that `kubeflow.token_env` names to a token of yours.",
    403: "Ask for a role in the namespace that may do this; see docs/kubeflow.md.",
}
"""What to do about a response's HTTP status."""


def read_token(variable: str) -> str:
    """Reads the token from an environment variable.

    Raises:
        SettingsError: It is not set.
    """
    value = os.environ.get(variable)
    if not value:
        raise SettingsError(
            f"the environment variable {variable} is not set; `kubeflow.token_env` says that it holds the API's token.",
            f"Set it: export {variable}=…",
        )
    return value


@contextmanager
def translated_errors(host: str, what: str) -> Iterator[None]:
    """Turns the client's exceptions into one error.

    Args:
        host: The API's address.
        what: What the API is being asked to do, such as `start the run taxi-1`.

    Raises:
        ClusterError: The API cannot be reached or refuses.
    """
    try:
        yield
    except api.ApiException as error:
        message = _error_message(error)
        is_known = error.status in REFUSALS
        raise ClusterError(
            f"Kubeflow Pipelines at {host} refused to {what}: {error.status} {message}.",
            REFUSALS[error.status] if is_known else None,
        ) from error
    except urllib3.exceptions.HTTPError as error:
        reason = getattr(error, "reason", None) or error
        raise ClusterError(
            f"Kubeflow Pipelines at {host} cannot be reached: {type(reason).__name__}: {_without_object(reason)}.",
            "Check `kubeflow.host`; on your own machine first:  "
            "kubectl port-forward -n kubeflow svc/ml-pipeline-ui 8080:80",
        ) from error


def _without_object(reason: object) -> str:
    """urllib3's message without the connection object's memory address."""
    return str(reason).partition(">: ")[2] or str(reason)


def _error_message(error: Any) -> str:
    """The first line of the message in the API's response, which also contains Go's stack trace."""
    body = error.body.decode(errors="replace") if isinstance(error.body, bytes) else error.body or ""
    try:
        content = json.loads(body)
    except ValueError:
        content = None
    text = str(content.get("message") or content.get("error") or body) if isinstance(content, dict) else body
    return text.splitlines()[0].rstrip(".") if text.strip() else str(error.reason)


CONNECT_SECONDS = 5
READ_SECONDS = 60
PAGE = 100
DIGEST_LENGTH = 12


@dataclass(frozen=True)
class Version:
    """A version of a pipeline in Kubeflow.

    Attributes:
        pipeline_id: The pipeline.
        version_id: The version.
        name: The version's name: a digest of the spec.
        new: Whether it was uploaded just now.
    """

    pipeline_id: str
    version_id: str
    name: str
    new: bool

    @property
    def reference(self) -> Any:
        """The reference by which runs name it."""
        return api.V2beta1PipelineVersionReference(pipeline_id=self.pipeline_id, pipeline_version_id=self.version_id)


class _Service:
    """A service of the generated REST client; newer ones put the service's name before the methods'.

    Args:
        service: The generated service.
    """

    def __init__(self, service: Any) -> None:
        self._service = service
        words = re.findall("[A-Z][a-z]+", type(service).__name__.removesuffix("Api"))
        self._prefix = "_".join(words).lower()

    def __getattr__(self, method: str) -> Callable[..., Any]:
        named = method if hasattr(self._service, method) else f"{self._prefix}_{method}"
        return cast(Callable[..., Any], getattr(self._service, named))


class Client:
    """A client of the API that the settings name.

    Args:
        settings: The environment's `kubeflow` section.

    Raises:
        SettingsError: The token's variable is not set.
    """

    def __init__(self, settings: KubeflowSettings) -> None:
        self._settings = settings
        configuration = api.Configuration(host=settings.host)
        # A single attempt, so that a missing host is reported at once.
        configuration.retries = urllib3.Retry(0)
        if settings.ca_certificate:
            configuration.ssl_ca_cert = settings.ca_certificate
        if settings.token_env:
            configuration.api_key["authorization"] = read_token(settings.token_env)
            configuration.api_key_prefix["authorization"] = "Bearer"
        self._http = api.ApiClient(configuration)
        self._pipelines = _Service(api.PipelineServiceApi(self._http))
        self._uploads = _Service(api.PipelineUploadServiceApi(self._http))
        self._experiments = _Service(api.ExperimentServiceApi(self._http))
        self._runs = _Service(api.RunServiceApi(self._http))
        self._recurring = _Service(api.RecurringRunServiceApi(self._http))

    @cached_property
    def _namespace(self) -> Mapping[str, str]:
        """The namespace parameter, which multi-user installations require and single-user ones refuse.

        Raises:
            ClusterError: The API cannot be reached.
        """
        health = self._call("answer the health check", _Service(api.HealthzServiceApi(self._http)).get_healthz)
        return {"namespace": self._settings.namespace} if health.multi_user else {}

    def check_reachable(self) -> None:
        """Checks that the API can be reached.

        Raises:
            ClusterError: It cannot.
        """
        _ = self._namespace

    def upload(self, name: str, description: str, text: str) -> Version:
        """Creates a pipeline, or a new version of it; an existing version with the same text is reused.

        Raises:
            ClusterError: The API cannot be reached or refuses.
        """
        digest = hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]
        pipeline = self._named(self._pipelines.list_pipelines, "pipelines", name, **self._namespace)
        if pipeline is None:
            body = api.V2beta1Pipeline(display_name=name, description=description, **self._namespace)
            pipeline = self._call(f"make the pipeline {name}", self._pipelines.create_pipeline, body)
        listed = self._pipelines.list_pipeline_versions
        version = self._named(listed, "pipeline_versions", digest, pipeline_id=pipeline.pipeline_id)
        if version is not None:
            return Version(pipeline.pipeline_id, version.pipeline_version_id, digest, new=False)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{name}.yaml"
            path.write_text(text, encoding="utf-8")
            version = self._call(
                f"upload a version of the pipeline {name}",
                self._uploads.upload_pipeline_version,
                str(path),
                name=digest,
                pipelineid=pipeline.pipeline_id,
            )
        return Version(pipeline.pipeline_id, version.pipeline_version_id, digest, new=True)

    def experiment(self) -> str:
        """The id of the experiment, which is created if need be."""
        name = self._settings.experiment
        experiment = self._existing_experiment()
        if experiment is None:
            body = api.V2beta1Experiment(display_name=name, **self._namespace)
            experiment = self._call(f"make the experiment {name}", self._experiments.create_experiment, body)
        return str(experiment.experiment_id)

    def _existing_experiment(self) -> Any | None:
        name = self._settings.experiment
        return self._named(self._experiments.list_experiments, "experiments", name, **self._namespace)

    def start(self, name: str, version: Version, parameters: Mapping[str, Any]) -> Any:
        """Starts a run."""
        body = api.V2beta1Run(**self._work(name, version, parameters))
        return self._call(f"start the run {name}", self._runs.create_run, body)

    def runs(self, limit: int) -> list[Any]:
        """The experiment's runs, newest first."""
        experiment = self._existing_experiment()
        if experiment is None:
            return []
        where = {"experiment_id": experiment.experiment_id, "sort_by": "created_at desc"}
        pages = self._pages(self._runs.list_runs, "runs", limit, **where)
        return [run for page in pages for run in page][:limit]

    def run(self, run_id: str) -> Any:
        """A run with its tasks."""
        return self._call(f"look at the run {run_id}", self._runs.get_run, run_id)

    def cancel(self, run_id: str) -> None:
        """Stops a run that is going on."""
        self._call(f"cancel the run {run_id}", self._runs.terminate_run, run_id)

    def schedule(self, name: str, version: Version, parameters: Mapping[str, Any], **policy: Any) -> Any:
        """Creates a recurring run.

        Args:
            name: Its name.
            version: The version to run.
            parameters: The parameters' values.
            policy: When, and how many at a time: `trigger`, `max_concurrency`, `no_catchup`.
        """
        work = self._work(name, version, parameters)
        body = api.V2beta1RecurringRun(mode=api.RecurringRunMode.ENABLE, **work, **policy)
        return self._call(f"make the schedule {name}", self._recurring.create_recurring_run, body)

    def schedules(self) -> list[Any]:
        """The experiment's recurring runs."""
        experiment = self._existing_experiment()
        if experiment is None:
            return []
        listed = self._recurring.list_recurring_runs
        pages = self._pages(listed, "recurring_runs", None, experiment_id=experiment.experiment_id)
        return [schedule for page in pages for schedule in page]

    def pause(self, schedule_id: str) -> None:
        """Pauses a recurring run: it starts nothing until it is resumed."""
        self._call(f"pause the schedule {schedule_id}", self._recurring.disable_recurring_run, schedule_id)

    def resume(self, schedule_id: str) -> None:
        """Resumes a paused recurring run."""
        self._call(f"resume the schedule {schedule_id}", self._recurring.enable_recurring_run, schedule_id)

    def delete(self, schedule_id: str) -> None:
        """Deletes a recurring run; the runs that it started stay."""
        self._call(f"delete the schedule {schedule_id}", self._recurring.delete_recurring_run, schedule_id)

    def _work(self, name: str, version: Version, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that runs and recurring runs share: what runs, its parameters, and its service account."""
        return {
            "display_name": name,
            "experiment_id": self.experiment(),
            "pipeline_version_reference": version.reference,
            "runtime_config": api.V2beta1RuntimeConfig(parameters=dict(parameters)),
            "service_account": self._settings.service_account,
        }

    def _named(self, ask: Callable[..., Any], field: str, name: str, **where: Any) -> Any | None:
        """The item with that name in a list that the API filters; None if there is none."""
        predicate = {"operation": "EQUALS", "key": "display_name", "stringValue": name}
        for page in self._pages(ask, field, None, filter=json.dumps({"predicates": [predicate]}), **where):
            for listed in page:
                if listed.display_name == name:
                    return listed
        return None

    def _pages(self, ask: Callable[..., Any], field: str, limit: int | None, **where: Any) -> Iterator[list[Any]]:
        num_listed, token = 0, ""
        while True:
            paging = {"page_size": PAGE, **({"page_token": token} if token else {})}
            response = self._call(f"list its {field}", ask, **where, **paging)
            page = getattr(response, field) or []
            yield page
            num_listed, token = num_listed + len(page), response.next_page_token
            if not token or (limit is not None and num_listed >= limit):
                return

    def _call(self, what: str, ask: Callable[..., Any], *positional: Any, **keywords: Any) -> Any:
        with translated_errors(self._settings.host, what):
            return ask(*positional, _request_timeout=(CONNECT_SECONDS, READ_SECONDS), **keywords)
