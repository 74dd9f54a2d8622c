"""What protobuf 3 and protobuf 6 call differently: each is asked for what it has, not for its version."""

from __future__ import annotations

from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor


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
