"""What a run's page shows about the model's origin: lineage, settings, versions."""

from __future__ import annotations

from collections.abc import Callable

from report_scene import Page, Scene

from contracts.fingerprints import Fingerprint

Report = Callable[..., Page]


def test_lineage_goes_up_to_the_raw_files_of_the_run_that_read_them(scene: Scene, report: Report) -> None:
    first = scene.run("small-1")
    ids = scene.run("small-2", examples=first["examples"])
    page = report("small-2")
    rows = page.table("What the model was made from")[1:]
    code = Fingerprint(code={"model.py": "c0.1"}).code_digest
    assert [row[:4] for row in rows] == [
        ["ExampleGen", "small-1", "", f"examples {first['examples']}"],
        ["Transform", "small-2", f"examples {first['examples']}", f"transform_graph {ids['graph']}"],
        ["Trainer", "small-2", f"examples {first['examples']}, graph {ids['graph']}", f"model {ids['model']}"],
    ]
    assert rows[2][4:] == [f"{code} 1 file", "tf-keras 2.16.0"]
    assert page.table("Raw files")[1:] == [["data/trips.csv", "ExampleGen of small-1", "cdaf0b59"]]


def test_the_graph_of_lineage_leads_from_files_to_the_model(scene: Scene, report: Report) -> None:
    ids = scene.run("small-1")
    [chart] = report("small-1").charts("lineage")
    by_id = {node["id"]: node for node in chart["nodes"]}
    assert [node["id"] for node in chart["nodes"] if node["current"]] == [f"a{ids['model']}"]
    edges = [(by_id[one]["label"], by_id[other]["label"]) for one, other in chart["edges"]]
    assert set(edges) == {
        ("trips.csv", "ExampleGen"),
        ("ExampleGen", "Examples"),
        ("Examples", "Transform"),
        ("Transform", "TransformGraph"),
        ("Examples", "Trainer"),
        ("TransformGraph", "Trainer"),
        ("Trainer", "Model"),
    }


def test_many_raw_files_are_one_node_of_the_graph_and_all_in_the_table(scene: Scene, report: Report) -> None:
    builder = scene.builder
    files = {f"images/{number}.png": f"{number:064}" for number in range(6)}
    examples, model = builder.artifact("Examples"), scene.artifact("Model", "model", "small-1")
    builder.run("small-1")
    builder.node("ExampleGen", fingerprint=Fingerprint(files=files), outputs={"examples": examples})
    builder.node("Trainer", inputs={"examples": examples}, outputs={"model": model})
    page = report("small-1")
    assert len(page.table("Raw files")) == 7
    labels = [node["label"] for node in page.charts("lineage")[0]["nodes"]]
    assert [label for label in labels if "file" in label or ".png" in label] == ["6 files"]


def test_settings_that_differ_from_the_run_before_are_marked(scene: Scene, report: Report) -> None:
    scene.run("small-1")
    scene.run("small-2", rate=0.2)
    page = report("small-2")
    assert page.table("Settings") == [
        ["Setting", "Value", "In the run before"],
        ["trainer.rate", "0.2", "0.1 differs"],
        ["label", "big", ""],
    ]
    assert "1 setting differs from run small-1." in page.text("settings")
    assert "It is the first run." in report("small-1").text("settings")


def test_what_the_run_before_did_not_come_to_is_no_change(scene: Scene, report: Report) -> None:
    scene.builder.run("small-1")
    scene.builder.node("ExampleGen", "FAILED", Fingerprint(settings={"data.path": "a", "data.old": 1}))
    scene.builder.run("small-2")
    scene.builder.node("ExampleGen", fingerprint=Fingerprint(settings={"data.path": "a", "data.new": None}))
    scene.builder.node("Trainer", "FAILED", Fingerprint(settings={"trainer.rate": 0.1}))
    page = report("small-2")
    assert page.table("Settings")[1:] == [
        ["data.new", "null", "not there differs"],
        ["data.old", "not there", "1 differs"],
        ["data.path", "a", ""],
        ["trainer.rate", "0.1", ""],
    ]
    assert "2 settings differ from run small-1." in page.text("settings")


def test_settings_that_are_the_same_say_so(scene: Scene, report: Report) -> None:
    scene.run("small-1")
    scene.run("small-2")
    page = report("small-2")
    assert "No setting differs from run small-1." in page.text("settings")
    assert page.table("Settings")[0] == ["Setting", "Value"]


def test_versions_name_packages_code_and_what_changed(scene: Scene, report: Report) -> None:
    scene.run("small-1")
    scene.builder.run("small-2")
    newer = Fingerprint(code={"gen.py": "bb", "new.py": "cc"}, packages={"pyarrow": "11.0.0"})
    scene.builder.node("ExampleGen", fingerprint=newer)
    page = report("small-2")
    assert page.table("Packages")[1:] == [["pyarrow", "11.0.0", "10.0.1 differs"]]
    assert page.table("Code by node")[1:] == [["ExampleGen", newer.code_digest, "2"]]
    assert [item.get_text() for item in page.section("versions").find_all("li")] == ["gen.py", "new.py, new"]
    whole = report("small-1")
    assert whole.table("Packages")[1:] == [
        ["pyarrow", "10.0.1"],
        ["tensorflow", "2.16.2"],
        ["tf-keras", "2.16.0"],
    ]
