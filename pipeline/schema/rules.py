"""The rules of TFDV's validation, each with the schema change that would satisfy it, feature by feature."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from contracts.data_verdict import DATA_SET
from pipeline.plan.preflight import UNUSED_STAGES
from pipeline.schema import changes
from pipeline.schema.changes import Change, Proposal
from pipeline.schema.data import Column, Columns, Count, Rows

NUM_EXAMPLES = 3


@dataclass(frozen=True)
class Data:
    """What is known about the data.

    Attributes:
        columns: By name and split.
        num_rows: By split.
        rows: Counts rows that violate a limit.
        absent: Columns that the current data files lack, with the file that was searched.
        anomalies: TFDV's descriptions that no rule here covers, by feature.
    """

    columns: Columns
    num_rows: Mapping[str, int]
    rows: Rows
    absent: Mapping[str, str]
    anomalies: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Case:
    """A feature of the schema with its column in each split that has it, and what was rejected."""

    schema: schema_pb2.Schema
    feature: schema_pb2.Feature
    columns: list[Column]
    data: Data
    rejected: frozenset[str]

    @property
    def present(self) -> list[Column]:
        """The columns of the splits in which some row has a value."""
        return [column for column in self.columns if column.num_present]

    @property
    def num_missing(self) -> int:
        """Rows without a value, over all splits."""
        return sum(self.data.num_rows.values()) - sum(column.num_present for column in self.columns)

    def change(self, setting: str, value: changes.Value, text: str, count: Count | None = None) -> Iterator[Change]:
        """The change, unless it was rejected."""
        change = Change(setting, (value,), text, count)
        if not self.rejected.issuperset(change.keys):
            yield change


def gone_rule(case: Case) -> Iterator[Change]:
    presence = case.feature.presence
    if presence.min_fraction > 0 or presence.min_count > 0:
        where = case.data.absent.get(case.feature.name)
        text = f"required, and gone from {where}" if where else "required, and gone from the data"
        if where is None and case.columns:
            text = "required, and without a value in all rows"
        yield from case.change(changes.DEPRECATED, "DEPRECATED", text)


def type_reasons(case: Case) -> Iterator[str]:
    other = sorted({column.type for column in case.present} - {case.feature.type})
    if other:
        names = " and ".join(map(type_name, other))
        yield (
            f"{type_name(case.feature.type)} in the schema, {names} in the data: features.py and model.py rest on the "
            "type, so changing it needs a person"
        )


def presence_rule(case: Case) -> Iterator[Change]:
    presence = case.feature.presence
    shares = [(column.num_present / column.num_rows, column) for column in case.columns if column.num_rows]
    if not shares:
        return
    least, column = min(shares, key=lambda share: share[0])
    count = Count(case.num_missing)
    lacking = least < presence.min_fraction
    if lacking:
        allowed = 1 - presence.min_fraction
        text = f"missing in {percent(1 - least)} of rows{_only(case, column)}, schema allows "
        text += percent(allowed) if allowed > 0 else "none"
        yield from case.change("presence.min_fraction", whole_percents(column), text, count)
    fewest = min(column.num_present for column in case.columns)
    if fewest < presence.min_count:
        text = f"a value in {Count(fewest)}, schema requires {presence.min_count:,}"
        yield from case.change("presence.min_count", fewest, text)


def lengths_rule(case: Case) -> Iterator[Change]:
    """Checks the numbers of values per row: a shape fits only columns whose rows all have the same, and never none."""
    feature = case.feature
    fewest = min(column.fewest for column in case.present)
    most = max(column.most for column in case.present)
    if feature.HasField("shape"):
        size = math.prod(int(dim.size) for dim in feature.shape.dim)
        if case.num_missing == 0 and fewest == most == size:
            return
        counted = case.data.rows.of_length(feature.name, size, size) if (fewest, most) != (size, size) else None
        text = _lengths_text(fewest, most, size, size) if counted else "not always there: a number of values, no shape"
        yield from case.change("value_count.min", fewest, text, counted)
        yield from case.change("value_count.max", most, "")
    elif feature.HasField("value_count"):
        low, high = int(feature.value_count.min), int(feature.value_count.max)
        too_few, too_many = fewest < low, 0 < high < most
        if not (too_few or too_many):
            return
        text, counted = _lengths_text(fewest, most, low, high), case.data.rows.of_length(feature.name, low, high)
        if too_few:
            yield from case.change("value_count.min", fewest, text, counted)
        if too_many:
            yield from case.change("value_count.max", most, "" if too_few else text, None if too_few else counted)


def values_rule(case: Case) -> Iterator[Change | str]:
    """Checks for new texts; TFDV accepts a split in which at least a share of `min_domain_mass` is known."""
    domain = changes.string_domain(case.schema, case.feature)
    if domain is None or case.feature.type != schema_pb2.BYTES:
        return
    constraints = case.feature.distribution_constraints
    mass = constraints.min_domain_mass if case.feature.HasField("distribution_constraints") else 1.0
    allowed, new = set(domain.value), dict[str, int]()
    for column in case.present:
        outside = {text: n for text, n in column.counts.items() if text not in allowed}
        total = sum(column.counts.values())
        if not outside or sum(outside.values()) <= (1 - mass) * total:
            continue
        if not column.all_counted:
            yield (
                f"more than {len(column.counts):,} different values: a list of allowed ones does not suit it; "
                "take its domain away, or mend the data"
            )
            return
        for text, number in outside.items():
            new[text] = new.get(text, 0) + number
    wanted = {text: n for text, n in new.items() if f"{changes.VALUE}: {text}" not in case.rejected}
    if wanted:
        single = all(column.most <= 1 for column in case.present)
        yield Change(changes.VALUE, tuple(wanted), *_values_text(wanted, single, case))


def _values_text(new: Mapping[str, int], single: bool, case: Case) -> tuple[str, Count | None]:
    ordered = sorted(new.items(), key=lambda entry: (-entry[1], entry[0]))
    noun = "value" if len(new) == 1 else "values"
    unit: Callable[[int], str] = (lambda n: str(Count(n))) if single else (lambda n: f"{n:,} times")
    named = ", ".join(f"{text!r} ({unit(number)})" for text, number in ordered[:NUM_EXAMPLES])
    more = ", …" if len(ordered) > NUM_EXAMPLES else ""
    total = sum(new.values())
    where = f"in {Count(total)}" if single else f"{total:,} times"
    shared = _sharing(case)
    text = f"{len(new)} new {noun}, {where}, e.g. {named}{more}"
    if shared:
        text += f"; shared with {', '.join(shared)}"
    return text, Count(total) if single else None


def _sharing(case: Case) -> list[str]:
    domain = case.feature.domain
    return [f.name for f in case.schema.feature if domain and f.domain == domain and f.name != case.feature.name]


def ranges_rule(case: Case) -> Iterator[Change | str]:
    kind = case.feature.WhichOneof("domain_info")
    if kind not in {"int_domain", "float_domain"}:
        return
    domain = getattr(case.feature, kind)
    lows = [column.lowest for column in case.present if column.lowest is not None]
    highs = [column.highest for column in case.present if column.highest is not None]
    name, rows = case.feature.name, case.data.rows
    bounds = (("min", "smallest", "below", lows, min), ("max", "largest", "above", highs, max))
    for bound, extreme, side, seen, pick in bounds:
        if not domain.HasField(bound) or not seen:
            continue
        limit, extremum = getattr(domain, bound), pick(seen)
        if not (extremum < limit if bound == "min" else extremum > limit):
            continue
        if math.isinf(extremum):
            yield f"{extreme} value {extremum}, {side} {bound} {_number(limit)}: mend the data, or take {bound} away"
            continue
        # The fewest digits that identify the 32-bit number.
        value: changes.Value = int(extremum) if kind == "int_domain" else float(str(np.float32(extremum)))
        text = f"{extreme} value {_number(extremum)}, {side} {bound} {_number(limit)}"
        counted = rows.outside(name, limit, None) if bound == "min" else rows.outside(name, None, limit)
        yield from case.change(f"{kind}.{bound}", value, text, counted)


def _lengths_text(fewest: int, most: int, low: int, high: int) -> str:
    seen = f"{fewest} to {most}" if fewest != most else str(most)
    allowed = f"{low} to {high}" if low != high else str(high)
    return f"{seen} values a row, schema allows {allowed if high else f'{low} or more'}"


def whole_percents(column: Column) -> float:
    """The share of rows with a value, rounded down to whole percents: other data may have slightly less."""
    return (100 * column.num_present // column.num_rows) / 100


def _only(case: Case, column: Column) -> str:
    fine = (c for c in case.columns if c.num_present >= case.feature.presence.min_fraction * c.num_rows)
    return f" of {column.split}" if any(fine) else ""


def percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.3g} %"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1e6 and value == int(value) else f"{value:.7g}"


def type_name(number: int) -> str:
    return str(schema_pb2.FeatureType.Name(number))


TAKES_MISSING = "features.py must take a missing value of it from then on"
NOT_READ = "features.py must not read it from then on"


def propose_changes(schema: schema_pb2.Schema, data: Data, rejected: Mapping[str, frozenset[str]]) -> list[Proposal]:
    """Proposes changes for each feature that does not fit, in the schema's order, and then for each new column.

    Args:
        schema: The schema to compare the data with.
        data: The data.
        rejected: Keys of changes that are not wanted, by feature.
    """
    proposals = []
    for feature in schema.feature:
        if feature.lifecycle_stage not in UNUSED_STAGES:
            columns = list(data.columns.get(feature.name, {}).values())
            case = Case(schema, feature, columns, data, rejected.get(feature.name, frozenset()))
            proposals.append(_for_feature(case))
    names = {feature.name for feature in schema.feature}
    for name in sorted(data.columns.keys() - names):
        proposals.append(_for_new(name, data, rejected.get(name, frozenset())))
    if DATA_SET in data.anomalies:
        proposals.append(Proposal(DATA_SET, reasons=data.anomalies[DATA_SET]))
    return [proposal for proposal in proposals if proposal.changes or proposal.reasons]


def _for_feature(case: Case) -> Proposal:
    feature = case.feature
    if feature.name in case.data.absent or not case.present:
        return Proposal(feature.name, tuple(gone_rule(case)), notes=(NOT_READ,))
    reasons = [*type_reasons(case), *case.data.anomalies.get(feature.name, ())]
    proposed = [*presence_rule(case), *lengths_rule(case)]
    if not any(column.type != feature.type for column in case.present):
        for rule in (values_rule, ranges_rule):
            for result in rule(case):
                if isinstance(result, str):
                    reasons.append(result)
                else:
                    proposed.append(result)
    optional = (
        any(change.setting == "presence.min_fraction" for change in proposed) and feature.presence.min_fraction == 1
    )
    return Proposal(feature.name, tuple(proposed), tuple(reasons), (TAKES_MISSING,) if optional else ())


def _for_new(name: str, data: Data, rejected: frozenset[str]) -> Proposal:
    columns = list(data.columns[name].values())
    types = {column.type for column in columns if column.num_present} or {columns[0].type}
    if len(types) > 1 or schema_pb2.STRUCT in types:
        names = " and ".join(map(type_name, sorted(types)))
        return Proposal(name, reasons=(f"new column, {names}: which type it is to have needs a person",))
    feature = schema_pb2.Feature(name=name, type=types.pop())
    rows = sum(data.num_rows.values())
    present = sum(column.num_present for column in columns)
    everywhere = present == rows
    shares = [whole_percents(column) for column in columns] if len(columns) == len(data.num_rows) else [0.0]
    feature.presence.min_fraction = 1.0 if everywhere else min(shares)
    if all(column.num_present for column in columns) and len(columns) == len(data.num_rows):
        feature.presence.min_count = 1
    if present:
        feature.value_count.min = min(column.fewest for column in columns if column.num_present)
        feature.value_count.max = max(column.most for column in columns)
    written = text_format.MessageToString(feature, as_one_line=True, as_utf8=True).strip()
    where = "in all rows" if everywhere else f"in {percent(present / rows)} of rows"
    text = f"new column, {type_name(feature.type)}, {where}"
    # The share of rows differs from run to run; a rejected column is rejected whatever its share.
    change = Change(changes.NEW, (written,), text, Count(present), f"new column: {type_name(feature.type)}")
    return Proposal(name, () if rejected.issuperset(change.keys) else (change,))
