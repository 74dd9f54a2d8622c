"""`millrace kubeflow` against a stand-in that checks each request against the published OpenAPI."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from kfp_standin import PROJECT, Millrace, Standin
from rich.console import Console

from pipeline.commands import reach
from pipeline.plan import environment, nodes
from pipeline.plan.kubeflow_settings import EXIT_TASK, VERDICT_TASK
from pipeline.run.workplace import Workplace
from pipeline.schedule.kubeflow import tasks, watch
from pipeline.schedule.kubeflow.client import Client

ALL = [tasks.task_key(node) for node in nodes.NODES if node != nodes.TFLITE_NODE]


def edit(old: str, new: str) -> None:
    path = Path("environments") / "kubeflow.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def all_in(state: str, **others: str) -> dict[str, str]:
    return {
        **dict.fromkeys(ALL, state),
        tasks.task_key(EXIT_TASK): state,
        **{k.replace("_", "-"): v for k, v in others.items()},
    }


@pytest.mark.usefixtures("compiles_anew")
def test_submit_uploads_the_compiled_spec_and_starts_a_run_of_it(millrace: Millrace, standin: Standin) -> None:
    result = millrace("submit", "small", "--set", "trainer.epochs=3", "--span", "7")
    assert result.exit_code == 0, result.stderr
    (run,), (version,), (upload,) = standin.runs, standin.versions, standin.uploads
    assert upload == millrace("compile", "small", "--set", "trainer.epochs=3").stdout
    name = run["runtime_config"]["parameters"]["run"]
    assert re.fullmatch(r"small-\d{8}-\d{6}", name)
    assert run == {
        "display_name": name,
        "experiment_id": "experiment",
        "pipeline_version_reference": {
            "pipeline_id": "pipeline",
            "pipeline_version_id": version["pipeline_version_id"],
        },
        "runtime_config": {"parameters": {"run": name, "span": "7", "set": ["trainer.epochs=3"]}},
        "service_account": "millrace",
        "run_id": "id-0",
        "state": "PENDING",
        "created_at": "2026-01-02T03:04:05Z",
    }
    assert standin.pipelines == [
        {"pipeline_id": "pipeline", "display_name": "small", "description": "is it big?"},
    ]
    assert result.stdout == (
        f"Uploaded   version {version['display_name']} of the pipeline small\n"
        f"Started    {name}\n"
        f"Watch      {standin.url}/#/runs/details/id-0\n"
        f"Or         millrace kubeflow status {name}\n"
    )
    assert result.stderr == (
        "Not looked at: what the tasks need of the cluster; no way to Kubernetes' API from here: no kubeconfig\n"
    )


@pytest.mark.usefixtures("compiles_anew")
def test_what_changed_is_a_new_version_and_what_did_not_is_taken_as_it_is(millrace: Millrace, standin: Standin) -> None:
    first = millrace("submit", "small", "--run", "a")
    again = millrace("submit", "small", "--run", "b")
    edit("memory: 8Gi", "memory: 9Gi")
    changed = millrace("submit", "small", "--run", "c")
    words = [result.stdout.split()[0] for result in (first, again, changed)]
    assert words == ["Uploaded", "Is", "Uploaded"]
    assert (len(standin.pipelines), len(standin.versions), len(standin.experiments)) == (1, 2, 1)
    used = [run["pipeline_version_reference"]["pipeline_version_id"] for run in standin.runs]
    assert used[0] == used[1] != used[2]


def test_a_multi_user_installation_is_given_the_namespace(millrace: Millrace, standin: Standin) -> None:
    standin.multi_user = True
    assert millrace("submit", "small").exit_code == 0
    assert standin.pipelines[0]["namespace"] == standin.experiments[0]["namespace"] == "kubeflow"
    listed = [query for method, path, query, _ in standin.requests if (method, path[-11:]) == ("GET", "experiments")]
    assert {query["namespace"] for query in listed} == {"kubeflow"}


def test_a_token_goes_with_each_request(millrace: Millrace, standin: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    edit("  namespace: kubeflow\n", "  namespace: kubeflow\n  token_env: KFP_TOKEN\n")
    monkeypatch.delenv("KFP_TOKEN", raising=False)
    refused = millrace("schedules")
    assert refused.exit_code == 2
    assert "the environment variable KFP_TOKEN is not set; `kubeflow.token_env` says" in refused.stderr
    monkeypatch.setenv("KFP_TOKEN", "abc")
    assert millrace("schedules").exit_code == 0
    assert {headers["Authorization"] for headers in standin.headers} == {"Bearer abc"}


def test_wait_reports_each_change_and_the_end(millrace: Millrace, standin: Standin) -> None:
    standin.states = [
        ("RUNNING", {"example-gen": "RUNNING"}),
        ("RUNNING", {"example-gen": "SUCCEEDED", "trainer": "RUNNING"}),
        ("SUCCEEDED", all_in("SUCCEEDED")),
    ]
    result = millrace("submit", "small", "--run", "r", "--wait")
    assert result.exit_code == 0, result.stderr
    lines = [line.rstrip() for line in result.stdout.splitlines() if line.startswith("  ")]
    assert lines[:3] == [
        "  ExampleGen        running",
        "  ExampleGen        done        12 s",
        "  Trainer           running",
    ]
    assert "  CloseRun          done        12 s" in lines
    assert not any(VERDICT_TASK in line for line in lines)


def test_wait_shows_a_model_that_was_not_good_enough_as_what_it_is(millrace: Millrace, standin: Standin) -> None:
    standin.states = [("SUCCEEDED", all_in("SUCCEEDED", not_good_enough="SUCCEEDED"))]
    result = millrace("submit", "small", "--run", "r", "--wait")
    assert result.exit_code == 3
    assert result.stdout.endswith(
        "Not pushed: the model was not good enough.\nWhy        millrace kubeflow logs r NotGoodEnough\n"
    )


def test_wait_names_the_task_that_failed_and_its_logs(millrace: Millrace, standin: Standin) -> None:
    standin.states = [("FAILED", {**all_in("SUCCEEDED", trainer="FAILED")})]
    result = millrace("submit", "small", "--run", "r", "--wait")
    assert result.exit_code == 1
    assert "  Trainer           failed      12 s OOMKilled\n" in result.stdout
    assert result.stderr.endswith("error: r ended: failed.\nRead the logs:\n  millrace kubeflow logs r Trainer\n")


def test_an_api_that_is_down_for_a_minute_does_not_end_the_waiting(millrace: Millrace, standin: Standin) -> None:
    standin.states = [("SUCCEEDED", all_in("SUCCEEDED"))]
    result = millrace("submit", "small", "--run", "r")
    assert result.exit_code == 0
    settings = environment.load("kubeflow").kubeflow
    assert settings is not None
    standin.refusals = [(503, "starting")] * (watch.PATIENCE - 1)
    view = watch.View(Console(file=io.StringIO()), "r")
    assert watch.wait_for_end(Client(settings), "id-0", [], view).state == "SUCCEEDED"


def test_schedule_by_cron_completes_the_line_and_reads_the_newest_span(millrace: Millrace, standin: Standin) -> None:
    result = millrace("schedule", "small", "--cron", "30 3 * * mon-fri", "--catch-up", "--max-concurrency", "3")
    assert result.exit_code == 0, result.stderr
    (schedule,) = standin.schedules
    assert schedule["trigger"] == {"cron_schedule": {"cron": "0 30 3 * * mon-fri"}}
    assert (schedule["no_catchup"], schedule["max_concurrency"], schedule["mode"]) == (False, "3", "ENABLE")
    assert schedule["runtime_config"] == {"parameters": {"run": "", "span": "", "set": []}}
    assert (schedule["display_name"], schedule["service_account"]) == ("small", "millrace")
    assert "Scheduled  small: cron 0 30 3 * * mon-fri, by the clock of the cluster's scheduler" in result.stdout
    assert f"Watch      {standin.url}/#/recurringrun/details/schedule-0\n" in result.stdout


def test_schedules_are_listed_paused_resumed_and_deleted(millrace: Millrace, standin: Standin) -> None:
    for name in ("one", "two", "three"):
        assert millrace("schedule", "small", "--every", "6h", "--name", name).exit_code == 0
    assert standin.schedules[0]["trigger"] == {"periodic_schedule": {"interval_second": "21600"}}
    assert standin.schedules[0]["no_catchup"] is True
    assert millrace("pause", "two").stdout == "Paused     two\n"
    rows = [line.split() for line in millrace("schedules").stdout.splitlines()[2:]]
    assert [row[:2] for row in rows] == [["one", "on"], ["two", "paused"], ["three", "on"]]
    assert rows[0][2:] == ["every", "21,600", "s", "no", "1", "schedule-0"]
    assert millrace("resume", "schedule-1").exit_code == 0
    assert standin.schedules[1]["status"] == "ENABLED"
    assert millrace("delete", "two").stdout == "Deleted    two\n"
    assert [schedule["display_name"] for schedule in standin.schedules] == ["one", "three"]
    missing = millrace("delete", "two")
    assert (missing.exit_code, missing.stderr) == (1, "error: no schedule 'two'. There are: one, three.\n")


def test_a_second_schedule_of_the_same_name_is_refused(millrace: Millrace, standin: Standin) -> None:
    millrace("schedule", "small", "--every", "1d")
    result = millrace("schedule", "small", "--every", "1h")
    assert result.exit_code == 1
    assert "Remove it first (millrace kubeflow delete small), or choose another --name." in result.stderr
    assert len(standin.schedules) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--cron", "0 0 30 2 *"), "--cron '0 0 30 2 *' never fires: in the next 5 years no day is day 30 of month 2."),
        (("--cron", "61 * * * *"), "--cron '61 * * * *': the minute is '61', expected 0-59"),
        (("--cron", "* * *"), "received 3 fields, expected 5"),
        (("--every", "10s"), "--every '10s': expected a minute or more"),
        ((), "received both --cron and --every, or neither; expected one of them."),
        (("--every", "1h", "--cron", "@daily"), "received both --cron and --every, or neither"),
    ],
)
def test_an_impossible_schedule_is_refused_before_anything_is_sent_to_the_cluster(
    millrace: Millrace, standin: Standin, words: tuple[str, ...], message: str
) -> None:
    result = millrace("schedule", "small", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert standin.requests == []


def test_status_shows_the_tasks_of_a_run_by_its_own_name(millrace: Millrace, standin: Standin) -> None:
    for name in ("a", "b", "c"):
        millrace("submit", "small", "--run", name)
    standin.states = [("RUNNING", {"example-gen": "SUCCEEDED", "trainer": "RUNNING"})]
    result = millrace("status", "b")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "b: running"
    assert lines[-1] == f"{standin.url}/#/runs/details/id-1"
    found = {line.split()[0]: line.split()[1] for line in lines[2:-1]}
    assert (found["ExampleGen"], found["Trainer"], found["Pusher"]) == ("done", "running", "waiting")
    unknown = millrace("status", "d")
    assert unknown.stderr == "error: no run 'd' on the cluster; the newest is c.\n"


def test_a_run_of_a_schedule_is_found_by_the_id_that_its_name_ends_with(millrace: Millrace, standin: Standin) -> None:
    millrace("submit", "small", "--run", "a")
    standin.runs[0]["runtime_config"]["parameters"]["run"] = ""
    assert millrace("status", "small-id-0").stdout.splitlines()[0] == "id-0: waiting"


def test_status_lists_runs(millrace: Millrace, standin: Standin) -> None:
    assert millrace("status").stderr.startswith("error: no run is on the cluster.")
    for name in ("a", "b", "c"):
        millrace("submit", "small", "--run", name)
    rows = [line.split() for line in millrace("status", "--all").stdout.splitlines()[2:]]
    assert [(row[0], row[1], row[-1]) for row in rows] == [
        ("c", "waiting", "id-2"),
        ("b", "waiting", "id-1"),
        ("a", "waiting", "id-0"),
    ]


def test_cancel_ends_what_goes_on_and_refuses_what_has_ended(millrace: Millrace, standin: Standin) -> None:
    millrace("submit", "small", "--run", "a")
    assert millrace("cancel", "a").stdout == "Cancelled  a\n"
    assert standin.runs[0]["state"] == "CANCELING"
    standin.runs[0]["state"] = "SUCCEEDED"
    assert millrace("cancel", "a").stderr == "error: a has ended already: done.\n"


@pytest.mark.parametrize(
    ("status", "message", "fix"),
    [
        (401, "no token", "Set the variable that `kubeflow.token_env` names to a token of yours."),
        (403, "User is not authorized", "Ask for a role in the namespace that may do this; see docs/kubeflow.md."),
        (400, "Invalid input: wrong", None),
    ],
)
def test_a_refusal_is_one_sentence(
    millrace: Millrace, standin: Standin, status: int, message: str, fix: str | None
) -> None:
    standin.refusals = [(status, message)]
    result = millrace("submit", "small")
    assert result.exit_code == 1
    message_shown = (
        f"error: Kubeflow Pipelines at {standin.url} refused to answer the health check: {status} {message}.\n"
    )
    assert result.stderr == message_shown + (f"{fix}\n" if fix else "")


def test_a_missing_host_is_reported_before_anything_else(millrace: Millrace, standin: Standin) -> None:
    edit(standin.url, "http://127.0.0.1:1")
    result = millrace("submit", "small")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: Kubeflow Pipelines at http://127.0.0.1:1 cannot be reached: ")
    assert (
        "Connection refused.\nCheck `kubeflow.host`; on your own machine first:  kubectl port-forward" in result.stderr
    )


def test_what_does_not_speak_to_a_cluster_does_not_load_its_sdk() -> None:
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom pipeline import cli\n"
        "for words in (['--help'], ['kubeflow', '--help'], ['show', 'taxi']):\n"
        "    assert CliRunner().invoke(cli.main, words).exit_code == 0\n"
        "print(sorted({'kfp', 'kfp_server_api', 'kubernetes', 'tensorflow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_upload_is_what_kubeflow_reads(millrace: Millrace, standin: Standin) -> None:
    millrace("submit", "small")
    documents: list[Any] = list(yaml.safe_load_all(standin.uploads[0]))
    assert documents[0]["pipelineInfo"]["name"] == "small"
    assert set(documents[1]) == {"platforms"}


def test_check_connects_to_kubeflow(millrace: Millrace, standin: Standin) -> None:
    by_name = {reached.name: reached for reached in reach.reach_everything(Workplace.load("kubeflow"))}
    assert (by_name["kubeflow"].fine, by_name["kubeflow"].text) == (
        True,
        f"Kubeflow Pipelines at {standin.url} answers",
    )
    edit(standin.url, "http://127.0.0.1:1")
    by_name = {reached.name: reached for reached in reach.reach_everything(Workplace.load("kubeflow"))}
    assert not by_name["kubeflow"].fine
    assert "http://127.0.0.1:1 cannot be reached" in by_name["kubeflow"].text


def test_the_namespaces_manifest_is_valid_and_goes_with_the_environment() -> None:
    folder = PROJECT / "environments"
    objects = list(yaml.safe_load_all((folder / "kubeflow" / "namespace.yaml").read_text()))
    assert [kubernetes_validate.validate(manifest, "1.30", strict=True) for manifest in objects] == ["1.30"] * 4
    by_kind = {manifest["kind"]: manifest for manifest in objects}
    settings = environment.load(str(folder / "kubeflow.yaml")).kubeflow
    assert settings is not None
    assert by_kind["ServiceAccount"]["metadata"]["name"] == settings.service_account
    assert by_kind["PersistentVolumeClaim"]["metadata"]["name"] == settings.volumes[0].claim
    assert by_kind["RoleBinding"]["roleRef"]["name"] == by_kind["Role"]["metadata"]["name"]
    assert not any("*" in rule["verbs"] + rule["resources"] for rule in by_kind["Role"]["rules"])
