"""What protobuf 3 and protobuf 6 call differently: each is asked for what it has, not for its version."""

from __future__ import annotations

import inspect
from typing import Any

from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

_WITH_DEFAULTS = {"always_print_fields_with_no_presence", "including_default_value_fields"}.intersection(
    inspect.signature(json_format.MessageToJson).parameters
)


def message_class(descriptor: Descriptor) -> Any:
    """The class of the messages that `descriptor` describes."""
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(descriptor.file.pool).GetPrototype(descriptor)


def is_repeated(field: FieldDescriptor) -> bool:
    """Whether the field holds several values: a list or a map."""
    if hasattr(field, "is_repeated"):
        return bool(field.is_repeated)
    return bool(field.label == FieldDescriptor.LABEL_REPEATED)


def to_json(message: Message) -> str:
    """The message as JSON with its fields' own names, those included that have their default values."""
    options = dict.fromkeys(_WITH_DEFAULTS, True)
    return str(json_format.MessageToJson(message, preserving_proto_field_name=True, **options))
