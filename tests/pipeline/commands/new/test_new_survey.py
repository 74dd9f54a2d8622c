"""What `millrace new` makes of whole files, from odd ones to several labels at once."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from contracts.errors import DataError, MillraceError
from pipeline.commands.new import files, readme
from pipeline.commands.new.plan import Plan
from pipeline.commands.new.survey import survey

Look = Callable[..., Plan]
ROWS = 200


@pytest.fixture
def look(tmp_path: Path) -> Look:
    """Looks at a file in the test's folder, and answers every question with its default, or with no."""

    def look(file: str, *labels: str, yes: bool = True, asked: list[str] | None = None) -> Plan:
        def ask(question: str, default: bool) -> bool:
            if asked is not None:
                asked.append(question)
            return default and yes

        return survey("mine", "millrace new …", file, labels or ["kind"], tmp_path, ask)

    return look


def write_csv(path: Path, header: str, rows: Sequence[Sequence[object]]) -> None:
    path.write_text(header + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")


def sizes(kinds: Sequence[str]) -> list[tuple[float, str]]:
    """Rows of a size that tells the kind most of the time, and the kind."""
    draw = random.Random(0)  # noqa: S311
    chosen = [draw.choice(kinds) for _ in range(ROWS)]
    return [(round(draw.gauss(kinds.index(kind), 0.7), 2), kind) for kind in chosen]


TAGS = [["red"], ["round", "red"], [], ["flat", "round"]]


def tagged() -> list[tuple[float, list[str]]]:
    draw = random.Random(0)  # noqa: S311
    return [(round(row % 4 + draw.gauss(0, 0.3), 2), TAGS[row % 4]) for row in range(ROWS)]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_a_list_is_several_labels_at_once(look: Look, tmp_path: Path, suffix: str) -> None:
    rows = [{"size": size, "kind": tags} for size, tags in tagged()]
    if suffix == "jsonl":
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    plan = look(f"rows.{suffix}")
    task = plan.task
    assert (task.name, task.classes, task.counts) == ("any of 3 names", ("flat", "red", "round"), (50, 100, 100))
    # A row without any of the names is a row like any other.
    assert (plan.train_rows + plan.eval_rows, plan.data["on_missing_label"]) == (ROWS, "keep")
    assert [measured.name for measured in plan.measured] == ["AUC", "BinaryAccuracy"]
    assert plan.measured[0].value > 0.8
    assert 'LABEL = SeveralOf("kind", ["flat", "red", "round"])' in files.features_py(plan)
    assert "judge_by: points" in files.recipe_yaml(plan)
    assert "prediction_key: probabilities" in files.recipe_yaml(plan)
    label = files.schema_pbtxt(plan).partition('name: "kind"')[2].partition("}")[0]
    assert "presence" not in label
    assert "value_count" not in label


def flagged(red: str = "1") -> list[list[object]]:
    """Rows of a size, and what is said of them: one column with 0 and 1, one with yes and no."""
    return [
        [size, red if "red" in tags and row else int("red" in tags), "Yes" if "round" in tags else "no"]
        for row, (size, tags) in enumerate(tagged())
    ]


def test_several_columns_of_yes_and_no_are_predicted_together(look: Look, tmp_path: Path) -> None:
    write_csv(tmp_path / "rows.csv", "size,red,labels", flagged())
    plan = look("rows.csv", "red", "labels")
    assert (plan.task.label, plan.task.classes, plan.task.counts) == ("labels_", ("red", "labels"), (100, 100))
    assert plan.data == {"path": "rows.csv", "columns": {"labels": "bool"}}
    assert [column.name for column in plan.columns] == ["size"]
    assert [measured.name for measured in plan.measured] == ["AUC", "BinaryAccuracy"]
    assert 'LABEL = Flags("labels_", ["red", "labels"])' in files.features_py(plan)
    schema = text_format.Parse(files.schema_pbtxt(plan), schema_pb2.Schema())
    served = {feature.name: list(feature.not_in_environment) for feature in schema.feature}
    assert served == {"red": ["SERVING"], "labels": ["SERVING"], "size": []}
    assert {feature.type for feature in schema.feature if feature.name != "size"} == {schema_pb2.INT}


@pytest.mark.parametrize(
    ("red", "message"),
    [
        ("maybe", "the label red has 'maybe', expected 0 and 1, yes and no, or true and false"),
        ("", "the label red is missing in 99 of 200 rows, expected 0 or 1 in each"),
        ("0", None),
    ],
)
def test_a_label_that_says_neither_yes_nor_no(look: Look, tmp_path: Path, red: str, message: str | None) -> None:
    write_csv(tmp_path / "rows.csv", "size,red,round", flagged(red))
    if message is None:
        assert look("rows.csv", "red", "round").task.counts == (1, 100)
    else:
        with pytest.raises(DataError, match=message):
            look("rows.csv", "red", "round")


def test_several_labels_are_learned_by_the_network_alone(look: Look, tmp_path: Path) -> None:
    lines = [json.dumps({"size": size, "kind": tags}) + "\n" for size, tags in tagged()]
    (tmp_path / "rows.jsonl").write_text("".join(lines), encoding="utf-8")
    plan = look("rows.jsonl")
    assert plan.params["model"] == "network"
    assert "competition" not in files.model_py(plan)
    assert "best" not in files.recipe_yaml(plan) + readme.readme(plan)


def test_names_with_a_mark_between_them_are_several_labels_too(look: Look, tmp_path: Path) -> None:
    write_csv(tmp_path / "rows.csv", "size,kind", [(size, ";".join(tags)) for size, tags in tagged() * 2])
    write_csv(tmp_path / "more.csv", "size,kind", [(1.5, "flat;red;round"), (0.5, "flat"), (0.5, "red;flat")] * 100)
    (tmp_path / "all").mkdir()
    for name in ("rows.csv", "more.csv"):
        (tmp_path / name).rename(tmp_path / "all" / name)
    asked: list[str] = []
    plan = look("all", asked=asked)
    assert asked[0] == "kind holds several names with ';' between them: predict each?"
    assert (plan.task.classes, plan.task.separator) == (("flat", "red", "round"), ";")
    assert 'SeveralOf("kind", ["flat", "red", "round"], separator=";")' in files.features_py(plan)
    apart = look("all", yes=False).task
    assert (apart.several, apart.name) == (False, "6 classes")


def test_a_comma_in_a_name_is_part_of_it(look: Look, tmp_path: Path) -> None:
    rows = [(size, f'"{kind}"') for size, kind in sizes(["Oslo, Norway", "Rome, Italy", "Turin, Italy"])]
    write_csv(tmp_path / "rows.csv", "size,kind", rows)
    assert look("rows.csv").task.classes == ("Oslo, Norway", "Rome, Italy", "Turin, Italy")


def test_classes_that_differ_in_case_are_one_if_the_user_says_so(look: Look, tmp_path: Path) -> None:
    kinds = [(size, kind if row % 3 else f" {kind.upper()}") for row, (size, kind) in enumerate(sizes(["Ape", "Bee"]))]
    write_csv(tmp_path / "rows.csv", "size,kind", kinds)
    asked: list[str] = []
    plan = look("rows.csv", asked=asked)
    assert asked == ["These classes of kind differ only in case: Bee = BEE; Ape = APE. Are they the same?"]
    assert (plan.task.classes, sum(plan.task.counts)) == (("Ape", "Bee"), ROWS)
    assert 'LABEL = Classes("kind", ["Ape", "Bee"], ignore_case=True)' in files.features_py(plan)
    assert "classes of kind that differ only in case are one (ignore_case in features.py)" in plan.notes
    assert look("rows.csv", yes=False).task.classes == ("APE", "Ape", "BEE", "Bee")


def test_three_hundred_classes_of_enough_rows_each(look: Look, tmp_path: Path) -> None:
    rows = [(row % 7, f"city{row % 300}") for row in range(1800)]
    write_csv(tmp_path / "rows.csv", "size,kind", rows)
    plan = look("rows.csv")
    assert plan.task.name == "300 classes"
    assert "and 280 more" in readme.counts(plan.task)
    assert any(note.endswith("and 290 more: fewer than 10") for note in plan.notes)
    write_csv(tmp_path / "few.csv", "size,kind", rows[:1200])
    with pytest.raises(DataError) as caught:
        look("few.csv")
    assert str(caught.value) == (
        "the label kind has 300 different texts in 1,200 rows, expected numbers or at most 1,000 classes of 5 rows "
        "each.\nName another column by --label."
    )


def test_a_class_is_rare_by_its_even_share(look: Look, tmp_path: Path) -> None:
    write_csv(tmp_path / "rows.csv", "size,kind", [(row % 5, f"c{row % 7}") for row in range(ROWS)])
    assert look("rows.csv").task.rare == []


@pytest.mark.parametrize(
    ("header", "row", "label", "message"),
    [
        ("size,size,kind", "1,2,a", "kind", "the header names 'size' more than once."),
        ("kind", "a", "kind", "nothing is left to learn kind from: the data have no other column."),
        ("size,kind", "1,a", "kind", "the label kind has 'a' in every row"),
        ("size,kind", "1,", "kind", "the label kind has no value in any row"),
        ("size,kind", "1,a", "knd", "rows.csv has no column 'knd'. Did you mean kind?"),
    ],
)
def test_what_nothing_can_be_learned_from(
    look: Look, tmp_path: Path, header: str, row: str, label: str, message: str
) -> None:
    rows = [row.split(","), row.replace("a", "b").split(",")] if header == "kind" else [row.split(",")]
    write_csv(tmp_path / "rows.csv", header, rows * 60)
    with pytest.raises(MillraceError) as caught:
        look("rows.csv", label)
    assert message in str(caught.value)


def test_ten_rows_are_too_few(look: Look, tmp_path: Path) -> None:
    write_csv(tmp_path / "rows.csv", "size,kind", sizes(["a", "b"])[:10])
    with pytest.raises(
        DataError, match=r"labeled rows to learn from and \d to be judged on, expected at least 20 and 1"
    ):
        look("rows.csv")


def test_what_is_in_an_object_is_a_column(look: Look, tmp_path: Path) -> None:
    rows = [
        {"at": {"size": size, "place": {"x": row % 5}}, "kind": kind} for row, (size, kind) in enumerate(sizes("ab"))
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    plan = look("rows.jsonl")
    assert [(column.name, column.use) for column in plan.columns] == [("at.size", "number"), ("at.place.x", "number")]


def test_headers_of_any_kind(look: Look, tmp_path: Path) -> None:
    header = "seen at,None,label,class,größe [mm],a.b/c,kind"
    rows = [
        (f"2024-01-{1 + row % 28:02d}", "x y"[row % 2], row % 3, row % 4, size, row % 2, kind)
        for row, (size, kind) in enumerate(sizes("ab"))
    ]
    write_csv(tmp_path / "rows.csv", header, rows)
    plan = look("rows.csv")
    assert [column.name for column in plan.columns] == header.split(",")[:-1]
    compile(files.features_py(plan), "features.py", "exec")


def test_the_newest_rows_are_judged_on_if_the_user_says_so(look: Look, tmp_path: Path) -> None:
    write_csv(
        tmp_path / "rows.csv",
        "seen,size,kind",
        [(f"20{row // 10:02d}-01-01", *cells) for row, cells in enumerate(sizes("ab"))],
    )
    asked: list[str] = []
    plan = look("rows.csv", asked=asked)
    assert asked == [
        "Learn from rows before 2016-01-01 and judge by the 40 newer ones, as seen says (no: draw them at random)?"
    ]
    assert (plan.train_rows, plan.eval_rows) == (160, 40)
    assert "starts: {eval: 2016-01-01}" in files.recipe_yaml(plan)
    drawn = look("rows.csv", yes=False)
    assert "split_by_time" not in drawn.data
    assert 50 < drawn.eval_rows < 90
