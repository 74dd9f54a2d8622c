"""`millrace schema` on a store with one run of `small`, whose data violate its schema."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from click.shell_completion import ShellComplete
from schema_scene import SCHEMA, Ran, printed, seen, values
from store_builder import StoreBuilder

from pipeline import cli
from pipeline.plan.environment import Environment
from pipeline.run.folder import Request


def test_propose_lists_each_feature_in_a_line_and_shows_the_change(env: str, ran: Ran, schema: Path) -> None:
    ran()
    output = printed(env, "propose", "small")
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


def test_propose_as_json(env: str, ran: Ran) -> None:
    ran()
    proposed = values(env)
    assert (proposed["run"], proposed["schema"], proposed["curated"]) == ("small-1", "schemas/small/schema.pbtxt", True)
    assert [proposal["feature"] for proposal in proposed["proposals"]] == ["fare", "tips", "company"]
    assert proposed["proposals"][2]["changes"] == [
        {
            "setting": "string_domain.value",
            "values": ["Cab", "Ace"],
            "text": "2 new values, in 4 rows, e.g. 'Cab' (3 rows), 'Ace' (1 row)",
            "rows": 4,
            "exact": True,
        }
    ]
    assert proposed["diff"][0] == "--- schemas/small/schema.pbtxt"


def test_the_overrides_of_the_run_are_repeated(env: str, ran: Ran, places: Environment, project: Path) -> None:
    ran()
    (project / "more.csv").write_text("fare,tips,company\n")
    overrides = ("data.path=more.csv", "trainer.epochs=2")
    request = Request(
        recipe="small", overrides=overrides, environment=env, run_id="small-1", span=None, to_node="DataGate"
    )
    (places.log_root / "small-1").mkdir(parents=True)
    (places.log_root / "small-1" / "request.json").write_text(request.model_dump_json())
    (project / "data.csv").unlink()
    go_on = printed(env, "accept", "small", "company").splitlines()[-1]
    sets = "--set data.path=more.csv --set trainer.epochs=2"
    assert go_on.endswith(f"millrace run small {sets} --to DataGate --env {env}")


def test_a_required_column_that_the_files_lack_is_gone_before_a_run_could_show_it(
    env: str, ran: Ran, project: Path
) -> None:
    ran(company=["Blue"] * 10)
    (project / "data.csv").write_text("tips,company\n1,Blue\n")
    proposal = values(env)["proposals"][0]
    assert (proposal["feature"], proposal["changes"][0]["text"]) == ("fare", "required, and gone from data.csv")
    (project / "b.csv").write_text("fare,company\n1,Blue\n")
    output = printed(env, "propose", "small", "--set", "data.path=b.csv")
    assert "gone from" not in output
    sets = f"--set data.path=b.csv --env {env}"
    assert f"{sets}\n" in output
    ran("small-2")
    older = json.loads(printed(env, "propose", "small", "--run", "small-1", "--json"))
    assert older["proposals"][0]["changes"][0]["text"] == "largest value 900, above max 700"
    accepted = printed(env, "accept", "small", "fare", "--set", "data.path=b.csv")
    assert accepted.endswith(f"millrace run small {sets}\n")


def test_a_run_without_statistics_says_so(env: str, ran: Ran, builder: StoreBuilder, tmp_path: Path) -> None:
    builder.run("small-0")
    builder.node("SchemaGen", outputs={"schema": builder.artifact("Schema", tmp_path / "gone")})
    builder.node("StatisticsGen", "FAILED")
    gone = f"run small-0 has no schema any more: {tmp_path / 'gone'} is gone.\nName another run with --run.\n"
    assert gone in printed(env, "propose", "small", code=1)
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "schema.pbtxt").write_text(SCHEMA)
    assert "run small-0 has no statistics.\nName another run" in printed(env, "propose", "small", code=1)


def test_a_file_that_is_not_a_schema_is_reported_with_its_line(env: str, ran: Ran, schema: Path) -> None:
    ran()
    schema.write_text("feature {\n  nome: 1\n}\n")
    for command in ("propose", "show"):
        assert "schemas/small/schema.pbtxt:2: not a schema: " in printed(env, command, "small", code=2)


def test_show(env: str, ran: Ran) -> None:
    lines = [line.split() for line in printed(env, "show", "small").splitlines()]
    assert lines[2:] == [
        ["fare", "FLOAT", "100", "%", "any", "0", "…", "700"],
        ["tips", "INT", "0", "%", "any"],
        ["company", "BYTES", "0", "%", "any", "Blue,", "Red"],
    ]
    features = json.loads(printed(env, "show", "small", "--json"))
    assert features["feature"][0]["float_domain"] == {"min": 0.0, "max": 700.0}


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
        "from pipeline import cli\n"
        "from pipeline.plan import project\n"
        f"project.root = lambda: Path({str(project)!r})\n"
        f"result = CliRunner().invoke(cli.main, ['schema', 'propose', 'small', '--env', {env!r}])\n"
        "assert 'in 2 rows' in result.output, result.output\n"
        "heavy = {'tensorflow', 'tfx', 'apache_beam', 'tensorflow_data_validation'}\n"
        "print(sorted(heavy & sys.modules.keys()))\n"
    )
    root = Path(cli.__file__).parents[1]
    process = subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=root, capture_output=True, text=True)
    assert (process.stdout, process.stderr) == ("[]\n", "")
