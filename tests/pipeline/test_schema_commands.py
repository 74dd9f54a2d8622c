"""`millrace schema` on a store with one run of `small`, whose data have more than its schema allows."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from schema_data import statistics, write_examples
from store_builder import StoreBuilder
from tensorflow_metadata.proto.v0 import anomalies_pb2

from components.errors import MillraceError
from pipeline import cli, worker
from pipeline.environment import Environment
from pipeline.schema_changes import files

SCHEMA = """\
# Reviewed.
feature {
  name: "fare"  # dollars
  type: FLOAT
  float_domain { min: 0.0 max: 700.0 }
  presence { min_fraction: 1.0 min_count: 1 }
}
feature { name: "tips" type: INT }
feature {
  name: "company"
  type: BYTES
  domain: "companies"
}
string_domain { name: "companies" value: "Blue" value: "Red" }  # in the order of the alphabet
"""
FARES = [1.0] * 8 + [812.5, 900.0]
TIPS = [0.5] * 10
COMPANIES = ["Blue"] * 6 + ["Cab"] * 3 + ["Ace"]


@pytest.fixture
def schema(project: Path) -> Path:
    """The curated schema of `small`."""
    path = project / "schemas" / "small" / "schema.pbtxt"
    path.write_text(SCHEMA)
    return path


Ran = Callable[..., None]


@pytest.fixture
def ran(builder: StoreBuilder, schema: Path, tmp_path: Path) -> Ran:
    """Writes a run with one split of the given columns, failed at the gate."""

    def write(run_id: str = "small-1", fares: list[Any] = FARES, **more: list[Any]) -> None:
        split = {"fare": fares, "tips": TIPS, "company": COMPANIES} | more
        folder = tmp_path / run_id
        write_examples(split, folder / "examples" / "Split-train" / "data.gz")
        (folder / "statistics" / "Split-train").mkdir(parents=True)
        serialized = statistics(split).SerializeToString()
        (folder / "statistics" / "Split-train" / "FeatureStats.pb").write_bytes(serialized)
        anomalies = anomalies_pb2.Anomalies()
        reason = anomalies_pb2.AnomalyInfo.Reason(
            type=anomalies_pb2.AnomalyInfo.FLOAT_TYPE_HAS_NAN, description="Float values contain NaN."
        )
        anomalies.anomaly_info["fare"].reason.append(reason)
        (folder / "anomalies" / "Split-train").mkdir(parents=True)
        (folder / "anomalies" / "Split-train" / "SchemaDiff.pb").write_bytes(anomalies.SerializeToString())
        (folder / "schema").mkdir()
        (folder / "schema" / "schema.pbtxt").write_text(SCHEMA)
        builder.run(run_id)
        for node, name, kind in (
            ("ExampleGen", "examples", "Examples"),
            ("StatisticsGen", "statistics", "ExampleStatistics"),
            ("SchemaGen", "schema", "Schema"),
            ("ExampleValidator", "anomalies", "ExampleAnomalies"),
        ):
            builder.node(node, outputs={name: builder.artifact(kind, folder / name)})
        builder.node("DataGate", "FAILED")

    return write


def said(env: str, *words: str, code: int = 0) -> str:
    result = CliRunner().invoke(cli.main, ["schema", *words, "--env", env])
    assert result.exit_code == code, result.output
    return result.output


def test_propose_tells_each_feature_in_a_line_and_shows_the_change(env: str, ran: Ran, schema: Path) -> None:
    ran()
    output = said(env, "propose", "small")
    assert output.splitlines()[:5] == [
        "fare     largest value 900, above max 700, in 2 rows",
        "         by hand: Float values contain NaN.",
        "tips     by hand: INT in the schema, FLOAT in the data: features.py and model.py rest on the type, so "
        "changing it needs a person",
        "company  2 new values, in 4 rows, e.g. 'Cab' (3 rows), 'Ace' (1 row)",
        "",
    ]
    assert output.splitlines()[5:7] == ["--- schemas/small/schema.pbtxt", "+++ schemas/small/schema.pbtxt"]
    assert "-  float_domain { min: 0.0 max: 700.0 }\n+  float_domain { min: 0.0 max: 900.0 }\n" in output
    assert f"millrace schema accept small --all --run small-1 --seen {seen(env)} --env {env}\n" in output
    assert schema.read_text() == SCHEMA


def values(env: str) -> Any:
    return json.loads(said(env, "propose", "small", "--json"))


def seen(env: str) -> str:
    return str(values(env)["seen"])


def test_propose_as_json(env: str, ran: Ran) -> None:
    ran()
    found = values(env)
    assert (found["run"], found["schema"], found["curated"]) == ("small-1", "schemas/small/schema.pbtxt", True)
    assert [proposal["feature"] for proposal in found["proposals"]] == ["fare", "tips", "company"]
    assert found["proposals"][2]["changes"] == [
        {
            "setting": "string_domain.value",
            "values": ["Cab", "Ace"],
            "text": "2 new values, in 4 rows, e.g. 'Cab' (3 rows), 'Ace' (1 row)",
            "rows": 4,
            "exact": True,
        }
    ]
    assert found["diff"][0] == "--- schemas/small/schema.pbtxt"


def test_accept_changes_that_feature_alone_and_keeps_mode_and_comments(env: str, ran: Ran, schema: Path) -> None:
    ran()
    schema.chmod(0o640)
    output = said(env, "accept", "small", "company")
    expected = SCHEMA.replace('value: "Blue" value', 'value: "Ace" value: "Blue" value: "Cab" value')
    assert schema.read_text() == expected
    assert stat.S_IMODE(schema.stat().st_mode) == 0o640
    assert "schemas/small/schema.pbtxt: company. Review it, and commit it.\nStill open: fare, tips.\n" in output
    assert output.splitlines()[-1].endswith(f"millrace run small --env {env}")
    assert [proposal["feature"] for proposal in values(env)["proposals"]] == ["fare", "tips"]
    said(env, "accept", "small", "--all")
    assert schema.read_text() == expected.replace("max: 700.0", "max: 900.0")
    assert said(env, "accept", "small", "--all") == "The data of small-1 ask for no change that can be accepted.\n"
    assert [path.name for path in schema.parent.iterdir()] == ["schema.pbtxt"]


def test_what_a_run_was_asked_for_is_asked_for_again(env: str, ran: Ran, places: Environment, project: Path) -> None:
    ran()
    (project / "more.csv").write_text("fare,tips,company\n")
    overrides = ("data.path=more.csv", "trainer.epochs=2")
    request = worker.Request(
        recipe="small", overrides=overrides, environment=env, run_id="small-1", span=None, to_node="DataGate"
    )
    (places.log_root / "small-1").mkdir(parents=True)
    (places.log_root / "small-1" / "request.json").write_text(request.model_dump_json())
    (project / "data.csv").unlink()
    go_on = said(env, "accept", "small", "company").splitlines()[-1]
    sets = "--set data.path=more.csv --set trainer.epochs=2"
    assert go_on.endswith(f"millrace run small {sets} --to DataGate --env {env}")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("accept", "small"), "received no feature, expected FEATURE... or --all.\nSee what is proposed:  "),
        (("accept", "small", "fare", "--all"), "received both features and --all, expected FEATURE... or --all.\n"),
        (("accept", "small", "far"), "nothing is proposed for 'far' by the data of small-1. Did you mean fare?\n"),
        (("accept", "small", "zzz"), "for 'zzz' by the data of small-1. There are: fare, tips, company.\n"),
        (("accept", "small", "tips"), "tips cannot be accepted: INT in the schema, FLOAT in the data: "),
        (("reject", "small", "tips", "--reason", "no"), "tips has no proposal to reject: INT in the schema"),
        (("reject", "small", "--reason", "no"), "received no feature, expected FEATURE...\nSee what is proposed:  "),
        (("propose", "small", "--run", "small-2"), "no run 'small-2'. Did you mean small-1?\n"),
        (("propose", "other"), "other has not run yet: there are no data to look at.\nRun it with: "),
        (("propose", "other", "--run", "small-1"), "small-1 is a run of small; received the recipe other.\n"),
        (("show", "other", "--run", "small-1"), "small-1 is a run of small; received the recipe other.\n"),
    ],
)
def test_mistakes_are_told_and_nothing_is_written(
    env: str, ran: Ran, schema: Path, words: tuple[str, ...], message: str
) -> None:
    ran()
    assert message in said(env, *words, code=1)
    assert schema.read_text() == SCHEMA


def test_a_schema_that_changed_since_it_was_shown_is_noticed(env: str, ran: Ran, schema: Path) -> None:
    ran()
    shown = seen(env)
    edited = SCHEMA.replace("max: 700.0", "max: 850.0")
    schema.write_text(edited)
    for words in (("accept", "small", "--all"), ("reject", "small", "fare", "--reason", "no")):
        output = said(env, *words, "--seen", shown, code=1)
        assert f"schemas/small/schema.pbtxt changed since it was shown: received --seen {shown}, it is " in output
        assert "now; nothing was written.\nLook again:  " in output
    assert schema.read_text() == edited
    assert not (schema.parent / "rejected.yaml").exists()
    # The NaNs were told of the feature as it was: whether they still are an anomaly, the next run will say.
    assert "by hand: Float" not in said(env, "propose", "small")
    said(env, "accept", "small", "--all", "--seen", seen(env))
    assert "max: 900.0" in schema.read_text()


def test_a_file_that_changed_under_the_hand_is_not_overwritten(tmp_path: Path, project: Path) -> None:
    path = tmp_path / "schemas" / "schema.pbtxt"
    files.replace(path, None, "one")
    with pytest.raises(MillraceError) as raised:
        files.replace(path, "zero", "two")
    assert str(raised.value) == f"{path} was changed meanwhile; nothing was written.\nTry again."
    assert [entry.name for entry in path.parent.iterdir()] == ["schema.pbtxt"]
    assert path.read_text() == "one"


def test_reject_is_remembered_with_its_reason_and_only_for_the_very_same(env: str, ran: Ran, schema: Path) -> None:
    ran()
    output = said(env, "reject", "small", "company", "fare", "--reason", "A typo: mended at the source.")
    assert output == "schemas/small/rejected.yaml: company, fare. The data gate still stops on them.\n"
    assert yaml.safe_load((schema.parent / "rejected.yaml").read_text()) == {
        "rejected": [
            {
                "feature": "company",
                "changes": ["string_domain.value: Cab", "string_domain.value: Ace"],
                "reason": "A typo: mended at the source.",
                "run": "small-1",
            },
            {
                "feature": "fare",
                "changes": ["float_domain.max: 900.0"],
                "reason": "A typo: mended at the source.",
                "run": "small-1",
            },
        ]
    }
    output = said(env, "propose", "small")
    assert "Rejected before, see schemas/small/rejected.yaml: fare, company\n" in output
    assert [(p["feature"], p["changes"]) for p in values(env)["proposals"]] == [("fare", []), ("tips", [])]
    assert schema.read_text() == SCHEMA

    ran("small-2", fares=[950.0] * 10)
    assert [p["feature"] for p in values(env)["proposals"] if p["changes"]] == ["fare"]
    with (schema.parent / "rejected.yaml").open("a") as file:
        file.write("  # Seen on a Monday.\n")
    said(env, "reject", "small", "fare", "--reason", "Again.")
    text = (schema.parent / "rejected.yaml").read_text()
    assert "  # Seen on a Monday.\n  - feature: fare\n" in text
    assert [entry["reason"] for entry in yaml.safe_load(text)["rejected"]][-1] == "Again."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "rejected: []\n",
            "rejected.yaml does not end with the list `rejected:`.\nWrite it as a list with a `-` an entry.",
        ),
        (
            "rejected:\n- feature: fare\n",
            "rejected.yaml:2: rejected.0.changes is missing; every rejected.yaml needs it.",
        ),
    ],
)
def test_a_rejected_yaml_that_is_not_ours_is_told(env: str, ran: Ran, schema: Path, text: str, message: str) -> None:
    ran()
    (schema.parent / "rejected.yaml").write_text(text)
    code = 2 if "missing" in message else 1
    assert message in said(env, "reject", "small", "fare", "--reason", "no", code=code)
    assert (schema.parent / "rejected.yaml").read_text() == text


def test_without_a_curated_schema_accepting_writes_the_inferred_one(env: str, ran: Ran, schema: Path) -> None:
    ran()
    schema.unlink()
    output = said(env, "propose", "small")
    assert output.startswith(
        "small has no curated schema yet: accepting writes schemas/small/schema.pbtxt, inferred by small-1.\n"
    )
    assert "--- /dev/null\n+++ schemas/small/schema.pbtxt\n" in output
    assert said(env, "show", "small").startswith("The schema of small-1")
    said(env, "accept", "small", "fare")
    header = (
        "# The small recipe's schema. It began as what TFDV inferred from the data of small-1;\n"
        "# review it, for from now on data that differ stop the run.\n\n"
    )
    assert schema.read_text() == header + SCHEMA.replace("max: 700.0", "max: 900.0")


def test_a_required_column_that_the_files_lack_is_gone_before_a_run_could_tell(
    env: str, ran: Ran, project: Path
) -> None:
    ran(company=["Blue"] * 10)
    (project / "data.csv").write_text("tips,company\n1,Blue\n")
    proposal = values(env)["proposals"][0]
    assert (proposal["feature"], proposal["changes"][0]["text"]) == ("fare", "required, and gone from data.csv")
    (project / "b.csv").write_text("fare,company\n1,Blue\n")
    output = said(env, "propose", "small", "--set", "data.path=b.csv")
    assert "gone from" not in output
    sets = f"--set data.path=b.csv --env {env}"
    assert f"{sets}\n" in output
    ran("small-2")
    older = json.loads(said(env, "propose", "small", "--run", "small-1", "--json"))
    assert older["proposals"][0]["changes"][0]["text"] == "largest value 900, above max 700"
    accepted = said(env, "accept", "small", "fare", "--set", "data.path=b.csv")
    assert accepted.endswith(f"millrace run small {sets}\n")


def test_a_run_without_statistics_says_so(env: str, ran: Ran, builder: StoreBuilder, tmp_path: Path) -> None:
    builder.run("small-0")
    builder.node("SchemaGen", outputs={"schema": builder.artifact("Schema", tmp_path / "gone")})
    builder.node("StatisticsGen", "FAILED")
    gone = f"run small-0 has no schema any more: {tmp_path / 'gone'} is gone.\nName another run with --run.\n"
    assert gone in said(env, "propose", "small", code=1)
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "schema.pbtxt").write_text(SCHEMA)
    assert "run small-0 came to no statistics.\nName another run" in said(env, "propose", "small", code=1)


def test_a_schema_that_is_none_is_told_with_its_line(env: str, ran: Ran, schema: Path) -> None:
    ran()
    schema.write_text("feature {\n  nome: 1\n}\n")
    for command in ("propose", "show"):
        assert "schemas/small/schema.pbtxt:2: not a schema: " in said(env, command, "small", code=2)


def test_show(env: str, ran: Ran) -> None:
    lines = [line.split() for line in said(env, "show", "small").splitlines()]
    assert lines[2:] == [
        ["fare", "FLOAT", "100", "%", "any", "0", "…", "700"],
        ["tips", "INT", "0", "%", "any"],
        ["company", "BYTES", "0", "%", "any", "Blue,", "Red"],
    ]
    found = json.loads(said(env, "show", "small", "--json"))
    assert found["feature"][0]["float_domain"] == {"min": 0.0, "max": 700.0}


def test_recipes_features_and_runs_complete(env: str, ran: Ran) -> None:
    ran()
    shell = ShellComplete(cli.main, {}, "millrace", "_MILLRACE_COMPLETE")

    def completed(*words: str, incomplete: str = "") -> list[str]:
        return [item.value for item in shell.get_completions(["schema", *words], incomplete)]

    assert completed("propose") == ["other", "small"]
    assert completed("accept", "--env", env, "small") == ["fare", "company"]
    assert completed("accept", "--env", env, "small", "fare", incomplete="c") == ["company"]
    assert completed("accept", "--env", env, "other") == []
    assert completed("propose", "--env", env, "small", "--run") == ["small-1"]


def test_proposing_loads_no_tensorflow(env: str, ran: Ran, project: Path) -> None:
    ran()
    code = (
        "import sys; from pathlib import Path\n"
        "from click.testing import CliRunner\n"
        "from pipeline import cli, environment, recipe\n"
        f"environment.PROJECT_ROOT = recipe.PROJECT_ROOT = Path({str(project)!r})\n"
        f"result = CliRunner().invoke(cli.main, ['schema', 'propose', 'small', '--env', {env!r}])\n"
        "assert 'in 2 rows' in result.output, result.output\n"
        "heavy = {'tensorflow', 'tfx', 'apache_beam', 'tensorflow_data_validation'}\n"
        "print(sorted(heavy & sys.modules.keys()))\n"
    )
    root = Path(cli.__file__).parents[1]
    answer = subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=root, capture_output=True, text=True)
    assert (answer.stdout, answer.stderr) == ("[]\n", "")
