"""The text of a schema: what an edit changes, and everything that it leaves alone."""

from __future__ import annotations

import difflib

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from contracts.errors import MillraceError
from pipeline.plan.project import ENGINE
from pipeline.schema import editing, syntax

TAXI = (ENGINE / "schemas" / "taxi" / "schema.pbtxt").read_text(encoding="utf-8")


def edited(text: str, changes: str) -> str:
    """The text after Python statements on `schema` and its features and domains by name."""
    schema = editing.parse_schema(text)
    names = {entry.name: entry for entry in [*schema.string_domain, *schema.feature]}
    exec(changes, {"schema": schema, "pb": schema_pb2, **names})  # noqa: S102 (the tests' own statements)
    return editing.edit_text(text, schema)


def changed_lines(before: str, after: str) -> list[str]:
    lines = difflib.ndiff(before.splitlines(), after.splitlines())
    return [line for line in lines if line[:2] in {"- ", "+ "}]


def test_no_change_changes_nothing() -> None:
    assert edited(TAXI, "") == TAXI


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        (
            "trip_seconds.int_domain.max = 90000",
            [
                "-   int_domain { min: 0 max: 86400 }  # a day; a longer trip is a meter left running",
                "+   int_domain { min: 0 max: 90000 }  # a day; a longer trip is a meter left running",
            ],
        ),
        (
            "fare.float_domain.max = 812.5",
            ["-   float_domain { min: 0.0 }", "+   float_domain { min: 0.0 max: 812.5 }"],
        ),
        (
            "company.lifecycle_stage = pb.DEPRECATED",
            ["+   lifecycle_stage: DEPRECATED"],
        ),
        (
            "payment_type.presence.min_fraction = 0.5; payment_type.value_count.max = 1",
            [
                "-   presence { min_fraction: 1.0 min_count: 1 }",
                "+   presence { min_fraction: 0.5 min_count: 1 }",
                "-   shape { dim { size: 1 } }",
                "+   value_count { max: 1 }",
            ],
        ),
        (
            "schema.feature.add(name='weather', type=pb.BYTES).presence.min_count = 1",
            ["+ feature {", '+   name: "weather"', "+   type: BYTES", "+   presence { min_count: 1 }", "+ }"],
        ),
    ],
)
def test_a_change_touches_its_own_lines_alone(changes: str, lines: list[str]) -> None:
    after = edited(TAXI, changes)
    assert changed_lines(TAXI, after) == lines
    assert comments(after) == comments(TAXI)


def comments(text: str) -> list[str]:
    return [line[line.index("#") :] for line in text.splitlines() if "#" in line]


def test_values_are_inserted_where_their_order_puts_them() -> None:
    schema = editing.parse_schema(TAXI)
    [domain] = schema.string_domain
    before = list(domain.value)
    del domain.value[:]
    domain.value.extend(["Bitcoin", *before[:2], 'Cro"wn', *before[2:], "Ünits"])
    after = editing.edit_text(TAXI, schema)
    assert changed_lines(TAXI, after) == ['+   value: "Bitcoin"', '+   value: "Cro\\"wn"', '+   value: "Ünits"']
    assert (
        after.index("Bitcoin") < after.index('"Cash"') < after.index("Credit") < after.index("Cro") < after.index("Dis")
    )


STYLES = [
    ('feature { name: "a" int_domain { max: 3 } }', 'feature { name: "a" int_domain { max: 5 min: -2 } }'),
    ("feature <\n  name: 'a';\n  int_domain: < max: 3, >,\n>\n", None),
    ('feature {\n\tname: "a" # }\n\tint_domain {\n\t\tmax: 3 # "three"\n\t}\n}', None),
    ('feature { name: "a" "" int_domain { max: 0x3 }}feature { name: "b" }', None),
    ('# only\nfeature {\n  name:\n    "a"\n  int_domain {\n    max: 3\n  }\n}\n# end', None),
]


