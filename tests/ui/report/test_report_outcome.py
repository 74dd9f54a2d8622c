"""What a run's page shows about the run: its verdict, its nodes, and how to go on from it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from report_scene import GRAPH, Page, Scene

Report = Callable[..., Page]


def test_a_pushed_model_is_the_verdict(scene: Scene, report: Report) -> None:
    scene.run("small-1")
    text = report("small-1", served="It is served from serving/small/7.").text("summary")
    assert "done The model was pushed as version 7. It is served from serving/small/7." in text
    assert "6 ran, 0 from earlier runs" in text


def test_a_failed_run_tells_what_went_wrong_and_what_waits(scene: Scene, report: Report, tmp_path: Path) -> None:
    failure = {"node": "Transform", "message": "no <feature>.", "lines": ["recipes/small/features.py:3 in f: x"]}
    (tmp_path / "failure.json").write_text(json.dumps(failure))
    scene.builder.run("small-1")
    scene.builder.node("ExampleGen")
    scene.builder.node("Transform", "FAILED")
    page = report("small-1", log_folder=tmp_path)
    text = page.text("summary")
    assert "failed Transform failed." in text
    assert "no <feature>. recipes/small/features.py:3 in f: x" in text
    assert f"Log: {tmp_path}/Transform.log" in text
    assert [row[:2] for row in page.table("Nodes")[1:4]] == [
        ["ExampleGen", "done"],
        ["Transform", "failed"],
        ["Trainer", "waiting"],
    ]
    assert page.sections == ["summary", "graph"]


def test_a_failure_that_left_no_message_is_one_too(scene: Scene, report: Report) -> None:
    scene.builder.run("small-1")
    scene.builder.node("Trainer", "FAILED")
    assert "failed Trainer failed." in report("small-1").text("summary")


def test_a_broken_failure_file_is_named(scene: Scene, report: Report, tmp_path: Path) -> None:
    (tmp_path / "failure.json").write_text("{")
    scene.builder.run("small-1")
    scene.builder.node("Trainer", "FAILED")
    page = report("small-1", log_folder=tmp_path)
    assert "failure.json does not hold what it should" in page.text("summary")
    assert page.table("Nodes")[3][:2] == ["Trainer", "failed"]


def test_a_stopped_run_and_one_that_goes_on(scene: Scene, report: Report) -> None:
    scene.builder.run("small-1")
    scene.builder.node("ExampleGen")
    scene.builder.node("Trainer", "CANCELED")
    assert "stopped It was stopped in Trainer." in report("small-1").text("summary")
    scene.builder.run("small-2")
    scene.builder.node("Trainer", "RUNNING")
    assert "running It is running: Trainer." in report("small-2").text("summary")


def test_a_part_of_the_chain_ends_where_it_was_to_end(scene: Scene, report: Report) -> None:
    scene.builder.run("small-1")
    scene.builder.node("ExampleGen")
    assert "It ended after ExampleGen; no model was evaluated." in report("small-1").text("summary")


def test_a_model_that_the_server_does_not_serve(scene: Scene, report: Report) -> None:
    scene.files["blessing"]["report.json"] = {"blessed": False, "problems": ["row 0: <probability> differs"]}
    scene.run("small-1", pushed={"pushed": 0, "not_pushed_reason": "the InfraValidator did not bless the model"})
    page = report("small-1")
    assert "not pushed: the model server does not serve what was evaluated." in page.text("summary")
    assert "row 0: <probability> differs" in page.text("serving")


def test_a_withdrawn_model_says_so(scene: Scene, report: Report) -> None:
    scene.run("small-1", pushed={"pushed": 0, "not_pushed_reason": "its model was rolled back from"})
    assert "The model was not pushed: its model was rolled back from." in report("small-1").text("summary")


def test_the_graph_leaves_quiet_nodes_out_and_keeps_what_they_lead_to(scene: Scene, report: Report) -> None:
    scene.run("small-1")
    [chart] = report("small-1").charts("graph")
    assert [node["id"] for node in chart["nodes"]] == [name for name in GRAPH if name != "BaselineModel"]
    assert ["Trainer", "Evaluator"] in chart["edges"]
    assert not [edge for edge in chart["edges"] if "BaselineModel" in edge]


def test_a_cached_node_names_the_run_that_it_took_its_results_from(scene: Scene, report: Report) -> None:
    ids = scene.run("small-1")
    scene.run("small-2", examples=ids["examples"])
    page = report("small-2")
    node, state, _started, time, origin = page.table("Nodes")[1]
    assert (node, state, time, origin) == ("ExampleGen", "cached", "", "small-1")
    assert "5 ran, 1 from earlier runs" in page.text("summary")
    assert page.charts("graph")[0]["nodes"][0]["detail"] == "from small-1"


def test_nodes_that_the_pipeline_no_longer_has_come_last(scene: Scene, report: Report) -> None:
    scene.builder.run("small-1")
    scene.builder.node("TFLite")
    scene.builder.node("ExampleGen")
    page = report("small-1", graph={"ExampleGen": ()})
    assert [row[0] for row in page.table("Nodes")[1:]] == ["ExampleGen", "TFLite"]
    assert page.charts("graph")[0]["edges"] == []


def test_how_to_serve_it_and_how_the_server_took_it(scene: Scene, report: Report) -> None:
    scene.run("small-1")
    page = report("small-1", commands=(("Serve it", "millrace serve small --env 'a b'"),), served="It is served.")
    section = page.section("serving")
    assert section.select_one("pre code").get_text() == "millrace serve small --env 'a b'"
    text = page.text("serving")
    assert text.startswith("Serve it, and go back It is served. Serve it millrace")
    assert "passed It answers as it was evaluated: 20 rows, in every way in which it can be asked, " in text
    assert "loaded and asked in 0.9 s." in text
    assert page.table("Served against evaluated and trained")[1:] == [
        ["gRPC transform_features", "20", "4.2e-07", "1e-05", "fare", "337", "fare"],
        ["REST predict by rows", "19", "not a number", "1e-05", "label", "4", ""],
    ]


def test_the_tflite_model_is_judged(scene: Scene, report: Report) -> None:
    scene.files["lite"] = {
        "report.json": {
            "quantization": "int8",
            "blessed": False,
            "refused": "its accuracy, 0.5000, is too low",
            "size_bytes": 320937,
            "variables_bytes": 1193640,
            "latency_ms": 0.0149,
            "rows": 573,
            "accuracy": 0.5,
            "saved_model_accuracy": 0.9965,
            "differences": {"probabilities": {"max": 0.04, "mean": 0.0013}},
        }
    }
    scene.run("small-1")
    scene.builder.node("TFLite", outputs={"tflite_model": scene.artifact("TFLiteModel", "lite", "small-1")})
    text = report("small-1").text("serving")
    assert "Not pushed: its accuracy, 0.5000, is too low." in text
    assert "320,937 bytes; the SavedModel's variables are 1,193,640" in text
    assert "0.5000 on 573 rows; the SavedModel's is 0.9965" in text
    assert "probabilities differs by 0.0013 in the mean, 0.0400 at most" in text
    scene.files["lite"] = {"report.json": {"blessed": False, "refused": "the Evaluator did not bless the model"}}
    scene.run("small-2")
    scene.builder.node("TFLite", outputs={"tflite_model": scene.artifact("TFLiteModel", "lite", "small-2")})
    assert "Not pushed: the Evaluator did not bless the model." in report("small-2").text("serving")
