"""The worker process: its request, where its output goes, and what it says about a failure."""

from __future__ import annotations

import importlib.util
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from contracts.errors import AnomalyError, DataError
from pipeline.plan.project import ENGINE
from pipeline.run import failures
from pipeline.run.folder import Request, RunFolder, redirect_output


def test_a_request_survives_its_file() -> None:
    request = Request(
        recipe="small",
        overrides=("trainer.epochs=2", "label=x"),
        environment="local",
        run_id="small-1",
        span=3,
        from_node="Trainer",
        to_node=None,
        force=True,
    )
    assert Request.model_validate_json(request.model_dump_json(indent=2)) == request


def test_a_request_of_another_version_is_refused() -> None:
    with pytest.raises(ValidationError, match="from_nodes"):
        Request(recipe="a", overrides=(), environment="b", run_id="c", span=None, from_nodes=())  # type: ignore[call-arg]


# In a separate process, because pytest captures what goes to the descriptors.
OUTPUT = """
import ctypes, os, sys
from pathlib import Path
from pipeline.run.folder import redirect_output
with redirect_output(Path(sys.argv[1])):
    print("from Python")
    print("an error", file=sys.stderr)
    os.write(1, b"to descriptor 1\\n")
    os.write(2, b"to descriptor 2\\n")
    ctypes.CDLL(None).puts(b"from C")
    ctypes.CDLL(None).fflush(None)
print("after")
print("after, too", file=sys.stderr)
"""


def test_output_goes_to_the_end_of_a_file_and_comes_back(tmp_path: Path) -> None:
    log = tmp_path / "node.log"
    log.write_text("before\n")
    command = [sys.executable, "-W", "ignore", "-c", OUTPUT, str(log)]
    finished = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ENGINE)
    expected = {"before", "from Python", "an error", "to descriptor 1", "to descriptor 2", "from C"}
    assert set(log.read_text().splitlines()) == expected
    assert log.read_text().startswith("before\n")
    assert (finished.stdout, finished.stderr) == ("after\n", "after, too\n")


def test_output_comes_back_after_an_error(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="inside"), redirect_output(tmp_path / "log"):
        raise ValueError("inside")
    os.write(1, b"after")
    assert capfd.readouterr().out == "after"


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with redirect_output(tmp_path / "log"):
            pass
    assert len(os.listdir("/proc/self/fd")) == before


def test_nested_output_goes_to_the_inner_file(tmp_path: Path) -> None:
    with redirect_output(tmp_path / "outer"):
        with redirect_output(tmp_path / "inner"):
            os.write(1, b"in")
        os.write(1, b"out")
    assert ((tmp_path / "inner").read_text(), (tmp_path / "outer").read_text()) == ("in", "out")


def failure(error: BaseException) -> dict[str, object]:
    """The description of an error that has actually been raised."""
    try:
        raise error
    except BaseException as raised:
        return failures.describe_failure("Trainer", raised).model_dump(exclude_none=True)


def test_an_error_of_ours_is_reported_in_its_own_words() -> None:
    assert failure(DataError("The file is empty.", "Fill it.")) == {
        "node": "Trainer",
        "kind": "DataError",
        "message": "The file is empty.\nFill it.",
        "lines": [],
    }


def test_anomalies_of_the_data_are_kept_for_the_report() -> None:
    findings = [{"split": "train", "feature": "hour"}]
    error = pickle.loads(pickle.dumps(AnomalyError("Bad data.", "Mend them.", findings)))  # noqa: S301 (our own)
    assert failure(error) == {
        "node": "Trainer",
        "kind": "AnomalyError",
        "message": "Bad data.\nMend them.",
        "lines": [],
        "findings": findings,
    }


def test_another_error_is_reported_with_its_type() -> None:
    description = failure(ValueError("too few"))
    assert description["message"] == "ValueError: too few"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bad row [while running 'Read/Map(parse)']", "bad row"),
        ("bad row [while running 'A'] [while running 'B']", "bad row"),
        ("row [3] is bad", "row [3] is bad"),
    ],
)
def test_what_beam_appends_is_taken_away(text: str, message: str) -> None:
    assert failure(RuntimeError(text))["message"] == f"RuntimeError: {message}"
    assert failure(DataError(text))["message"] == message


@pytest.fixture
def user_module(project: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """recipes/small/user.py, imported from `project`."""
    source = "def outer(x):\n    return inner(x)\n\n\ndef inner(x):\n    return 1 / x  # splits\n"
    path = project / "recipes" / "small" / "user.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("user_module", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LINES = [
    "recipes/small/user.py:2 in outer: return inner(x)",
    "recipes/small/user.py:6 in inner: return 1 / x  # splits",
]


def test_the_users_own_lines_are_found(user_module: object) -> None:
    try:
        user_module.outer(0)  # type: ignore[attr-defined]
    except ZeroDivisionError as error:
        failed = failures.describe_failure("Transform", error)
    assert failed.message == "ZeroDivisionError: division by zero"
    assert failed.lines == LINES


def test_the_users_lines_are_found_behind_a_translated_error(user_module: object) -> None:
    try:
        try:
            user_module.outer(0)  # type: ignore[attr-defined]
        except ZeroDivisionError as error:
            raise RuntimeError("while tracing") from error
    except RuntimeError as error:
        failed = failures.describe_failure("Transform", error)
    assert (failed.message, failed.lines) == ("RuntimeError: while tracing", LINES)


def test_logs_and_progress_lie_beside_each_other(tmp_path: Path) -> None:
    assert RunFolder(tmp_path).log_path("Trainer") == tmp_path / "Trainer.log"
    assert RunFolder(tmp_path).progress_path("Trainer") == tmp_path / "Trainer.progress.json"
