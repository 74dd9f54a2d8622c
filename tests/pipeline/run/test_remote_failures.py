"""A distributed engine's failed job, described for users."""

from __future__ import annotations

from pathlib import Path

from pipeline.run import failures

SAID = (
    "Pipeline BeamApp-root-1_2 failed in state FAILED: java.lang.RuntimeException: Error received from SDK harness for "
    "instruction 1: Traceback (most recent call last):\n"
    '  File "apache_beam/runners/common.py", line 1501, in apache_beam.runners.common.DoFnRunner.process\n'
    '  File "{recipe}/features.py", line 7, in preprocessing_fn\n'
    "    return inputs['fare'] / zero\n"
    "some.errors.OddError: the first line\nand a second: of it\n\n"
    "During handling of the above exception, another exception occurred:\n\n"
    "Traceback (most recent call last):\n"
    '  File "other.py", line 1, in run\n    work()\n'
    "RuntimeError: another [while running 'Map']\n\n\tat org.apache.beam.Class.method(Class.java:1)\n"
)


def test_a_workers_error_is_reported_with_the_users_own_line(project: Path) -> None:
    error = RuntimeError(SAID.replace("{recipe}", str(project / "recipes" / "small")))
    assert failures.describe_failure("Transform", error).model_dump(exclude_none=True) == {
        "node": "Transform",
        "kind": "OddError",
        "message": "OddError: the first line\nand a second: of it",
        "lines": ["recipes/small/features.py:7 in preprocessing_fn: return inputs['fare'] / zero"],
    }


def test_what_beam_adds_is_left_out() -> None:
    text = 'Pipeline a failed in state FAILED: x: Traceback (most recent call last):\n  File "a.py", line 1, in f\n'
    error = RuntimeError(f"{text}    g()\nValueError: no [while running 'Map']\n")
    assert failures.describe_failure("Transform", error).message == "ValueError: no"


def test_where_no_worker_failed_the_engine_is_quoted() -> None:
    text = "Pipeline a failed in state FAILED: java.io.IOException: Insufficient number of network buffers\n\tat B(C)\n"
    failure = failures.read_remote_failure(text)
    assert failure is not None
    assert failure.message == (
        "The engine of the data work says: java.io.IOException: Insufficient number of network buffers"
    )


def test_other_errors_are_not_failed_jobs() -> None:
    assert (
        failures.read_remote_failure('Traceback (most recent call last):\n  File "a", line 1, in f\nValueError: x')
        is None
    )
