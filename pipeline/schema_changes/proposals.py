"""Compares the columns of a run with the schema and proposes, feature by feature, what would make it fit."""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.checks import UNUSED_STAGES
from pipeline.schema_changes import changes, rules
from pipeline.schema_changes.changes import Change, Proposal
from pipeline.schema_changes.rows import Count
from pipeline.schema_changes.rules import DATA_SET, Case, Data

TAKES_MISSING = "features.py must take a missing value of it from then on"
NOT_READ = "features.py must not read it from then on"


def proposals(schema: schema_pb2.Schema, data: Data, rejected: Mapping[str, frozenset[str]]) -> list[Proposal]:
    """A proposal for each feature that does not fit, in the schema's order, and then for each new column.

    Args:
        schema: What the data are compared with.
        data: The data.
        rejected: Keys of changes that are not wanted, by feature.
    """
    found = []
    for feature in schema.feature:
        if feature.lifecycle_stage not in UNUSED_STAGES:
            columns = list(data.columns.get(feature.name, {}).values())
            case = Case(schema, feature, columns, data, rejected.get(feature.name, frozenset()))
            found.append(_for_feature(case))
    known = {feature.name for feature in schema.feature}
    for name in sorted(data.columns.keys() - known):
        found.append(_for_new(name, data, rejected.get(name, frozenset())))
    if DATA_SET in data.anomalies:
        found.append(Proposal(DATA_SET, reasons=data.anomalies[DATA_SET]))
    return [proposal for proposal in found if proposal.changes or proposal.reasons]


def _for_feature(case: Case) -> Proposal:
    feature = case.feature
    if feature.name in case.data.absent or not case.present:
        return Proposal(feature.name, tuple(rules.gone(case)), notes=(NOT_READ,))
    reasons = [*rules.type_reasons(case), *case.data.anomalies.get(feature.name, ())]
    made = [*rules.presence(case), *rules.lengths(case)]
    if not any(column.type != feature.type for column in case.present):
        for rule in (rules.values, rules.ranges):
            for outcome in rule(case):
                if isinstance(outcome, str):
                    reasons.append(outcome)
                else:
                    made.append(outcome)
    optional = any(change.setting == "presence.min_fraction" for change in made) and feature.presence.min_fraction == 1
    return Proposal(feature.name, tuple(made), tuple(reasons), (TAKES_MISSING,) if optional else ())


def _for_new(name: str, data: Data, rejected: frozenset[str]) -> Proposal:
    columns = list(data.columns[name].values())
    types = {column.type for column in columns if column.num_present} or {columns[0].type}
    if len(types) > 1 or schema_pb2.STRUCT in types:
        names = " and ".join(map(rules.type_name, sorted(types)))
        return Proposal(name, reasons=(f"new column, {names}: which type it is to have needs a person",))
    feature = schema_pb2.Feature(name=name, type=types.pop())
    rows = sum(data.num_rows.values())
    present = sum(column.num_present for column in columns)
    everywhere = present == rows
    shares = [rules.whole_percents(column) for column in columns] if len(columns) == len(data.num_rows) else [0.0]
    feature.presence.min_fraction = 1.0 if everywhere else min(shares)
    if all(column.num_present for column in columns) and len(columns) == len(data.num_rows):
        feature.presence.min_count = 1
    if present:
        feature.value_count.min = min(column.fewest for column in columns if column.num_present)
        feature.value_count.max = max(column.most for column in columns)
    written = text_format.MessageToString(feature, as_one_line=True, as_utf8=True).strip()
    where = "in all rows" if everywhere else f"in {rules.percent(present / rows)} of rows"
    text = f"new column, {rules.type_name(feature.type)}, {where}"
    # The share of rows is another one every day; a column that was rejected is rejected with any.
    made = Change(changes.NEW, (written,), text, Count(present), f"new column: {rules.type_name(feature.type)}")
    return Proposal(name, () if rejected.issuperset(made.keys) else (made,))
