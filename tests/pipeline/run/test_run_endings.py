"""How `millrace run` ends: the exit code, what the user reads, and the next commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from store_builder import StoreBuilder

from contracts.errors import AnomalyError, BusyError, DataError, NodeError
from pipeline.plan.environment import Environment
from pipeline.run import local
from pipeline.run.workplace import Workplace

Millrace = Callable[..., Result]


@pytest.fixture
def ends_with(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], None]:
    """Makes the run end with an exception or a `local.Run`."""

    def set_end(end: object) -> None:
        def run(*_arguments: object) -> object:
            if isinstance(end, BaseException):
                raise end
            return end

        monkeypatch.setattr(local, "run", run)

    return set_end


SLICES = ("--set", "evaluator.slices=[tips, company]", "--env", "environments/local.yaml")
AGAIN = "millrace run small --set 'evaluator.slices=[tips, company]' --env environments/local.yaml"


def test_an_interrupted_run_ends_with_130_and_says_how_to_go_on(
    millrace: Millrace, ends_with: Callable[[object], None]
) -> None:
    ends_with(KeyboardInterrupt())
    result = millrace("run", "small", *SLICES)
    assert result.exit_code == 130
    assert result.stdout.startswith("Stopped. Nothing half done is left; go on with: ")
    assert result.stdout.endswith(f"{AGAIN}\n")


def test_a_failed_node_says_how_to_go_on(millrace: Millrace, ends_with: Callable[[object], None]) -> None:
    ends_with(NodeError("Trainer failed.\nLog: /l"))
    result = millrace("run", "small", *SLICES)
    assert result.exit_code == 1
    first, log, go_on = result.stderr.splitlines()
    assert (first, log) == ("error: Trainer failed.", "Log: /l")
    assert go_on.startswith("Go on:  ")
    assert go_on.endswith(AGAIN)


def test_a_run_beside_another_one_may_be_tried_again(millrace: Millrace, ends_with: Callable[[object], None]) -> None:
    ends_with(BusyError("another run of small is going on (process 4711).", "Wait for its end, or stop it."))
    result = millrace("run", "small")
    assert result.exit_code == 75
    assert result.stderr.startswith("error: another run of small is going on (process 4711).\n")


def test_a_folder_that_may_not_be_written_is_named(millrace: Millrace, ends_with: Callable[[object], None]) -> None:
    ends_with(PermissionError(13, "Permission denied", "/artifacts/small/.lock"))
    result = millrace("run", "small")
    assert (result.exit_code, result.stderr) == (
        1,
        "error: /artifacts/small/.lock: Permission denied.\nLet this user read and write there.\n",
    )
    ends_with(FileNotFoundError(2, "No such file or directory", "/x"))
    assert isinstance(millrace("run", "small").exception, FileNotFoundError)


def test_anomalies_may_be_right_and_the_schema_behind(millrace: Millrace, ends_with: Callable[[object], None]) -> None:
    ends_with(NodeError("DataGate failed.\nLog: /l", kind="AnomalyError"))
    see, go_on = millrace("run", "small", *SLICES).stderr.splitlines()[2:]
    assert see.startswith("See what would have to change:  ")
    assert see.endswith("millrace schema propose small --env environments/local.yaml")
    assert go_on.endswith(AGAIN)


def test_a_column_that_is_gone_points_to_the_schema_where_there_are_runs_to_compare_with(
    millrace: Millrace, builder: StoreBuilder, ends_with: Callable[[object], None]
) -> None:
    ends_with(AnomalyError("data.csv lacks columns.", "Add them."))
    assert millrace("run", "small").stderr == "error: data.csv lacks columns.\nAdd them.\n"
    builder.run("small-1")
    fix, see = millrace("run", "small").stderr.splitlines()[1:]
    assert fix == "Add them."
    assert see.startswith("See what would have to change:  ")
    assert see.endswith("millrace schema propose small --set data.path=data.csv")
    see = millrace("run", "small", "--set", "data.path=./data.csv").stderr.splitlines()[-1]
    assert see.endswith("millrace schema propose small --set data.path=./data.csv")


def test_anomalies_that_were_let_pass_point_to_the_schema(
    millrace: Millrace, builder: StoreBuilder, places: Environment, ends_with: Callable[[object], None]
) -> None:
    builder.run("small-7")
    builder.node("DataGate", outputs={"verdict": builder.artifact("GateVerdict", num_anomalies=2)})
    store = Workplace(places).open_store()
    assert store is not None
    ends_with(local.Run("small-7", store.node_runs("small", "small-7"), new=True))
    output = millrace("run", "small").stdout.splitlines()
    assert output[0].startswith("Let pass   2 anomalies in the data, listed in ")
    assert output[1].startswith("See what would have to change:  ")
    assert output[1].endswith("millrace schema propose small")


def test_another_error_ends_with_1(millrace: Millrace, ends_with: Callable[[object], None]) -> None:
    ends_with(DataError("The file is empty.", "Fill it."))
    result = millrace("run", "small")
    assert (result.exit_code, result.stderr) == (1, "error: The file is empty.\nFill it.\n")


def test_an_up_to_date_run_ends_with_0(millrace: Millrace, ends_with: Callable[[object], None]) -> None:
    ends_with(local.Run("small-7", {}, new=False))
    result = millrace("run", "small")
    first, report = result.stdout.splitlines()
    assert (result.exit_code, first) == (0, "Up to date: nothing changed since run small-7.")
    # It left none, so the line says how to write it.
    assert report.startswith("Report     ")
    assert report.endswith("millrace report small-7")


def test_an_up_to_date_run_that_was_killed_before_its_report_gets_it_now(
    millrace: Millrace, builder: StoreBuilder, places: Environment, ends_with: Callable[[object], None]
) -> None:
    builder.run("small-7")
    (places.log_root / "small-7").mkdir(parents=True)
    ends_with(local.Run("small-7", {}, new=False))
    report = millrace("run", "small").stdout.splitlines()[1]
    assert report.endswith("small-7/report.html")
    assert (places.log_root / "small-7" / "report.html").exists()


def evaluated(places: Environment, blessed: bool, pushed_to: Path | None, undecided: bool = False) -> local.Run:
    """A finished run in the store."""
    folder = places.pipeline_root / "evaluation"
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(
        json.dumps({"blessed": blessed, "undecided": undecided, "rows": 9, "metrics": [], "slices": []})
    )
    builder = StoreBuilder(places.metadata_path, places.pipeline_root)
    builder.run("small-7")
    builder.node("Evaluator", outputs={"evaluation": builder.artifact("ModelEvaluation", folder)})
    properties = {"pushed_destination": str(pushed_to)} if pushed_to else {}
    builder.node("Pusher", outputs={"pushed_model": builder.artifact("PushedModel", **properties)})
    store = Workplace(places).open_store()
    assert store is not None
    return local.Run("small-7", store.node_runs("small", "small-7"), new=True)


def test_a_model_that_is_not_good_enough_ends_with_3(
    millrace: Millrace, places: Environment, ends_with: Callable[[object], None]
) -> None:
    ends_with(evaluated(places, blessed=False, pushed_to=None))
    result = millrace("run", "small")
    assert result.exit_code == 3
    assert "Not pushed: the model did not reach every bar." in result.stdout
    assert "why Trainer --recipe small: what changed since the last good model" in result.stdout


def test_a_model_that_is_undecided_ends_with_3_and_a_line_of_its_own(
    millrace: Millrace, places: Environment, ends_with: Callable[[object], None]
) -> None:
    ends_with(evaluated(places, blessed=False, pushed_to=None, undecided=True))
    result = millrace("run", "small")
    assert result.exit_code == 3
    assert "Not pushed: too few rows to tell whether the model is good enough." in result.stdout
    assert "did not reach every bar" not in result.stdout
    assert "why Evaluator --recipe small: what these rows cannot tell, and how many would" in result.stdout


def test_a_pushed_model_ends_with_0_and_the_next_commands(
    millrace: Millrace, places: Environment, ends_with: Callable[[object], None]
) -> None:
    pushed_to = places.serving_root / "small" / "17"
    ends_with(evaluated(places, blessed=True, pushed_to=pushed_to))
    result = millrace("run", "small")
    assert result.exit_code == 0
    assert f"Pushed to  {pushed_to}\n" in result.stdout
    assert f"Logs       {places.log_root / 'small-7'}\n" in result.stdout
    assert f"--dir {pushed_to} --all\n" in result.stdout
    assert "millrace serve small\n" in result.stdout
