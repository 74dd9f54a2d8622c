"""Kubeflow Pipelines' API as the commands use it, with its faults in words."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import kfp_server_api as api
import urllib3

from pipeline.kubeflow import faults
from pipeline.kubeflow.settings import KubeflowSettings

CONNECT_SECONDS = 5
READ_SECONDS = 60
PAGE = 100
DIGEST_LENGTH = 12


@dataclass(frozen=True)
class Version:
    """A pipeline's version in Kubeflow.

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
        """As runs name it."""
        return api.V2beta1PipelineVersionReference(pipeline_id=self.pipeline_id, pipeline_version_id=self.version_id)


class Client:
    """Speaks to the API that the settings name.

    Args:
        settings: Where it is.

    Raises:
        SettingsError: The token's variable is not set.
    """

    def __init__(self, settings: KubeflowSettings) -> None:
        self._settings = settings
        configuration = api.Configuration(host=settings.host)
        # One attempt, so that a host that is not there is told at once.
        configuration.retries = urllib3.Retry(0)
        if settings.ca_certificate:
            configuration.ssl_ca_cert = settings.ca_certificate
        if settings.token_env:
            configuration.api_key["authorization"] = faults.token(settings.token_env)
            configuration.api_key_prefix["authorization"] = "Bearer"
        self._http = api.ApiClient(configuration)
        self._pipelines = api.PipelineServiceApi(self._http)
        self._uploads = api.PipelineUploadServiceApi(self._http)
        self._experiments = api.ExperimentServiceApi(self._http)
        self._runs = api.RunServiceApi(self._http)
        self._recurring = api.RecurringRunServiceApi(self._http)

    @cached_property
    def _namespace(self) -> Mapping[str, str]:
        """The namespace, as an installation for several users asks for it; one for a single user refuses it.

        Raises:
            ClusterError: The API cannot be reached.
        """
        health = self._call("look whether it is there", api.HealthzServiceApi(self._http).get_healthz)
        return {"namespace": self._settings.namespace} if health.multi_user else {}

    def reach(self) -> None:
        """Looks whether the API is there.

        Raises:
            ClusterError: It is not.
        """
        _ = self._namespace

    def upload(self, name: str, description: str, text: str) -> Version:
        """Makes a pipeline, or a new version of it; one with the same text is taken as it is.

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
        """The id of the experiment, made if need be."""
        name = self._settings.experiment
        found = self._experiment_found()
        if found is None:
            body = api.V2beta1Experiment(display_name=name, **self._namespace)
            found = self._call(f"make the experiment {name}", self._experiments.create_experiment, body)
        return str(found.experiment_id)

    def _experiment_found(self) -> Any | None:
        name = self._settings.experiment
        return self._named(self._experiments.list_experiments, "experiments", name, **self._namespace)

    def start(self, name: str, version: Version, parameters: Mapping[str, Any]) -> Any:
        """Starts a run."""
        body = api.V2beta1Run(
            display_name=name,
            experiment_id=self.experiment(),
            pipeline_version_reference=version.reference,
            runtime_config=api.V2beta1RuntimeConfig(parameters=dict(parameters)),
            service_account=self._settings.service_account,
        )
        return self._call(f"start the run {name}", self._runs.create_run, body)

    def runs(self, limit: int) -> list[Any]:
        """The experiment's runs, newest first."""
        experiment = self._experiment_found()
        if experiment is None:
            return []
        where = {"experiment_id": experiment.experiment_id, "sort_by": "created_at desc"}
        pages = self._pages(self._runs.list_runs, "runs", limit, **where)
        return [run for page in pages for run in page][:limit]

    def run(self, run_id: str) -> Any:
        """A run with its tasks."""
        return self._call(f"look at the run {run_id}", self._runs.get_run, run_id)

    def cancel(self, run_id: str) -> None:
        """Ends a run that goes on."""
        self._call(f"cancel the run {run_id}", self._runs.terminate_run, run_id)

    def schedule(self, name: str, version: Version, parameters: Mapping[str, Any], **policy: Any) -> Any:
        """Makes a recurring run.

        Args:
            name: Its name.
            version: What it runs.
            parameters: With what.
            policy: When, and how many at once: `trigger`, `max_concurrency`, `no_catchup`.
        """
        body = api.V2beta1RecurringRun(
            display_name=name,
            experiment_id=self.experiment(),
            pipeline_version_reference=version.reference,
            runtime_config=api.V2beta1RuntimeConfig(parameters=dict(parameters)),
            service_account=self._settings.service_account,
            mode=api.RecurringRunMode.ENABLE,
            **policy,
        )
        return self._call(f"make the schedule {name}", self._recurring.create_recurring_run, body)

    def schedules(self) -> list[Any]:
        """The experiment's recurring runs."""
        experiment = self._experiment_found()
        if experiment is None:
            return []
        listed = self._recurring.list_recurring_runs
        pages = self._pages(listed, "recurring_runs", None, experiment_id=experiment.experiment_id)
        return [found for page in pages for found in page]

    def pause(self, schedule_id: str) -> None:
        """Lets a recurring run start nothing until it is resumed."""
        self._call(f"pause the schedule {schedule_id}", self._recurring.disable_recurring_run, schedule_id)

    def resume(self, schedule_id: str) -> None:
        """Lets a paused recurring run go on."""
        self._call(f"resume the schedule {schedule_id}", self._recurring.enable_recurring_run, schedule_id)

    def delete(self, schedule_id: str) -> None:
        """Removes a recurring run; its runs stay."""
        self._call(f"delete the schedule {schedule_id}", self._recurring.delete_recurring_run, schedule_id)

    def _named(self, ask: Callable[..., Any], field: str, name: str, **where: Any) -> Any | None:
        """The one with that name in a list that the API filters."""
        predicate = {"operation": "EQUALS", "key": "display_name", "stringValue": name}
        for page in self._pages(ask, field, None, filter=json.dumps({"predicates": [predicate]}), **where):
            for found in page:
                if found.display_name == name:
                    return found
        return None

    def _pages(self, ask: Callable[..., Any], field: str, limit: int | None, **where: Any) -> Iterator[list[Any]]:
        seen, token = 0, ""
        while True:
            paging = {"page_size": PAGE, **({"page_token": token} if token else {})}
            answer = self._call(f"list its {field}", ask, **where, **paging)
            page = getattr(answer, field) or []
            yield page
            seen, token = seen + len(page), answer.next_page_token
            if not token or (limit is not None and seen >= limit):
                return

    def _call(self, what: str, ask: Callable[..., Any], *positional: Any, **keywords: Any) -> Any:
        with faults.told(self._settings.host, what):
            return ask(*positional, _request_timeout=(CONNECT_SECONDS, READ_SECONDS), **keywords)
