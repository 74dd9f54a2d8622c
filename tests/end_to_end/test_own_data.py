"""A user's own daily files, and a recipe that has no schema yet."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import tfx
from copied_project import Project

TRIPS = Path(tfx.__file__).parent / "examples" / "chicago_taxi_pipeline" / "data" / "simple" / "data.csv"
NO_BARS = "evaluator.metrics={AUC: {lower_bound: 0.0}}"


def test_the_newest_day_of_gzip_files_is_taken_and_a_schema_inferred(project: Project) -> None:
    header, *rows = TRIPS.read_text(encoding="utf-8").splitlines()
    for day, part in (("01", rows[:1000]), ("02", rows[1000:4000])):
        folder = project.folder / "data" / "2026" / "11" / day
        folder.mkdir(parents=True)
        with gzip.open(folder / "trips.csv.gz", "wt", encoding="utf-8") as file:
            file.write("\n".join([header, *part]) + "\n")
    shutil.copytree(project.folder / "recipes" / "taxi", project.folder / "recipes" / "mine")
    project.edit(
        "recipes/mine/recipe.yaml",
        "package:tfx/examples/chicago_taxi_pipeline/data/simple/data.csv",
        "data/{YYYY}/{MM}/{DD}/*.csv.gz",
    )
    listed = project.millrace("recipes")
    assert [line.split()[0] for line in listed.output.splitlines()] == ["cifar10", "mine", "taxi"]

    finished = project.millrace("run", "mine", "--set", "trainer.train_steps=20", "--set", NO_BARS)
    assert finished.code == 0, finished.errors
    assert project.store is not None
    nodes = project.store.node_runs("mine", project.store.run_ids("mine")[0])
    examples = project.store.outputs(nodes["ExampleGen"].id)["examples"][0]
    assert examples.properties["num_rows"] == 3000
    schema = Path(project.store.outputs(nodes["SchemaGen"].id)["schema"][0].uri, "schema.pbtxt")
    assert 'name: "payment_type"' in schema.read_text(encoding="utf-8")

    older = project.millrace("run", "mine", "--set", "data.span=1")
    assert older.code == 1
    assert "has only the spans 20758, 20759" in older.errors
