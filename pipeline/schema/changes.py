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
        setting: Which setting, such as `float_domain.max`; `string_domain.value` adds values, also to a domain that
            features share; `feature` adds the feature.
        values: The new value, or the values to add.
        text: Why, in words.
        count: The number of rows it concerns, where there is one.
        own_key: Its only key, if that is not derived from the values.
    """

    setting: str
    values: tuple[Value, ...]
    text: str
    count: Count | None = None
    own_key: str | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The change in a form that can be stored and compared."""
        if self.own_key is not None:
            return (self.own_key,)
        return tuple(f"{self.setting}: {value}" for value in self.values)


@dataclass(frozen=True)
class Proposal:
    """What the data call for in one feature.

    Attributes:
        feature: Its name.
        changes: The changes that would make the schema fit; empty if a person has to decide.
        reasons: Why changes cannot be accepted, or what they leave open.
        notes: What else to consider.
    """

    feature: str
    changes: tuple[Change, ...] = ()
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of all changes."""
        return tuple(key for change in self.changes for key in change.keys)


def apply_changes(schema: schema_pb2.Schema, proposals: Sequence[Proposal]) -> schema_pb2.Schema:
    """A copy of the schema with all changes of these proposals."""
    wanted = schema_pb2.Schema()
    wanted.CopyFrom(schema)
    for proposal in proposals:
        for change in proposal.changes:
            _apply(wanted, proposal.feature, change)
    return wanted


def string_domain(schema: schema_pb2.Schema, feature: schema_pb2.Feature) -> schema_pb2.StringDomain | None:
    """The domain of a feature's texts, its own or a shared one; None if it has none."""
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
    """Adds values to a domain; a sorted list stays sorted."""
    before = list(domain.value)
    after = before + [value for value in values if value not in before]
    del domain.value[:]
    domain.value.extend(sorted(after) if before == sorted(before) else after)
