"""Wrong settings, data and code, Ctrl-C, a killed process: each is reported in a few lines, and the run resumes."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
import tfx
from copied_project import Project

TRIPS = Path(tfx.__file__).parent / "examples" / "chicago_taxi_pipeline" / "data" / "simple" / "data.csv"
SMALL = ("--set", "data.path=trips.csv", "--set", "trainer.train_steps=20", "--set", "evaluator.slices=[]")
ANY_MODEL = ("--set", "evaluator.metrics={AUC: {lower_bound: 0.0}}")


@pytest.fixture
def small(project: Project) -> Project:
    """A project with the first 3,000 trips as its data."""
    lines = TRIPS.read_text(encoding="utf-8").splitlines()[:3001]
    (project.folder / "trips.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return project


def test_wrong_settings_and_data_are_found_before_anything_runs(small: Project) -> None:
    small.edit("recipes/taxi/recipe.yaml", "  train_steps: 1000", "  train_stepz: 1000")
    typo = small.millrace("run")
    assert typo.code == 2
    line = next(
        number
        for number, text in enumerate((small.folder / "recipes/taxi/recipe.yaml").read_text().splitlines(), start=1)
        if "train_stepz" in text
    )
    expected = f"recipes/taxi/recipe.yaml:{line}: unknown key trainer.train_stepz. Did you mean trainer.train_steps?"
    assert expected in typo.errors
    small.edit("recipes/taxi/recipe.yaml", "  train_stepz: 1000", "  train_steps: 1000")

    trips = (small.folder / "trips.csv").read_text(encoding="utf-8")
    small.edit("trips.csv", "payment_type", "payment_kind")
    missing = small.millrace("run", *SMALL)
    assert missing.code == 1
    assert "lacks columns that schemas/taxi/schema.pbtxt requires: payment_type" in missing.errors
    (small.folder / "trips.csv").write_text(trips, encoding="utf-8")
    assert not (small.folder / "artifacts" / "logs").exists()


def test_an_anomaly_stops_the_run_and_a_bad_row_is_named(small: Project) -> None:
    small.edit("trips.csv", ",Credit Card,", ",Bottle Caps,")
    stopped = small.millrace("run", *SMALL)
    assert stopped.code == 1
    assert "DataGate failed." in stopped.errors
    assert "payment_type (" in stopped.errors
    assert "'Bottle Caps' in 1 row" in stopped.errors
    assert "Go on:" in stopped.errors
    assert "Transform" not in small.states(small.run_ids()[0])

    with (small.folder / "trips.csv").open("a", encoding="utf-8") as file:
        file.write("1,2,3\n")
    refused = small.millrace("run", *SMALL)
    assert refused.code == 1
    assert "trips.csv" in refused.errors
    assert "3002" in refused.errors
    accepted = small.millrace(
        "run", *SMALL, "--set", "data.on_bad_row=set_aside", "--set", "gate.on_anomaly=warn", "--to", "DataGate"
    )
    assert accepted.code == 0, accepted.errors
    assert small.store is not None
    rejected = small.store.outputs(small.node_runs(small.run_ids()[0])["ExampleGen"].id)["rejected_rows"][0]
    assert rejected.properties["num_rows"] == 1
    assert (
        f"Set aside  1 row, with the reason for each, in {Path(rejected.uri).relative_to(small.folder)}\n"
        in accepted.output
    )
    assert "Let pass   1 anomaly in the data" in accepted.output


def test_a_failing_model_names_the_line_and_the_next_run_goes_on_from_there(small: Project) -> None:
    small.edit(
        "recipes/taxi/model.py", "    settings = Params(**params)\n", "    settings = Params(**params)\n    1 / 0\n"
    )
    failed = small.millrace("run", *SMALL, *ANY_MODEL)
    assert failed.code == 1
    assert "Trainer failed." in failed.errors
    assert "ZeroDivisionError: division by zero" in failed.errors
    assert "in build_model: 1 / 0" in failed.errors
    assert "Trainer.log" in failed.errors
    small.edit("recipes/taxi/model.py", "    1 / 0\n", "")

    interrupted = small.stop_in("Trainer", signal.SIGINT, *SMALL, *ANY_MODEL)
    assert interrupted.code == 130, interrupted.errors
    assert "Stopped. Nothing half done is left; go on with:" in interrupted.output
    assert small.states(small.run_ids()[0])["Trainer"] == "CANCELED"

    killed = small.stop_in("Trainer", signal.SIGKILL, *SMALL, *ANY_MODEL)
    assert killed.code == -signal.SIGKILL

    finished = small.millrace("run", *SMALL, *ANY_MODEL)
    assert finished.code == 0, finished.errors
    assert small.ran() == {"Trainer", "Evaluator", "InfraValidator", "Pusher"}
    assert "RUNNING" not in {state for run_id in small.run_ids() for state in small.states(run_id).values()}
    assert len(small.pushed_versions()) == 1
