"""The contents of pages: facts, links, paging, and the same as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from dashboard_scene import get, values
from store_builder import StoreBuilder

from benchmarks import inspect_store
from metadata import searching
from pipeline import cli
from pipeline.plan.environment import Environment
from ui.dashboard.site import Site


def test_runs_newest_first_with_metrics_and_what_is_deployed(shown: Site, ids: dict[str, int]) -> None:
    newest, oldest = values(shown, "/")
    assert (newest["run"], newest["state"], newest["deployed"]) == ("small-2", "done", True)
    assert (newest["cached"], newest["metrics"]) == (1, {"AUC": 0.95})
    assert (oldest["run"], oldest["deployed"], oldest["pushed_version"]) == ("small-1", False, None)
    text = get(shown, "/").text
    assert text.index('href="/runs/small-2"') < text.index('href="/runs/small-1"')
    assert "version 7" in text
    assert f'href="/artifacts/{ids["pushed"]}/lineage"' in text


def test_runs_by_recipe_and_state(shown: Site, ids: dict[str, int], builder: StoreBuilder) -> None:
    builder.run("small-3")
    builder.node("ExampleGen", "FAILED")
    assert [run["run"] for run in values(shown, "/?state=failed")] == ["small-3"]
    assert [run["run"] for run in values(shown, "/?state=done&recipe=small")] == ["small-2", "small-1"]
    assert values(shown, "/?recipe=none") == []
    refused = get(shown, "/?state=bad&format=json")
    assert (refused.status, refused.values["error"]) == (
        400,
        "state is one of done, running, failed, stopped, killed; received 'bad'.",
    )


def test_runs_page_by_page(shown: Site, places: Environment) -> None:
    inspect_store.write(places.metadata_path, runs=60)
    seen: list[str] = []
    path: str | None = "/?recipe=taxi"
    while path:
        seen += [run["run"] for run in values(shown, path)]
        path = older(get(shown, path).text)
    assert seen == [f"taxi-{index:05}" for index in reversed(range(60))]


def older(text: str) -> str | None:
    """The address of the next page."""
    begin, separator, _rest = text.partition('" rel="next">Older')
    return begin.rpartition('href="')[2].replace("&amp;", "&") if separator else None


def test_a_search_by_state_ends_and_can_be_gone_on_with(
    shown: Site, places: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "SEARCHED_AT_ONCE", 5)
    monkeypatch.setattr(searching, "MOST_SEARCHED", 10)
    inspect_store.write(places.metadata_path, runs=14)
    assert values(shown, "/?state=failed") == []
    text = get(shown, "/?state=failed").text
    assert "None among the runs that were searched so far." in text
    assert older(text) is not None
    assert older(get(shown, str(older(text))).text) is None


def test_a_run_with_its_sections(shown: Site, ids: dict[str, int]) -> None:
    run = values(shown, "/runs/small-2")
    assert (run["state"], run["goes_on"]) == ("done", False)
    assert [(node["node"], node["state"]) for node in run["nodes"]][:2] == [
        ("ExampleGen", "done"),
        ("SchemaGen", "cached"),
    ]
    text = get(shown, "/runs/small-2").text
    assert '<section id="summary"' in text
    assert 'href="/runs/small-2/nodes/Trainer"' in text
    assert 'href="/diff/small-1/small-2"' in text
    assert 'href="/reports/small-2"' in text
    assert "data-live" not in text


def test_a_run_that_goes_on_is_followed(shown: Site, builder: StoreBuilder, places: Environment) -> None:
    builder.run("small-1")
    builder.node("Trainer", "RUNNING")
    folder = places.log_root / "small-1"
    folder.mkdir(parents=True)
    progress = {"epoch": 2, "epochs": 3, "metrics": {"loss": 0.5, "val_loss": 0.6}, "note": "float32"}
    (folder / "Trainer.progress.json").write_text(json.dumps(progress))
    run = values(shown, "/runs/small-1")
    assert (run["state"], run["goes_on"], run["seconds"]) == ("running", True, None)
    assert run["nodes"][0]["note"].split() == ["epoch", "2/3", "loss", "0.5000", "float32"]
    assert "data-live" in get(shown, "/runs/small-1").text
    assert "data-live" in get(shown, "/runs/small-1/nodes/Trainer").text


def test_a_node_with_why_it_ran_what_it_took_and_its_log(shown: Site, ids: dict[str, int]) -> None:
    node = values(shown, "/runs/small-2/nodes/Trainer")
    assert node["inputs"] == {"examples": [ids["examples2"]]}
    assert node["outputs"] == {"model": [ids["model2"]], "model_run": [ids["model_run2"]]}
    assert node["why"] == "Trainer ran because setting trainer.rate (0.1 -> 0.2); the code of model.py changed."
    assert node["fingerprint"]["settings"] == {"trainer.rate": 0.2, "trainer.epochs": 3}
    first = values(shown, "/runs/small-1/nodes/Trainer")
    assert first["why"] == "Trainer ran because it had never run to its end before."
    text = get(shown, "/runs/small-2/nodes/Trainer").text
    assert "epoch 4999" in text
    assert "epoch 17\n" not in text
    assert values(shown, "/runs/small-2/nodes/SchemaGen")["origin"] == "small-1"


def test_the_whole_log_is_text(shown: Site, ids: dict[str, int]) -> None:
    log = get(shown, "/runs/small-2/nodes/Trainer/log")
    assert log.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert log.text.splitlines() == [f"epoch {epoch}" for epoch in range(5_000)]
    assert get(shown, "/runs/small-2/nodes/ExampleGen/log").status == 404


def test_artifacts_by_type(shown: Site, ids: dict[str, int]) -> None:
    assert [entry["id"] for entry in values(shown, "/artifacts?type=Model")] == [ids["model2"], ids["model1"]]
    missing = get(shown, "/artifacts?type=Modle&format=json")
    assert (missing.status, missing.values["near"][0]) == (404, "Model")


def test_an_artifact_with_files_makers_and_users(shown: Site, ids: dict[str, int]) -> None:
    schema = values(shown, f"/artifacts/{ids['schema1']}")
    assert (schema["run"], schema["node"]) == ("small-1", "SchemaGen")
    assert [file["path"] for file in schema["files"]] == ["schema.pbtxt"]
    assert "feature { name: &#34;fare&#34; type: FLOAT }" in get(shown, f"/artifacts/{ids['schema1']}").text
    examples = values(shown, f"/artifacts/{ids['examples2']}")
    assert [(user["run"], user["node"], user["as"]) for user in examples["used_by"]] == [
        ("small-2", "Trainer", "examples")
    ]
    assert examples["properties"] == {"num_rows": 20, "span": 0}


def test_a_table_and_json_are_shown_as_such(shown: Site, builder: StoreBuilder, tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    (folder / "history.csv").write_text("epoch,loss\n1,0.5\n")
    (folder / "report.json").write_text('{"a":1}')
    (folder / "model.txt").write_bytes(b"\0\1")
    number = builder.artifact("ModelRun", folder)
    table = values(shown, f"/artifacts/{number}/files/history.csv")
    assert table["rows"] == [["epoch", "loss"], ["1", "0.5"]]
    assert values(shown, f"/artifacts/{number}/files/report.json")["text"] == '{\n  "a": 1\n}'
    assert values(shown, f"/artifacts/{number}/files/model.txt")["binary"] is True


def test_lineage_both_ways(shown: Site, ids: dict[str, int]) -> None:
    both = values(shown, f"/artifacts/{ids['model2']}/lineage")
    assert [step["node"] for step in both["up"]["steps"]] == ["ExampleGen", "Trainer"]
    assert [step["node"] for step in both["down"]["steps"]] == ["Evaluator", "Pusher"]
    up = values(shown, f"/artifacts/{ids['model2']}/lineage?direction=up")
    assert set(up) == {"up"}
    text = get(shown, f"/artifacts/{ids['model2']}/lineage").text
    chart = json.loads(text.partition('<script type="application/json">')[2].partition("</script>")[0])
    assert [node["label"] for node in chart["nodes"] if node["current"]] == ["Model"]
    assert {node["href"] for node in chart["nodes"]} >= {
        "/runs/small-2/nodes/Trainer",
        f"/artifacts/{ids['pushed']}/lineage",
    }
    taken = {number for number, _name in chart["edges"]} | {number for _name, number in chart["edges"]}
    assert taken == {node["id"] for node in chart["nodes"]}
    assert "data.csv" in text


def test_models_with_metrics_and_versions(shown: Site, ids: dict[str, int]) -> None:
    page = values(shown, "/models")
    newest, oldest = page["models"]
    assert (newest["id"], newest["metrics"], newest["blessed"]) == (ids["model2"], {"AUC": 0.95}, True)
    assert newest["versions"] == [{"version": 7, "state": "served"}]
    assert oldest["versions"] == []
    assert "rollback small" in get(shown, "/models").text


def test_a_rollback_is_reported(shown: Site, ids: dict[str, int], builder: StoreBuilder, places: Environment) -> None:
    for version, more in (("8", {}), ("9", {"rolled_back_from": 8, "restored_version": "7"})):
        folder = places.serving_root / "small" / version
        folder.mkdir()
        pushed: dict[str, Any] = {"pushed": 1, "pushed_version": version, "pushed_destination": str(folder)} | more
        number = builder.artifact("PushedModel", **pushed, current_model_id=ids["model2" if more else "model1"])
        builder.node("Rollback" if more else "Pusher", outputs={"pushed_model": number})
    told = {
        version["number"]: (version["state"], version["restored"]) for version in values(shown, "/models")["versions"]
    }
    assert told == {9: ("served", "7"), 8: ("rolled back", None), 7: ("replaced", None)}
    (places.serving_root / "small" / "7").rmdir()
    states = {version["number"]: version["state"] for version in values(shown, "/models")["versions"]}
    assert states[7] == "removed"


def test_runs_are_compared_over_what_differs(shown: Site, ids: dict[str, int]) -> None:
    newest, oldest = values(shown, "/compare?recipe=small")
    assert (newest["settings"], newest["AUC"]) == ({"trainer.rate": 0.2}, 0.95)
    assert (oldest["settings"], oldest["rows of examples"]) == ({"trainer.rate": 0.1}, 10)
    text = get(shown, "/compare?recipe=small").text
    charts = [json.loads(part.partition("</script>")[0]) for part in text.split('<script type="application/json">')[1:]]
    parallel, scatter = charts
    assert parallel["dimensions"] == ["trainer.rate", "AUC"]
    assert (scatter["x"], scatter["y"]) == ("trainer.rate", "AUC")
    assert scatter["points"][0]["values"]["trainer.rate"] == 0.2
    assert 'href="/diff/small-1/small-2"' in text


def test_runs_to_compare_are_chosen(shown: Site, ids: dict[str, int]) -> None:
    assert [run["run"] for run in values(shown, "/compare?recipe=small&runs=small-1")] == ["small-1"]
    assert "Not on this page of runs: small-9." in get(shown, "/compare?recipe=small&runs=small-1,small-9").text
    assert get(shown, "/compare?recipe=nothing").status == 404


def test_the_difference_of_two_runs(shown: Site, ids: dict[str, int]) -> None:
    changed = values(shown, "/diff/small-1/small-2")
    assert changed["settings"] == [{"name": "trainer.rate", "before": 0.1, "after": 0.2}]
    assert "trainer.rate" in get(shown, "/diff/small-1/small-2").text
    assert get(shown, "/diff/small-1/small-9").status == 404


def test_a_report_is_a_download_without_a_part_in_our_pages(shown: Site, ids: dict[str, int]) -> None:
    report = get(shown, "/reports/small-2")
    assert report.text == "<title>report</title>"
    assert report.headers["Content-Disposition"] == 'attachment; filename="small-2.html"'
    assert report.headers["Content-Security-Policy"] == "sandbox"


def test_a_jump_by_id(shown: Site, ids: dict[str, int]) -> None:
    def leads_to(asked: str) -> str:
        answer = get(shown, f"/search?q={asked}")
        assert answer.status == 302
        return answer.headers["Location"]

    assert leads_to("small-2") == "/runs/small-2"
    assert leads_to("-1") == "/runs/small-1"
    assert leads_to(str(ids["pushed"])) == f"/artifacts/{ids['pushed']}"
    assert values(shown, "/search?q=small") == {"runs": ["small-2", "small-1"], "types": []}
    assert get(shown, "/search?q=zzz").status == 404


def test_tensorboard_names_its_command(shown: Site, ids: dict[str, int]) -> None:
    board = values(shown, "/runs/small-2/tensorboard")
    assert board["command"].endswith(f"--logdir {board['folder']} --host localhost")
    assert board["url"] is None
    assert Path(board["folder"]).name == "tensorboard"


def test_pages_need_no_tensorflow(ids: dict[str, int], places: Environment, tmp_path: Path) -> None:
    places_file = tmp_path / "places.yaml"
    places_file.write_text(places.model_dump_json())
    script = (
        "import sys\n"
        f"sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[2])]!r}\n"
        "from dashboard_scene import get\n"
        "from pipeline.commands.pages import site\n"
        "from pipeline.run.workplace import Workplace\n"
        f"shown = site(Workplace.load({str(places_file)!r}))\n"
        "for path in ('/', '/runs/small-2', '/artifacts', '/models', '/compare', '/diff/small-1/small-2'):\n"
        "    assert get(shown, path).status == 200\n"
        "assert not {'tensorflow', 'tfx', 'apache_beam', 'tensorflow_data_validation'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(cli.__file__).parent.parent)
