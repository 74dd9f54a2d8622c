"""A stand-in for Kubeflow Pipelines' v2beta1 API on loopback; it accepts only what the published document allows."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import published_api
from aiohttp import web
from click.testing import Result

PROJECT = Path(__file__).resolve().parents[3]
Millrace = Callable[..., Result]
"""Calls `millrace kubeflow` with words."""

NOW = "2026-01-02T03:04:05Z"
NEVER = "1970-01-01T00:00:00Z"
LISTS = {"pipelines": "pipelines", "experiments": "experiments", "runs": "runs", "recurringruns": "schedules"}
FIELDS = {"recurringruns": "recurringRuns"}


class Standin:
    """Keeps pipelines, experiments, runs and schedules in memory.

    Attributes:
        url: Where it listens.
        faults: What was wrong with the requests, or with its own responses.
        requests: `(method, path, query, body)` of each request.
        refusals: Responses that the next requests get instead: `(status, message)`.
        multi_user: What its health check says.
        page_size: How many items it puts on a page at most.
        tasks: States by task of runs that are requested; a list is used up one request at a time.
        states: The states of runs, one per request; the last one stays.
    """

    def __init__(self) -> None:
        self.url = ""
        self.faults: list[str] = []
        self.requests: list[tuple[str, str, dict[str, str], Any]] = []
        self.refusals: list[tuple[int, str]] = []
        self.multi_user = False
        self.page_size = 2
        self.headers: list[dict[str, str]] = []
        self.pipelines: list[dict[str, Any]] = []
        self.versions: list[dict[str, Any]] = []
        self.experiments: list[dict[str, Any]] = []
        self.runs: list[dict[str, Any]] = []
        self.schedules: list[dict[str, Any]] = []
        self.uploads: list[str] = []
        self.states: list[tuple[str, dict[str, str]]] = []
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def start(self) -> Standin:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(application)
        self._loop.run_until_complete(runner.setup())
        site = web.TCPSite(runner, "127.0.0.1", 0)
        self._loop.run_until_complete(site.start())
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()

    async def _answer(self, request: web.Request) -> web.Response:
        query, body, form = dict(request.query), None, {}
        if request.content_type == "multipart/form-data":
            form = {name: field.file.read().decode() for name, field in (await request.post()).items()}  # type: ignore[union-attr]
        elif text := await request.text():
            body = json.loads(text)
        self.requests.append((request.method, request.path, query, body))
        self.headers.append(dict(request.headers))
        if self.refusals:
            status, message = self.refusals.pop(0)
            return web.json_response(
                {"error": message, "code": 3, "message": message + "\nstack\nstack"}, status=status
            )
        faults = published_api.faults_of_request(request.method, request.path, query, body, form)
        if faults:
            self.faults += faults
            return web.json_response({"message": "; ".join(faults)}, status=400)
        response = self._respond(request.method, request.path.removeprefix("/apis/v2beta1/"), query, body, form)
        if response is None:
            return web.json_response({"message": f"{request.path} not found"}, status=404)
        self.faults += published_api.faults_of_response(request.method, request.path, response)
        return web.json_response(response)

    def _respond(self, method: str, path: str, query: dict[str, str], body: Any, form: dict[str, str]) -> Any:
        kind, *parts = path.replace(":", "/").split("/")
        if kind == "healthz":
            return {"multi_user": self.multi_user}
        if kind == "pipelines" and parts:
            return self._version(method, query, form)
        if method == "GET" and not parts:
            items = getattr(self, LISTS[kind])
            return self._page(FIELDS.get(kind, kind), items[::-1] if kind == "runs" else items, query)
        if method == "GET":
            return self._run(parts[0])
        if method == "POST" and not parts:
            return self._new(kind, body)
        return self._act(kind, parts[0], "DELETE" if method == "DELETE" else parts[1])

    def _version(self, method: str, query: dict[str, str], form: dict[str, str]) -> Any:
        if method == "GET":
            return self._page("pipeline_versions", self.versions, query)
        self.uploads.append(form["uploadfile"])
        name = query["name"]
        version = {"pipeline_id": query["pipelineid"], "pipeline_version_id": f"version-{name}", "display_name": name}
        return self._keep(self.versions, version)

    def _new(self, kind: str, body: dict[str, Any]) -> dict[str, Any]:
        own = {
            "pipelines": {"pipeline_id": "pipeline"},
            "experiments": {"experiment_id": "experiment"},
            "runs": {"run_id": f"id-{len(self.runs)}", "state": "PENDING", "created_at": NOW},
            "recurringruns": {"recurring_run_id": f"schedule-{len(self.schedules)}", "status": "ENABLED"},
        }
        return self._keep(getattr(self, LISTS[kind]), {**body, **own[kind]})

    def _act(self, kind: str, name: str, verb: str) -> Any:
        if verb == "DELETE":
            self.schedules = [schedule for schedule in self.schedules if schedule["recurring_run_id"] != name]
            return {}
        if kind == "runs":
            return self._change(self.runs, "run_id", name, {"state": "CANCELING"})
        return self._change(self.schedules, "recurring_run_id", name, {"status": verb.upper() + "D"})

    def _keep(self, items: list[dict[str, Any]], item: dict[str, Any]) -> dict[str, Any]:
        items.append(item)
        return item

    def _change(self, items: list[dict[str, Any]], key: str, wanted: str, change: dict[str, Any]) -> Any:
        for item in items:
            if item[key] == wanted:
                item.update(change)
                return {}
        return None

    def _page(self, field: str, items: list[dict[str, Any]], query: dict[str, str]) -> dict[str, Any]:
        if query.get("filter"):
            (predicate,) = json.loads(query["filter"])["predicates"]
            assert (predicate["operation"], predicate["key"]) == ("EQUALS", "display_name")
            items = [item for item in items if item["display_name"] == predicate["stringValue"]]
        begin = int(query.get("page_token") or 0)
        end = begin + min(self.page_size, int(query["page_size"]))
        more = {"next_page_token": str(end)} if end < len(items) else {}
        return {field: items[begin:end], "total_size": len(items), **more}

    def _run(self, run_id: str) -> Any:
        run = next((entry for entry in self.runs if entry["run_id"] == run_id), None)
        if run is None or not self.states:
            return run
        state, tasks = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        run["state"] = state
        details = [_detail(name, word) for name, word in tasks.items()]
        run["run_details"] = {"task_details": [_detail("root", state), *details]}
        return run


def _detail(name: str, state: str) -> dict[str, Any]:
    ended = "2026-01-02T03:04:17Z" if state in {"SUCCEEDED", "FAILED", "CANCELED"} else NEVER
    error = {"error": {"code": 2, "message": "OOMKilled", "details": []}} if state == "FAILED" else {}
    return {"display_name": name, "state": state, "create_time": NOW, "start_time": NOW, "end_time": ended, **error}
