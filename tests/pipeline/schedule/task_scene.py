"""What a task is given, what it writes, and a `millrace` that only records how it was called."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import Result
from store_builder import StoreBuilder

from pipeline.plan import nodes
from pipeline.plan.table import TABLE
from pipeline.schedule.kubeflow import tasks

MILLRACE = """\
#!/bin/sh
for word in "$@"; do echo "$word" >> "$CALLED"; done
exit "$CODE"
"""
SUMMARY = {
    "blessed": True,
    "rows": 4967,
    "metrics": [
        {"name": "AUC", "value": 0.95, "baseline": 0.94, "passed": True, "bar": {"lower_bound": 0.9}},
        {"name": "Undefined", "value": None, "baseline": None, "passed": True, "bar": {}},
    ],
    "slices": [],
}
INSIGHTS = {
    "task": "multiclass",
    "rows": 3,
    "rows_kept": 3,
    "confusion": {"labels": ["cat", "dog"], "counts": [[1, 0], [1, 1]]},
}
RunTask = Callable[..., Result]


def executor_input(tmp_path: Path, name: str, **parameters: Any) -> str:
    """The input that Kubeflow's launcher passes to a task, with artifacts in its object store and local paths for
    them."""
    artifacts_shown = next((tasks.shown_artifacts(node) for node in TABLE if node.name == name), {})
    slots = {**artifacts_shown, **tasks.SHOWN.get(name, {})}
    artifacts = {
        slot: {
            "artifacts": [
                {
                    "name": slot,
                    "uri": f"minio://bucket/{name}/{slot}",
                    "customPath": str(tmp_path / "kfp" / slot),
                    "metadata": {"kept": True},
                }
            ]
        }
        for slot in slots
    }
    awaited = {tasks.OUTCOME: {"outputFile": str(tmp_path / "outcome")}} if name == nodes.PUSHER_NODE else {}
    outputs = {"artifacts": artifacts, "parameters": awaited, "outputFile": str(tmp_path / "kfp" / "output.json")}
    return json.dumps({"inputs": {"parameterValues": {"run": "one", **parameters}}, "outputs": outputs})


def written_output(tmp_path: Path) -> dict[str, Any]:
    return dict(json.loads((tmp_path / "kfp" / "output.json").read_text()))


def metadata(tmp_path: Path, slot: str) -> dict[str, Any]:
    (artifact,) = written_output(tmp_path)["artifacts"][slot]["artifacts"]
    assert artifact["uri"].startswith("minio://")
    return dict(artifact["metadata"])


def evaluated(tmp_path: Path, builder: StoreBuilder, **changes: Any) -> None:
    folder = tmp_path / "evaluation"
    folder.mkdir()
    (folder / "summary.json").write_text(json.dumps(SUMMARY | changes))
    (folder / "insights.json").write_text(json.dumps(INSIGHTS))
    builder.node("Evaluator", outputs={"evaluation": builder.artifact("ModelEvaluation", folder)})
