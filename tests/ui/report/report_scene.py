"""Runs whose artifacts hold known values, and a report as its reader sees it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup, Tag
from store_builder import StoreBuilder

from contracts.fingerprints import Fingerprint

GRAPH = {
    "ExampleGen": (),
    "Transform": ("ExampleGen",),
    "Trainer": ("ExampleGen", "Transform"),
    "BaselineModel": ("Trainer",),
    "Evaluator": ("ExampleGen", "BaselineModel"),
    "InfraValidator": ("Trainer", "Evaluator"),
    "Pusher": ("Trainer", "InfraValidator"),
}
HISTORY = "epoch,auc,loss,lr,val_auc,val_loss\n0,0.5,0.9,0.1,0.6,0.8\n1,0.7,0.5,0.1,0.65,0.4\n2,0.8,0.3,0.01,0.6,nan\n"
CARD = {
    "name": "wide",
    "label": "big",
    "created": "2026-11-21T11:19:59Z",
    "num_parameters": 12126,
    "signatures": {
        "predict": {
            "inputs": {"fare": {"dtype": "float32", "shape": [None], "feature": "fare", "missing": "NaN"}},
            "outputs": {"probability": {"dtype": "float32", "shape": [None, 1]}},
        }
    },
    "class_names": ["no", "yes"],
    "validation_metrics": {"auc": 0.65},
    "training": {
        "settings": {"callbacks": {"early_stopping": {"monitor": "val_auc", "restore_best_weights": True}}},
        "epochs": 9,
        "precision": "float32",
    },
    "versions": {"tensorflow": "2.16.2", "tf_keras": "2.16.0"},
    "schema_sha256": "5c4e",
}
BAR = {"lower_bound": 0.9, "upper_bound": None, "max_loss": 0.01, "direction": "higher_is_better"}
SUMMARY = {
    "blessed": True,
    "rows": 4966,
    "metrics": [
        {
            "name": "AUC",
            "value": 0.9464,
            "baseline": 0.9301,
            "passed": True,
            "bar": BAR,
            "interval": {"low": 0.9402, "high": 0.9521, "level": 0.95, "method": "bootstrap"},
            "difference": {"value": 0.0163, "low": 0.0101, "high": 0.0225, "method": "paired bootstrap"},
        }
    ],
    "slices": [
        {
            "slice": "type=Cash",
            "rows": 3234,
            "metrics": {"AUC": 0.6387},
            "intervals": {"AUC": {"low": 0.5, "high": 0.75, "level": 0.95, "method": "bootstrap"}},
        },
        {"slice": "type=Card", "rows": 1701, "metrics": {"AUC": None}, "intervals": {"AUC": None}},
    ],
}
PNG = "data:image/png;base64,iVBORw0KGgo="
INSIGHTS = {
    "task": "binary",
    "rows": 4966,
    "rows_kept": 4000,
    "classes": None,
    "calibration": [{"low": 0.0, "high": 0.5, "rows": 3000, "mean_prediction": 0.2, "mean_label": 0.25}],
    "calibration_error": 0.0312,
    "confusion": {"labels": ["0", "1"], "counts": [[2900, 100], [250, 750]], "threshold": 0.5},
    "scores": [{"label": "1", "bins": [[0.0, 0.5, 250], [0.5, 1.0, 750]]}],
    "roc": [[0.0, 0.0], [0.1, 0.9], [1.0, 1.0]],
    "precision_recall": [[0.0, 1.0], [1.0, 0.2]],
    "worst": [
        {
            "loss": 6.5,
            "label": 1,
            "prediction": 0.0015,
            "predicted": "0",
            "features": {"fare": [12.5], "company": ["Blue"], "photo": [{"image": PNG}], "raw": [{"bytes": 2048}]},
        }
    ],
}
INFRA = {
    "blessed": True,
    "skipped": None,
    "problems": [],
    "rows": 20,
    "precision": "float32",
    "seconds": 0.931,
    "paths": [
        {
            "path": "gRPC transform_features",
            "rows": 20,
            "differing": 0,
            "difference": 4.17e-7,
            "tolerance": {"relative": 1e-5, "absolute": 1e-5},
            "output": "fare",
            "row": 337,
            "feature": "fare",
        },
        {
            "path": "REST predict by rows",
            "rows": 19,
            "differing": 1,
            "difference": None,
            "tolerance": {"relative": 1e-5, "absolute": 1e-5},
            "output": "label",
            "row": 4,
        },
    ],
}


@dataclass
class Scene:
    """Runs in a store, with files beside; what a test changes before it adds a run is in the run.

    Attributes:
        files: Content by artifact and file; None is a file that is not there.
    """

    builder: StoreBuilder
    root: Path
    files: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {
            "model": {"Format-Serving/assets.extra/card.json": CARD},
            "model_run": {"history.csv": HISTORY},
            "evaluation": {"summary.json": SUMMARY, "insights.json": INSIGHTS},
            "blessing": {"report.json": INFRA},
        }
    )

    def artifact(self, type_name: str, name: str, run: str, **properties: str | int | float) -> int:
        """An artifact with its files."""
        folder = self.root / run / name
        for place, content in self.files.get(name, {}).items():
            if content is not None:
                (folder / place).parent.mkdir(parents=True, exist_ok=True)
                text = content if isinstance(content, str) else json.dumps(content)
                (folder / place).write_text(text, encoding="utf-8")
        return self.builder.artifact(type_name, folder, **properties)

    def run(
        self, run: str, rate: float = 0.1, examples: int | None = None, pushed: Mapping[str, str | int] | None = None
    ) -> dict[str, int]:
        """A whole run; with `examples` its ExampleGen took those from the cache.

        Returns:
            The ids of its artifacts by name.
        """
        raw = Fingerprint(code={"gen.py": "aa"}, packages={"pyarrow": "10.0.1"}, files={"data/trips.csv": "cdaf0b59"})
        trained = Fingerprint({"label": "big", "trainer.rate": rate}, {"model.py": f"c{rate}"}, {"tf-keras": "2.16.0"})
        ids = {
            "examples": self.artifact("Examples", "examples", run) if examples is None else examples,
            "graph": self.artifact("TransformGraph", "graph", run),
            "model_run": self.artifact("ModelRun", "model_run", run),
            "model": self.artifact("Model", "model", run),
            "evaluation": self.artifact("ModelEvaluation", "evaluation", run),
            "blessing": self.artifact("InfraBlessing", "blessing", run),
            "pushed": self.artifact("PushedModel", "pushed", run, **(pushed or _pushed(run))),
        }
        one = {name: {name: ids[name]} for name in ids}
        self.builder.run(run)
        state = "COMPLETE" if examples is None else "CACHED"
        self.builder.node("ExampleGen", state, raw, outputs=one["examples"])
        self.builder.node("Transform", inputs=one["examples"], outputs={"transform_graph": ids["graph"]})
        self.builder.node(
            "Trainer", "COMPLETE", trained, one["examples"] | one["graph"], one["model_run"] | one["model"]
        )
        self.builder.node("BaselineModel")
        self.builder.node("Evaluator", inputs=one["model"], outputs=one["evaluation"])
        self.builder.node("InfraValidator", inputs=one["model"], outputs=one["blessing"])
        self.builder.node("Pusher", inputs=one["model"], outputs={"pushed_model": ids["pushed"]})
        return ids


def _pushed(run: str) -> dict[str, str | int]:
    return {"pushed": 1, "pushed_version": "7", "pushed_destination": f"/serving/{run}/7"}


class Page:
    """A page as a reader finds it."""

    def __init__(self, html: str) -> None:
        self.html = html
        self.soup = BeautifulSoup(html, "html.parser")

    def section(self, name: str) -> Tag:
        """A section by its id."""
        element = self.soup.find("section", id=name)
        assert isinstance(element, Tag), f"no section {name}"
        return element

    def text(self, name: str) -> str:
        """The text of a section outside its charts, with single spaces."""
        for script in self.section(name).find_all("script"):
            script.extract()
        return " ".join(self.section(name).get_text(" ").split())

    def charts(self, name: str) -> list[dict[str, Any]]:
        """The charts of a section."""
        return [json.loads(script.get_text()) for script in self.section(name).find_all("script")]

    def table(self, label: str) -> list[list[str]]:
        """The rows of a table, its head included."""
        element = self.soup.find(attrs={"aria-label": label})
        assert isinstance(element, Tag), f"no table {label}"
        return [
            [" ".join(cell.get_text().split()) for cell in row.find_all(["th", "td"])] for row in element.find_all("tr")
        ]

    @property
    def sections(self) -> list[str]:
        """The ids of all sections, in order."""
        return [str(element["id"]) for element in self.soup.find_all("section")]
