"""`millrace runs`, `status`, `artifacts`, `lineage` and `diff` on a small store."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import ml_metadata as mlmd
import pytest
from inspect_scene import printed, values
from store_builder import StoreBuilder

from metadata.queries import Queries
from pipeline import cli
from pipeline.commands import lookup
from pipeline.plan import project
from pipeline.plan.environment import Environment
from pipeline.plan.fingerprint import Fingerprint


@pytest.fixture
def places(both_places: Environment) -> Environment:
    """The commands behave alike, whatever database holds the store."""
    return both_places


@pytest.fixture
def store(builder: StoreBuilder, tmp_path: Path) -> dict[str, int]:
    """Two runs: the second has another learning rate, schema, row count and metric, and is pushed."""
    ids: dict[str, int] = {}
    for number, (rate, auc) in enumerate(((0.1, 0.9), (0.2, 0.95)), start=1):
        folder = tmp_path / f"files{number}"
        folder.mkdir()
        (folder / "schema.pbtxt").write_text(f'feature {{ name: "fare" }}\nversion: {number}\n')
        summary = {"blessed": True, "rows": 9, "metrics": [{"name": "AUC", "value": auc}]}
        (folder / "summary.json").write_text(json.dumps(summary))
        artifacts = {
            "examples": builder.artifact("Examples", f"/examples/{number}", num_rows=10 * number, span=0),
            "schema": builder.artifact("Schema", folder),
            "model": builder.artifact("Model", f"/model/{number}"),
            "evaluation": builder.artifact("ModelEvaluation", folder),
        }
        raw = Fingerprint(code={"gen.py": "aa"}, packages={"pyarrow": "10.0.1"}, files={"data.csv": f"digest{number}"})
        builder.run(f"small-{number}")
        builder.node("ExampleGen", fingerprint=raw, outputs={"examples": artifacts["examples"]})
        builder.node("SchemaGen", "COMPLETE" if number == 1 else "CACHED", outputs={"schema": artifacts["schema"]})
        trained = Fingerprint(settings={"trainer.rate": rate, "trainer.epochs": 3}, code={"model.py": f"c{number}"})
        inputs = {"examples": artifacts["examples"]}
        builder.node("Trainer", fingerprint=trained, inputs=inputs, outputs={"model": artifacts["model"]})
        builder.node("Evaluator", inputs={"model": artifacts["model"]}, outputs={"evaluation": artifacts["evaluation"]})
        ids |= {f"{name}{number}": artifact for name, artifact in artifacts.items()}
    pushed = {"pushed": 1, "pushed_version": "7", "pushed_destination": "/serving/small/7"}
    ids["pushed"] = builder.artifact("PushedModel", "/pushed", **pushed)
    builder.node("Pusher", inputs={"model": ids["model2"]}, outputs={"pushed_model": ids["pushed"]})
    return ids


def test_runs_newest_first_with_what_became_of_their_nodes(env: str, store: dict[str, int]) -> None:
    newest, oldest = values(env, "runs")
    assert {key: newest[key] for key in newest if key not in {"started", "ended", "seconds"}} == {
        "run": "small-2",
        "recipe": "small",
        "state": "done",
        "ran": 4,
        "cached": 1,
        "failed": 0,
        "pushed_version": "7",
        "deployed": True,
    }
    assert (oldest["run"], oldest["ran"], oldest["deployed"]) == ("small-1", 4, False)
    assert newest["started"] <= newest["ended"]
    assert [run["run"] for run in values(env, "runs", "--limit", "1")] == ["small-2"]
    lines = printed(env, "runs").splitlines()
    assert lines[2].split()[0] == "small-2"
    assert lines[2].split()[-1] == "deployed"
    assert "deployed" not in lines[3]


def test_status_of_the_latest_run_and_of_another(env: str, store: dict[str, int]) -> None:
    found_status = values(env, "status")
    assert (found_status["run"], found_status["state"]) == ("small-2", "done")
    assert [(node["node"], node["state"]) for node in found_status["nodes"]] == [
        ("ExampleGen", "done"),
        ("SchemaGen", "cached"),
        ("Trainer", "done"),
        ("Evaluator", "done"),
        ("Pusher", "done"),
    ]
    assert printed(env, "status", "small-1").splitlines()[0].strip() == "small-1: done"


def test_artifacts_by_type(env: str, store: dict[str, int]) -> None:
    newest, oldest = values(env, "artifacts", "Examples")
    assert (newest["id"], oldest["id"]) == (store["examples2"], store["examples1"])
    assert (newest["run"], newest["node"], newest["uri"]) == ("small-2", "ExampleGen", "/examples/2")
    assert newest["properties"] == {"num_rows": 20, "span": 0}
    assert len(values(env, "artifacts")) == 9
    assert "no artifacts of type 'modle'. Did you mean Model?" in printed(env, "artifacts", "modle", code=1)


def test_lineage_goes_up_to_raw_files_code_and_packages(env: str, store: dict[str, int]) -> None:
    traced = values(env, "lineage", str(store["pushed"]))
    steps = {step["node"]: step for step in traced["steps"]}
    assert set(steps) == {"ExampleGen", "Trainer", "Pusher"}
    assert steps["ExampleGen"]["files"] == {"data.csv": "digest2"}
    assert steps["ExampleGen"]["packages"] == {"pyarrow": "10.0.1"}
    assert len(steps["Trainer"]["code_digest"]) == 16
    assert steps["Pusher"]["code_digest"] is None
    lines = [line.strip(" │├└─") for line in printed(env, "lineage", "/serving/small/7").splitlines()]
    assert lines[0] == f"PushedModel {store['pushed']}  /pushed"
    assert lines[1] == "Pusher of small-2"
    assert lines[-2:] == ["pyarrow 10.0.1", "file data.csv  digest2"]


def test_lineage_down(env: str, store: dict[str, int]) -> None:
    traced = values(env, "lineage", str(store["examples1"]), "--down")
    assert [step["node"] for step in traced["steps"]] == ["Trainer", "Evaluator"]
    assert "evaluation: ModelEvaluation" in printed(env, "lineage", str(store["examples1"]), "--down")


def test_diff_names_what_changed(env: str, store: dict[str, int]) -> None:
    changed = values(env, "diff", "small-1", "small-2")
    assert changed["settings"] == [{"name": "trainer.rate", "before": 0.1, "after": 0.2}]
    assert changed["code"] == [{"name": "model.py", "before": "c1", "after": "c2"}]
    assert changed["packages"] == []
    assert changed["data"] == [
        {"name": "data.csv", "before": "digest1", "after": "digest2"},
        {"name": "num_rows", "before": 10, "after": 20},
    ]
    assert changed["schema"][-2:] == ["-version: 1", "+version: 2"]
    assert changed["metrics"] == [{"name": "AUC", "before": 0.9, "after": 0.95}]
    output = printed(env, "diff", "small-1", "small-2")
    assert "+version: 2" in output.splitlines()
    assert ["trainer.rate", "0.1", "0.2"] in [line.split() for line in output.splitlines()]
    assert printed(env, "diff", "small-1", "small-1") == "Nothing differs between small-1 and small-1.\n"


def test_a_node_that_was_taken_over_has_the_settings_of_where_it_ran(
    env: str, store: dict[str, int], builder: StoreBuilder
) -> None:
    builder.run("small-3")
    builder.node("Trainer", "CACHED", outputs={"model": store["model1"]})
    changed = values(env, "diff", "small-2", "small-3")
    assert {"name": "trainer.rate", "before": 0.2, "after": 0.1} in changed["settings"]


def test_unknown_ids_name_the_nearest_right_one(env: str, store: dict[str, int]) -> None:
    assert "no run 'smal-2'. Did you mean small-2?" in printed(env, "status", "smal-2", code=1)
    assert "no run 'zzz'. The latest is small-2." in printed(env, "diff", "zzz", "small-1", code=1)
    assert f"no artifact '999': expected an id or an artifact's folder. The newest is {store['pushed']}." in printed(
        env, "lineage", "999", code=1
    )


@pytest.mark.parametrize("named", [True, False])
def test_diff_writes_a_page_of_both_runs(
    env: str, store: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    # A process's project is found from the folder in which it started.
    project.root()
    monkeypatch.chdir(tmp_path)
    path = Path("both.html") if named else Path("diff-small-1-small-2.html")
    words = ["--html", str(path)] if named else ["--html"]
    assert printed(env, "diff", "small-1", "small-2", *words) == f"Written    {path}\n"
    page = path.read_text()
    assert "trainer.rate" in page
    assert "digest2" in page
    assert "The two runs do not both have statistics of a train split." in page


def test_diff_says_where_a_page_cannot_be_written(env: str, store: dict[str, int], tmp_path: Path) -> None:
    path = tmp_path / "none" / "both.html"
    output = printed(env, "diff", "small-1", "small-2", "--html", str(path), code=1)
    assert f"the page cannot be written to {path}: No such file or directory." in output


@pytest.mark.parametrize("words", [["runs"], ["status"], ["artifacts"], ["lineage", "1"], ["diff", "a", "b"]])
def test_before_the_first_run_they_name_the_command_that_makes_the_store(env: str, words: list[str]) -> None:
    output = printed(env, *words, code=1)
    assert "nothing has run yet: there is no metadata store." in output
    assert f"run taxi --env {env}" in output


def test_a_store_that_is_being_made_says_so(env: str, builder: StoreBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_arguments: object) -> None:
        raise mlmd.errors.FailedPreconditionError("no such table: MLMDEnv")

    monkeypatch.setattr(Queries, "open", busy)
    output = printed(env, "runs", code=1)
    assert "cannot be read now: no such table: MLMDEnv" in output
    assert "A run may be making it; try again." in output


def test_ids_complete_in_the_shell(env: str, store: dict[str, int], tmp_path: Path) -> None:
    context = click.Context(cli.main)
    context.params = {"environment_name": env}
    parameter = click.Argument(["x"])
    assert lookup.complete_runs(context, parameter, "small-") == ["small-2", "small-1"]
    assert lookup.complete_types(context, parameter, "Mod") == ["Model", "ModelEvaluation"]
    assert str(store["pushed"]) in lookup.complete_artifacts(context, parameter, "")
    context.params = {"environment_name": str(tmp_path / "none.yaml")}
    assert lookup.complete_runs(context, parameter, "") == []


def test_they_do_not_import_tensorflow(env: str, store: dict[str, int]) -> None:
    script = (
        "import sys\nfrom pipeline import cli\n"
        f"cli.main(['diff', 'small-1', 'small-2', '--env', {env!r}], standalone_mode=False)\n"
        "assert not {'tensorflow', 'tfx', 'apache_beam'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(cli.__file__).parent.parent)