@pytest.mark.parametrize(("before", "expected"), STYLES)
def test_other_ways_to_write_the_same_are_understood(before: str, expected: str | None) -> None:
    after = edited(before, "a.int_domain.max = 5; a.int_domain.min = -2")
    domain = editing.parse_schema(after).feature[0].int_domain
    assert (domain.min, domain.max) == (-2, 5)
    assert comments(after) == comments(before)
    assert expected in {None, after}


def test_a_new_line_takes_the_indentation_of_its_neighbour_and_leaves_a_comment_where_it_is() -> None:
    after = edited(STYLES[2][0], "a.int_domain.min = -2")
    assert after.splitlines()[3:5] == ['\t\tmax: 3 # "three"', "\t\tmin: -2"]


def test_fields_are_added_to_what_is_empty() -> None:
    assert edited('feature { name: "a" int_domain {} }', "a.int_domain.min = 1") == (
        'feature { name: "a" int_domain { min: 1 } }'
    )
    assert edited("# nothing yet\n", "schema.feature.add(name='a')") == '# nothing yet\nfeature {\n  name: "a"\n}\n'


@pytest.mark.parametrize(
    ("before", "changes", "message"),
    [
        (
            'string_domain { name: "d" value: ["x", "y"] }',
            "d.value.append('z')",
            "value is written as a list in brackets.\nWrite one a line, or edit by hand.",
        ),
        (
            'feature { name: "a" presence { min_count: 1 } }',
            "a.ClearField('presence')",
            "presence would be removed.\nEdit the file by hand.",
        ),
        (
            'feature { name: "a" }\nfeature { name: "b" }',
            "del schema.feature[0]",
            "the schema's text cannot be changed safely: it would not mean what was proposed.\nEdit the file by hand.",
        ),
    ],
)
def test_what_cannot_be_done_safely_is_refused(before: str, changes: str, message: str) -> None:
    with pytest.raises(MillraceError) as raised:
        edited(before, changes)
    assert str(raised.value) == message


@pytest.mark.parametrize("style", [{}, {"as_one_line": True}, {"pointy_brackets": True}, {"as_utf8": True}])
def test_all_changes_at_once_in_any_style(style: dict[str, bool]) -> None:
    text = text_format.MessageToString(editing.parse_schema(TAXI), **style)
    wanted = editing.parse_schema(TAXI)
    for number, feature in enumerate(list(wanted.feature)):
        feature.presence.min_fraction = number / 100
        feature.value_count.min = number
        feature.lifecycle_stage = schema_pb2.DEPRECATED if number % 2 else schema_pb2.PRODUCTION
        if feature.type == schema_pb2.INT:
            feature.int_domain.max = 2**62 + number
        elif feature.type == schema_pb2.FLOAT:
            feature.float_domain.min = -1.1e-9 * number
        wanted.feature.add(name=f"new {number} \n\"ü'", type=schema_pb2.INT).int_domain.SetInParent()
    wanted.string_domain[0].value.insert(3, "a # { } 'b' \\")
    assert editing.parse_schema(editing.edit_text(text, wanted)) == wanted


def test_every_field_is_found_at_its_place() -> None:
    [feature] = syntax.parse_fields(STYLES[1][0]).fields
    assert feature.block is not None
    name, domain = feature.block.fields
    assert [STYLES[1][0][slice(*field.value)] for field in (name, domain)] == ["'a'", "< max: 3, >"]
    with pytest.raises(MillraceError, match=r"line 2: received '@', expected a field\."):
        syntax.parse_fields("a: 1\n@")


def test_all_of_the_taxi_schema_is_parsed_as_protobuf_parses_it() -> None:
    schema = text_format.Parse(TAXI, schema_pb2.Schema())
    block = syntax.parse_fields(TAXI)
    assert len(block.named("feature")) == len(schema.feature) == 18
    assert len(block.named("string_domain")) == 1
