"""A single change of a feature's schema, and how it is applied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.schema.data import Count

VALUE = "string_domain.value"
NEW = "feature"
DEPRECATED = "lifecycle_stage"

Value = str | int | float


@dataclass(frozen=True)
class Change:
    """A change of one setting of a feature.

    Attributes:
        setting: Which, such as `float_domain.max`; `string_domain.value` adds a value, also where features share the
            domain; `feature` adds the feature.
        values: What it is set to, or the values that are added.
        text: Why, for people.
        count: In how many rows, where that is a sensible question.
        kept_as: Its one key, where that is not made of the values.
    """

    setting: str
    values: tuple[Value, ...]
    text: str
    count: Count | None = None
    kept_as: str | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The change in a form that can be kept and compared."""
        if self.kept_as is not None:
            return (self.kept_as,)
        return tuple(f"{self.setting}: {value}" for value in self.values)


@dataclass(frozen=True)
class Proposal:
    """What the data ask of one feature.

    Attributes:
        feature: Its name.
        changes: What would make the schema fit; empty where that is for a person to say.
        reasons: Why changes cannot be accepted, or what they leave open.
        notes: What else has to be thought of.
    """

    feature: str
    changes: tuple[Change, ...] = ()
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def keys(self) -> tuple[str, ...]:
        """Those of all changes."""
        return tuple(key for change in self.changes for key in change.keys)


def apply_changes(schema: schema_pb2.Schema, proposals: Sequence[Proposal]) -> schema_pb2.Schema:
    """The schema with all changes of these proposals."""
    wanted = schema_pb2.Schema()
    wanted.CopyFrom(schema)
    for proposal in proposals:
        for change in proposal.changes:
            _apply(wanted, proposal.feature, change)
    return wanted


def string_domain(schema: schema_pb2.Schema, feature: schema_pb2.Feature) -> schema_pb2.StringDomain | None:
    """The domain of a feature's texts, its own or a shared one; None where it has none."""
    if feature.HasField("string_domain"):
        return feature.string_domain
    return next((domain for domain in schema.string_domain if feature.domain and domain.name == feature.domain), None)


def _apply(schema: schema_pb2.Schema, name: str, change: Change) -> None:
    if change.setting == NEW:
        schema.feature.add().CopyFrom(text_format.Parse(str(change.values[0]), schema_pb2.Feature()))
        return
    feature = next(feature for feature in schema.feature if feature.name == name)
    if change.setting == VALUE:
        domain = string_domain(schema, feature)
        if domain is not None:
            _add_values(domain, [str(value) for value in change.values])
    elif change.setting == DEPRECATED:
        feature.lifecycle_stage = schema_pb2.LifecycleStage.Value(str(change.values[0]))
    else:
        message, _, setting = change.setting.partition(".")
        setattr(getattr(feature, message), setting, change.values[0])


def _add_values(domain: schema_pb2.StringDomain, values: Sequence[str]) -> None:
    """A list that is sorted stays so."""
    before = list(domain.value)
    after = before + [value for value in values if value not in before]
    del domain.value[:]
    domain.value.extend(sorted(after) if before == sorted(before) else after)
