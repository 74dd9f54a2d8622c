"""`millrace schema accept` and `reject`: what they write, and what they refuse."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import yaml
from schema_scene import SCHEMA, Ran, printed, seen, values

from contracts.errors import MillraceError
from pipeline.schema import reviewed_files


def test_accept_changes_that_feature_alone_and_keeps_mode_and_comments(env: str, ran: Ran, schema: Path) -> None:
    ran()
    schema.chmod(0o640)
    output = printed(env, "accept", "small", "company")
    expected = SCHEMA.replace('value: "Blue" value', 'value: "Ace" value: "Blue" value: "Cab" value')
    assert schema.read_text() == expected
    assert stat.S_IMODE(schema.stat().st_mode) == 0o640
    assert "schemas/small/schema.pbtxt: company. Review it, and commit it.\nStill open: fare, tips.\n" in output
    assert output.splitlines()[-1].endswith(f"millrace run small --env {env}")
    assert [proposal["feature"] for proposal in values(env)["proposals"]] == ["fare", "tips"]
    printed(env, "accept", "small", "--all")
    assert schema.read_text() == expected.replace("max: 700.0", "max: 900.0")
    assert printed(env, "accept", "small", "--all") == "The data of small-1 ask for no change that can be accepted.\n"
    assert [path.name for path in schema.parent.iterdir()] == ["schema.pbtxt"]


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
def test_mistakes_are_reported_and_nothing_is_written(
    env: str, ran: Ran, schema: Path, words: tuple[str, ...], message: str
) -> None:
    ran()
    assert message in printed(env, *words, code=1)
    assert schema.read_text() == SCHEMA


def test_a_schema_that_changed_since_it_was_shown_is_refused(env: str, ran: Ran, schema: Path) -> None:
    ran()
    shown = seen(env)
    edited = SCHEMA.replace("max: 700.0", "max: 850.0")
    schema.write_text(edited)
    for words in (("accept", "small", "--all"), ("reject", "small", "fare", "--reason", "no")):
        output = printed(env, *words, "--seen", shown, code=1)
        assert f"schemas/small/schema.pbtxt changed since it was shown: received --seen {shown}, it is " in output
        assert "now; nothing was written.\nLook again:  " in output
    assert schema.read_text() == edited
    assert not (schema.parent / "rejected.yaml").exists()
    # The NaNs were reported for the old feature: the next run will show whether they are still an anomaly.
    assert "by hand: Float" not in printed(env, "propose", "small")
    printed(env, "accept", "small", "--all", "--seen", seen(env))
    assert "max: 900.0" in schema.read_text()


def test_a_file_that_changed_meanwhile_is_not_overwritten(tmp_path: Path, project: Path) -> None:
    path = tmp_path / "schemas" / "schema.pbtxt"
    reviewed_files.replace_file(path, None, "one")
    with pytest.raises(MillraceError) as raised:
        reviewed_files.replace_file(path, "zero", "two")
    assert str(raised.value) == f"{path} was changed meanwhile; nothing was written.\nTry again."
    assert [entry.name for entry in path.parent.iterdir()] == ["schema.pbtxt"]
    assert path.read_text() == "one"


def test_a_rejection_is_stored_with_its_reason_and_only_for_the_same_change(env: str, ran: Ran, schema: Path) -> None:
    ran()
    output = printed(env, "reject", "small", "company", "fare", "--reason", "A typo: mended at the source.")
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
    output = printed(env, "propose", "small")
    assert "Rejected before, see schemas/small/rejected.yaml: fare, company\n" in output
    assert [(p["feature"], p["changes"]) for p in values(env)["proposals"]] == [("fare", []), ("tips", [])]
    assert schema.read_text() == SCHEMA

    ran("small-2", fares=[950.0] * 10)
    assert [p["feature"] for p in values(env)["proposals"] if p["changes"]] == ["fare"]
    with (schema.parent / "rejected.yaml").open("a") as file:
        file.write("  # Seen on a Monday.\n")
    printed(env, "reject", "small", "fare", "--reason", "Again.")
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
def test_a_rejected_yaml_that_is_not_ours_is_reported(
    env: str, ran: Ran, schema: Path, text: str, message: str
) -> None:
    ran()
    (schema.parent / "rejected.yaml").write_text(text)
    code = 2 if "missing" in message else 1
    assert message in printed(env, "reject", "small", "fare", "--reason", "no", code=code)
    assert (schema.parent / "rejected.yaml").read_text() == text


def test_without_a_curated_schema_accepting_writes_the_inferred_one(env: str, ran: Ran, schema: Path) -> None:
    ran()
    schema.unlink()
    output = printed(env, "propose", "small")
    assert output.startswith(
        "small has no curated schema yet: accepting writes schemas/small/schema.pbtxt, inferred by small-1.\n"
    )
    assert "--- /dev/null\n+++ schemas/small/schema.pbtxt\n" in output
    assert printed(env, "show", "small").startswith("The schema of small-1")
    printed(env, "accept", "small", "fare")
    header = (
        "# The small recipe's schema. It began as what TFDV inferred from the data of small-1;\n"
        "# review it, for from now on data that differ stop the run.\n\n"
    )
    assert schema.read_text() == header + SCHEMA.replace("max: 700.0", "max: 900.0")
