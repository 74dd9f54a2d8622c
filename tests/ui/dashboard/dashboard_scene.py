"""A store with runs of a small pipeline as the dashboard shows it, and a browser without a screen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import ClientResponse
from aiohttp.test_utils import TestClient, TestServer
from store_builder import StoreBuilder

from contracts.fingerprints import Fingerprint
from pipeline.commands.pages import site
from pipeline.plan.environment import Environment
from pipeline.run.workplace import Workplace
from ui.dashboard.app import application
from ui.dashboard.site import Site

SCHEMA = 'feature { name: "fare" type: FLOAT }\n'


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def values(self) -> Any:
        return json.loads(self.text)


async def read(response: ClientResponse) -> Answer:
    return Answer(response.status, response.headers, await response.text())


def visit(shown: Site, visiting: Callable[[TestClient[Any, Any]], Awaitable[None]], **kwargs: Any) -> None:
    """Runs a dashboard for one visit."""

    async def run() -> None:
        async with TestClient(TestServer(application(shown, **kwargs))) as client:
            await visiting(client)

    asyncio.run(run())


def get(shown: Site, path: str, headers: Mapping[str, str] | None = None, method: str = "GET") -> Answer:
    """The response to one request."""
    replies: list[Answer] = []

    async def visiting(client: TestClient[Any, Any]) -> None:
        async with client.request(method, path, headers=headers, allow_redirects=False) as response:
            replies.append(await read(response))

    visit(shown, visiting)
    return replies[0]


def values(shown: Site, path: str) -> Any:
    """The JSON of a page."""
    answer = get(shown, f"{path}{'&' if '?' in path else '?'}format=json")
    assert answer.status == 200, answer.text
    return answer.values


def small_site(places: Environment) -> Site:
    """The site of `places`."""
    return site(Workplace(places))


def write_runs(builder: StoreBuilder, places: Environment, folder: Path) -> dict[str, int]:
    """Two runs of `small` that differ in a rate; the second took its schema from the first and was pushed.

    Returns:
        The ids of the artifacts by name and number of the run.
    """
    ids: dict[str, int] = {}
    for number, (rate, auc) in enumerate(((0.1, 0.9), (0.2, 0.95)), start=1):
        ids |= _run(builder, folder / str(number), number, rate, auc, ids)
        logs = places.log_root / f"small-{number}"
        logs.mkdir(parents=True)
        (logs / "Trainer.log").write_text("".join(f"epoch {epoch}\n" for epoch in range(5_000)))
        (logs / "report.html").write_text("<title>report</title>")
    served = places.serving_root / "small" / "7"
    served.mkdir(parents=True)
    pushed = {"pushed": 1, "pushed_version": "7", "pushed_destination": str(served), "current_model_id": ids["model2"]}
    ids["pushed"] = builder.artifact("PushedModel", **pushed)
    builder.node("Pusher", inputs={"model": ids["model2"]}, outputs={"pushed_model": ids["pushed"]})
    return ids


def _run(
    builder: StoreBuilder, folder: Path, number: int, rate: float, auc: float, before: Mapping[str, int]
) -> dict[str, int]:
    for name in ("schema", "evaluation", "model_run"):
        (folder / name).mkdir(parents=True)
    (folder / "schema" / "schema.pbtxt").write_text(SCHEMA)
    summary = {"blessed": True, "rows": 10, "metrics": [_metric(auc)], "slices": []}
    (folder / "evaluation" / "summary.json").write_text(json.dumps(summary))
    (folder / "model_run" / "tensorboard").mkdir()
    made = {
        f"examples{number}": builder.artifact("Examples", num_rows=10 * number, span=0),
        f"model{number}": builder.artifact("Model"),
        f"model_run{number}": builder.artifact("ModelRun", folder / "model_run"),
        f"evaluation{number}": builder.artifact("ModelEvaluation", folder / "evaluation"),
        f"blessing{number}": builder.artifact("ModelBlessing", blessed=1),
    }
    schema = before.get("schema1") or builder.artifact("Schema", folder / "schema")
    made[f"schema{number}"] = schema
    raw = Fingerprint(code={"gen.py": "aa"}, packages={"pyarrow": "10.0.1"}, files={"data.csv": f"digest{number}"})
    trained = Fingerprint(settings={"trainer.rate": rate, "trainer.epochs": 3}, code={"model.py": f"c{number}"})
    builder.run(f"small-{number}")
    builder.node("ExampleGen", fingerprint=raw, outputs={"examples": made[f"examples{number}"]})
    builder.node("SchemaGen", "COMPLETE" if number == 1 else "CACHED", outputs={"schema": schema})
    builder.node(
        "Trainer",
        fingerprint=trained,
        inputs={"examples": made[f"examples{number}"]},
        outputs={"model": made[f"model{number}"], "model_run": made[f"model_run{number}"]},
    )
    builder.node(
        "Evaluator",
        inputs={"model": made[f"model{number}"]},
        outputs={"evaluation": made[f"evaluation{number}"], "blessing": made[f"blessing{number}"]},
    )
    return made


def _metric(auc: float) -> dict[str, Any]:
    bar = {"lower_bound": 0.8, "upper_bound": None, "max_loss": None, "direction": "higher_is_better"}
    return {"name": "AUC", "value": auc, "baseline": None, "passed": True, "bar": bar}
