"""Kubernetes' API on loopback, with the training operator behind it: TFJobs whose pods are processes on this machine.

The operator's behaviour is taken from its sources (v1.8): TF_CONFIG, labels, conditions, and which pods it ends.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import kubernetes_validate
from kubernetes import client

JOBS = "/apis/kubeflow.org/v1/namespaces/kubeflow/tfjobs"
PODS = "/api/v1/namespaces/kubeflow/pods"
KUBERNETES_VERSION = "1.30"
LABELS = "training.kubeflow.org"


@dataclass
class Pod:
    """A pod that is a process."""

    name: str
    kind: str
    index: int
    process: subprocess.Popen[bytes]
    log: Path
    deleted: bool = False

    @property
    def phase(self) -> str:
        code = self.process.poll()
        return "Running" if code is None else "Failed" if code else "Succeeded"

    def as_json(self, job: str) -> dict[str, Any]:
        """The pod as the API shows it."""
        code = self.process.poll()
        state: dict[str, Any] = {"running": {}}
        if code is not None:
            exit_code = code if code >= 0 else 128 - code
            reason = "Completed" if code == 0 else "OOMKilled" if code == -9 else "Error"
            state = {"terminated": {"exitCode": exit_code, "reason": reason, "finishedAt": "2026-01-01T00:00:00Z"}}
        status = {"name": "tensorflow", "state": state, "image": "", "imageID": "", "ready": True, "restartCount": 0}
        labels = {f"{LABELS}/job-name": job, f"{LABELS}/replica-type": self.kind}
        labels[f"{LABELS}/replica-index"] = str(self.index)
        # As a node under pressure ends a pod that it evicts.
        evicted = {"reason": "Evicted"} if code == -signal.SIGTERM and not self.deleted else {}
        deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if self.deleted else {}
        return {
            "metadata": {"name": self.name, "labels": labels, **deleted},
            "status": {"phase": self.phase, "containerStatuses": [status], **evicted},
        }


class KubernetesStandin:
    """The stand-in for Kubernetes.

    Args:
        folder: The folder of the pods' logs.

    Attributes:
        answers: Method -> statuses of its next responses in place of the right ones: `{"GET": [503]}`.
        created: The TFJobs that were created.
        requests: Method and path of each request.
        jobs: The existing TFJobs.
    """

    def __init__(self, folder: Path) -> None:
        self.answers: dict[str, list[int]] = {}
        self.created: list[dict[str, Any]] = []
        self.requests: list[tuple[str, str]] = []
        self.jobs: dict[str, dict[str, Any]] = {}
        self.pods: dict[str, list[Pod]] = {}
        self._folder = folder
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def core(self) -> client.CoreV1Api:
        """The client of this cluster."""
        configuration = client.Configuration(host=f"http://127.0.0.1:{self._server.server_port}")
        configuration.retries = False
        return client.CoreV1Api(client.ApiClient(configuration))

    def start(self) -> KubernetesStandin:
        """Starts it."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stops the server and the pods."""
        for name in list(self.jobs):
            self._delete(name)
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        """Returns status and body of the response to a request."""
        self.requests.append((method, path))
        if self.answers.get(method):
            status = self.answers[method].pop(0)
            return status, {"kind": "Status", "message": f"told to answer {status}"}
        if path == JOBS and method == "POST":
            return self._create(body)
        if path.startswith(f"{JOBS}/"):
            return self._job(method, path.removeprefix(f"{JOBS}/"))
        if path == PODS:
            [selector] = query["labelSelector"]
            job = selector.removeprefix(f"{LABELS}/job-name=")
            return 200, {"kind": "PodList", "items": [pod.as_json(job) for pod in self.pods.get(job, [])]}
        if path.startswith(f"{PODS}/") and path.endswith("/log"):
            return self._log(path.split("/")[-2], query)
        return 404, {"kind": "Status"}

    def _create(self, job: dict[str, Any]) -> tuple[int, Any]:
        name = job["metadata"]["name"]
        if name in self.jobs:
            return 409, {"kind": "Status", "reason": "AlreadyExists"}
        check_pods(job)
        self.created.append(job)
        self.jobs[name] = job
        self._start_pods(name, job["spec"]["tfReplicaSpecs"])
        return 201, job

    def _job(self, method: str, name: str) -> tuple[int, Any]:
        if name not in self.jobs:
            return 404, {"kind": "Status", "reason": "NotFound"}
        if method == "DELETE":
            self._delete(name)
            return 200, {"kind": "Status"}
        return 200, self.jobs[name] | {"status": {"conditions": self._conditions(name)}}

    def _conditions(self, name: str) -> list[dict[str, str]]:
        """The conditions that the operator sets: with a chief, the job has succeeded when the chief has."""
        pods = self.pods[name]
        conditions = [{"type": "Created", "status": "True"}]
        failed = [pod for pod in pods if pod.phase == "Failed"]
        succeeded = any(pod.kind == "chief" and pod.phase == "Succeeded" for pod in pods)
        if succeeded or failed:
            message = f"TFJob {name} has failed because {len(failed)} replica(s) failed."
            conditions.append({"type": "Succeeded" if succeeded else "Failed", "status": "True", "message": message})
            for pod in pods:
                if pod.phase == "Running":
                    end(pod)
        return conditions

    def _log(self, pod_name: str, query: dict[str, list[str]]) -> tuple[int, Any]:
        for pods in self.pods.values():
            for pod in pods:
                if pod.name == pod_name:
                    lines = pod.log.read_text().splitlines(keepends=True)
                    return 200, "".join(lines[-int(query.get("tailLines", ["1000000"])[0]) :])
        return 404, {"kind": "Status"}

    def _delete(self, name: str) -> None:
        del self.jobs[name]
        for pod in self.pods.pop(name):
            end(pod)

    def _start_pods(self, job: str, specs: dict[str, Any]) -> None:
        cluster = _addresses({kind.lower(): spec["replicas"] for kind, spec in specs.items()})
        self.pods[job] = []
        for kind, spec in specs.items():
            [container] = spec["template"]["spec"]["containers"]
            for index in range(spec["replicas"]):
                task = {"cluster": cluster, "task": {"type": kind.lower(), "index": index}, "environment": "cloud"}
                variables = {
                    variable["name"]: variable["value"] for variable in container["env"] if "value" in variable
                }
                name = f"{job}-{kind.lower()}-{index}"
                log = self._folder / f"{name}.log"
                # A pod inherits nothing from the environment in which it was created, only the image's own.
                inherited = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
                environ = inherited | variables | {"TF_CONFIG": json.dumps(task)}
                with log.open("wb") as output:
                    process = subprocess.Popen(
                        container["command"], cwd=container["workingDir"], env=environ, stdout=output, stderr=output
                    )
                self.pods[job].append(Pod(name, kind.lower(), index, process, log))

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        standin = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _handle(self) -> None:
                split = urlsplit(self.path)
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                status, document = standin.answer(self.command, split.path, parse_qs(split.query), body)
                text = document.encode() if isinstance(document, str) else json.dumps(document).encode()
                self.send_response(status)
                kind = "text/plain" if isinstance(document, str) else "application/json"
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_DELETE = _handle  # noqa: N815 (the server's names)

            def log_message(self, *_: Any) -> None:
                """Writes nothing to standard error."""

        return Handler


def check_pods(job: dict[str, Any]) -> None:
    """Checks a TFJob's pods against Kubernetes' published schemas, unknown fields refused."""
    for spec in job["spec"]["tfReplicaSpecs"].values():
        template = {"apiVersion": "v1", "kind": "PodTemplate", "template": spec["template"]}
        kubernetes_validate.validate(template, KUBERNETES_VERSION, strict=True)


def end(pod: Pod) -> None:
    """Ends a pod's process, and shows the pod as one that is being deleted."""
    pod.deleted = True
    pod.process.kill()
    pod.process.wait()


def _addresses(numbers: dict[str, int]) -> dict[str, list[str]]:
    """Assigns free ports on loopback in place of the operator's services."""
    addresses: dict[str, list[str]] = {}
    with ExitStack() as reserved:
        for kind, number in numbers.items():
            for _ in range(number):
                listener = reserved.enter_context(socket.socket())
                listener.bind(("127.0.0.1", 0))
                addresses.setdefault(kind, []).append(f"127.0.0.1:{listener.getsockname()[1]}")
    return addresses
